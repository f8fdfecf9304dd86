"""Choosing among options within a number of tokens or characters; the caller says what each costs and is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import takewhile
from typing import Final, TypeVar

MOST_LOOKS: Final = 12
"""How often one option is looked at. Its worth only falls, and after so many looks it has hardly anything new."""

Option = TypeVar("Option")
Made = TypeVar("Made")


class Budget:
    """Tokens or characters that are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def takes(self, cost: int) -> bool:
        """Spend so much, if there is so much left."""
        if cost > self.left:
            return False
        self.left -= cost
        return True


def first_fitting(options: Iterable[Option], room: int, cost: Callable[[Option], int]) -> list[Option]:
    """The first options, as many as fit together: one that does not ends it, so that more room only adds to them."""
    budget = Budget(room)
    return list(takewhile(lambda option: budget.takes(cost(option)), options))


def each_fitting(options: Iterable[Option], room: int, cost: Callable[[Option], int]) -> list[Option]:
    """The options that fit one after the other: one that does not is passed over for smaller ones after it."""
    budget = Budget(room)
    return [option for option in options if budget.takes(cost(option))]


def without_last(options: Iterable[Option], excess: int, cost: Callable[[Option], int]) -> list[Option]:
    """The options without the last ones, as many as free so much."""
    kept = list(options)
    while kept and excess > 0:
        excess -= cost(kept.pop())
    return kept


def made_to_fit(make: Callable[[int], Made], over: Callable[[Made], int], room: int, least: int = 0) -> Made:
    """Make something for less and less room until it fits, since its size is only known once it is made.

    Args:
        make: Makes it in so much room.
        over: By how much it is too heavy; 0 or less where it fits.
        room: The room of the first try.
        least: The least room: what is made in it is returned, whatever it weighs.
    """
    while (excess := over(made := make(room))) > 0 and room > least:
        room = max(room - excess, least)
    return made


def best_first(
    options: Iterable[Option], worth: Callable[[Option], float | None], key: Callable[[Option], int]
) -> Iterator[Option]:
    """Yields, again and again, the option that is worth most at that moment.

    The caller takes an option, or leaves it, before it asks for the next one.

    Args:
        options: In any order.
        worth: Asked again and again; it only falls while others are taken. ``None``: the option is left out.
        key: Of options of one worth, the one with the smallest key comes first; no two have the same.
    """
    heap = [(-now, key(option), 0, option) for option in options if (now := worth(option)) is not None]
    heapify(heap)
    while heap:
        promised, number, looks, option = heap[0]
        now = worth(option)
        if now is not None and -now > promised and looks < MOST_LOOKS:
            heapreplace(heap, (-now, number, looks + 1, option))
            continue
        heappop(heap)
        if now is not None:
            yield option
