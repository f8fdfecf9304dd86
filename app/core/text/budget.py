"""Choosing options within a number of tokens or characters; the caller says what each costs and is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import takewhile
from typing import Final, TypeVar

MAX_LOOKS: Final = 12
"""How often one option is looked at, at most. Its worth only falls: after so many looks it adds hardly anything."""

Option = TypeVar("Option")
Result = TypeVar("Result")


class Budget:
    """Tokens or characters that are left."""

    def __init__(self, amount: int) -> None:
        self.remaining = amount

    def takes(self, cost: int) -> bool:
        """Spend this cost and return true, if so much is left."""
        if cost > self.remaining:
            return False
        self.remaining -= cost
        return True


def first_fitting(options: Iterable[Option], limit: int, cost: Callable[[Option], int]) -> list[Option]:
    """The first options that fit together. The first that does not fit ends the list: more room only adds options."""
    budget = Budget(limit)
    return list(takewhile(lambda option: budget.takes(cost(option)), options))


def each_fitting(options: Iterable[Option], limit: int, cost: Callable[[Option], int]) -> list[Option]:
    """The options that fit, taken in order. One that does not fit is skipped; smaller ones after it may still fit."""
    budget = Budget(limit)
    return [option for option in options if budget.takes(cost(option))]


def without_last(options: Iterable[Option], excess: int, cost: Callable[[Option], int]) -> list[Option]:
    """The options without as many of the last ones as are needed to free the excess."""
    kept = list(options)
    while kept and excess > 0:
        excess -= cost(kept.pop())
    return kept


def make_fitting(
    make: Callable[[int], Result], over: Callable[[Result], int], limit: int, least_limit: int = 0
) -> Result:
    """Make something for ever fewer tokens until it fits, since its size is only known once it is made.

    Args:
        make: Makes it for a given number of tokens or characters.
        over: By how much the result is too large; 0 or less if it fits.
        limit: The number of the first try.
        least_limit: The least number: a result made for it is returned even if it is too large.
    """
    while (excess := over(result := make(limit))) > 0 and limit > least_limit:
        limit = max(limit - excess, least_limit)
    return result


def best_first(
    options: Iterable[Option], worth: Callable[[Option], float | None], key: Callable[[Option], int]
) -> Iterator[Option]:
    """Yield the options, each time the one that is worth most at that moment.

    The caller takes or leaves an option before it asks for the next one.

    Args:
        options: The options in any order.
        worth: The present worth of an option, which only falls while others are taken. ``None`` leaves the option out.
        key: Among options of the same worth the one with the smallest key comes first; keys must be unique.
    """
    heap = [(-now, key(option), 0, option) for option in options if (now := worth(option)) is not None]
    heapify(heap)
    while heap:
        promised, number, looks, option = heap[0]
        now = worth(option)
        if now is not None and -now > promised and looks < MAX_LOOKS:
            heapreplace(heap, (-now, number, looks + 1, option))
            continue
        heappop(heap)
        if now is not None:
            yield option
