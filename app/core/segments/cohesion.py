"""Where the topic changes, by the words alone: the cutting under which what is said is likeliest. Deterministic.

Each segment is thought of as drawing its words from a bag of its own (Utiyama and Isahara, 2001; Eisenstein and
Barzilay, 2008): a word that the segment holds already is cheap, a new one dear, the more so the longer the segment. The
cheapest cutting of all is found place by place. This beats dips in the likeness of two windows (Hearst, 1997) on the
bench by far, knows no language, and does not change its mind with the length of messages or of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

_NEW: Final = 0.15  # of an occurrence, for each word that a segment does not hold yet
_BREADTH: Final = 150.0  # words that a segment could hold besides those it holds,
_PER_WORD: Final = 5.0  # and more of them where messages are long
BORDER: Final = 4.0
"""What a segment costs, in nats: so much must be gained by words for a border to pay."""


def cheapest(
    bags: Sequence[Collection[str]],
    *,
    places: Sequence[int],
    gains: Sequence[float],
    penalty: Callable[[int], float],
    reach: Callable[[int, int], bool],
) -> list[int]:
    """The places where segments begin, the first one left out.

    Args:
        bags: The words of each message.
        places: Where a segment may begin, ascending; 0 and the number of messages are among them.
        gains: What a border before each message gains by other characters, in nats.
        penalty: What a segment of so many messages costs besides.
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
    """The words of a segment so far, and what it cost to draw them, in nats."""

    __slots__ = ("_breadth", "_count", "_held", "cost")

    def __init__(self, breadth: float) -> None:
        self.cost = 0.0
        self._breadth = breadth
        self._count = 0.0
        self._held: dict[str, int] = {}

    def add(self, words: Collection[str]) -> None:
        """Draw the words of one more message."""
        held, count, cost = self._held, self._count + self._breadth, self.cost
        for word in words:
            times = held.get(word, 0)
            cost += math.log(count / (times + _NEW))
            held[word] = times + 1
            count += 1
        self._count, self.cost = count - self._breadth, cost
