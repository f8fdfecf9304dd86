"""Finds where the topic changes, by the words alone: it cuts where the words become likeliest. Deterministic.

Each segment is modelled as drawing its words from a distribution of its own (Utiyama and Isahara, 2001; Eisenstein and
Barzilay, 2008): a word that the segment already has is cheap, a new one is expensive, and more so in a longer segment.
Dynamic programming finds the cheapest set of cuts. In our measurements this is far better than comparing two
neighbouring windows (Hearst, 1997). It needs no knowledge of a language, and finds the same borders in long and short
messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

_NEW: Final = 0.15  # the part of an occurrence as which a word counts that a segment does not have yet
_BREADTH: Final = 150.0  # the number of words that a segment could have besides its own
_PER_WORD: Final = 5.0  # by how much that number grows for each word of an average message
BORDER: Final = 4.0
"""The cost of each segment, in nats: a border is only worth it if it makes the words cheaper by more."""


def cheapest_borders(
    bags: Sequence[Collection[str]],
    *,
    places: Sequence[int],
    gains: Sequence[float],
    penalty: Callable[[int], float],
    reach: Callable[[int, int], bool],
) -> list[int]:
    """The places, without the first, where segments begin in the cheapest way to cut the messages.

    Args:
        bags: The words of each message.
        places: The places where a segment may begin, ascending, including 0 and the number of messages.
        gains: For each message, the gain in nats of a border before it for other reasons, such as a new turn or a
            pause.
        penalty: The cost of a segment of so many messages besides its words.
        reach: Whether a segment may reach from one place to another; the shortest possible segment always may.
    """
    breadth = _BREADTH + _PER_WORD * sum(map(len, bags)) / max(len(bags), 1)
    best = [math.inf] * (len(bags) + 1)
    before = [0] * (len(bags) + 1)
    best[0] = 0.0
    for number, start in enumerate(places[:-1]):
        bag = _Bag(breadth)
        base = best[start] + BORDER - (gains[start] if start else 0.0)
        done = start
        for end in places[number + 1 :]:
            if done > start and not reach(start, end):
                break
            for message in range(done, end):
                bag.add(bags[message])
            done = end
            cost = base + bag.cost + penalty(end - start)
            if cost < best[end]:
                best[end], before[end] = cost, start
    starts: list[int] = []
    place = len(bags)
    while place:
        place = before[place]
        starts.append(place)
    return starts[-2::-1]


class _Bag:
    """The words of a segment so far, and their cost in nats."""

    __slots__ = ("_breadth", "_count", "_held", "cost")

    def __init__(self, breadth: float) -> None:
        self.cost = 0.0
        self._breadth = breadth
        self._count = 0.0
        self._held: dict[str, int] = {}

    def add(self, words: Collection[str]) -> None:
        """Add the words of one more message, and their cost."""
        held, count, cost = self._held, self._count + self._breadth, self.cost
        for word in words:
            times = held.get(word, 0)
            cost += math.log(count / (times + _NEW))
            held[word] = times + 1
            count += 1
        self._count, self.cost = count - self._breadth, cost
