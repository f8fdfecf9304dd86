"""Finds where the topic changes, by the words alone: it cuts so that the words are likeliest. Deterministic.

Each segment is modelled as drawing its words from a distribution of its own (Utiyama and Isahara, 2001; Eisenstein and
Barzilay, 2008): a word that the segment already has is cheap, a new one is expensive, and more so in a longer segment.
Dynamic programming finds the cheapest way to cut everything. On the bench this is far better than comparing two
neighbouring windows (Hearst, 1997). It needs no knowledge of a language, and finds the same borders in long and short
messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

_NEW: Final = 0.15  # a word that a segment does not hold yet counts as so much of an occurrence
_BREADTH: Final = 150.0  # words that a segment could hold besides its own
_PER_WORD: Final = 5.0  # so many more of them for each word of a mean message
BORDER: Final = 4.0
"""What each segment costs, in nats: a border pays only if it makes the words cheaper by more."""


def cheapest_borders(
    bags: Sequence[Collection[str]],
    *,
    places: Sequence[int],
    gains: Sequence[float],
    penalty: Callable[[int], float],
    reach: Callable[[int, int], bool],
) -> list[int]:
    """The places where segments begin, but for the first, in the cheapest way to cut the messages.

    Args:
        bags: The words of each message.
        places: Where a segment may begin, ascending; 0 and the number of messages are among them.
        gains: For each message, in nats: how much else speaks for a border before it, such as a new turn or a pause.
        penalty: What a segment of so many messages costs besides its words.
        reach: Whether a segment may run from one place to another; the shortest possible always may.
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
