"""Operands a statement may have been calculated from, and the results to look for among the calculations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from app.core.text.operands import Operands

Results = Iterator[float]
"""The results of one kind of calculation with some operands, in the unit of the expected value."""
Marks = tuple[str, ...]
"""What is known about a calculation: its kind, where its operands stand, how well they fit."""
DAY_SECONDS: Final = 86_400.0
YEAR_MONTHS: Final = 12
Derivation = tuple[Marks, Results]
"""The marks and the results of one calculation, or of a few with the same marks."""
AmountsBetween = Callable[[str, float, float], Sequence[float]]
"""From a unit and two sizes to the shown amounts of that unit between them; the empty unit has amounts without one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One text that a statement may rest on."""

    operands: Operands
    close: tuple[tuple[int, int, int], ...] = ()
    """(start, end, closeness) of each clause: 2 if none shares more words with the statement, 1 if it shares any."""

    def closeness(self, place: int) -> int:
        """How close the clause at this place is to the statement."""
        return next((close for start, end, close in self.close if start <= place < end), 0)


@dataclass(frozen=True, slots=True)
class Basis:
    """The operands that a statement may have been calculated from."""

    statement: Operands
    """The operands among the statement's own values that hold, and its small numbers. Its dates without a year are also
    given as relative days."""
    own: Sequence[Source] = ()
    """The statement's sources."""
    near: Sequence[Source] = ()
    """The messages near the sources."""
    now: date | None = None
    """The day of the newest message, for a sentence of a narrative: it may count days to it."""

    @property
    def of_own(self) -> Operands:
        """The operands of all its sources, together."""
        return together(one.operands for one in self.own)

    @property
    def of_near(self) -> Operands:
        """The operands of all messages near the sources, together."""
        return together(one.operands for one in self.near)


@dataclass(frozen=True, slots=True)
class Expected(ABC):
    """A value as its place ``at`` in a row of values; the values similar to it reach from ``first`` to ``last``."""

    at: int
    first: float
    last: float

    @abstractmethod
    def place(self, result: float) -> int | None:
        """The place of a result in that row; ``None`` if it lies between two places."""

    @abstractmethod
    def shown(self, basis: Basis) -> Results:
        """The operands of the value's own kind: if it is among them, it needs no calculation."""

    @abstractmethod
    def within(self, basis: Basis) -> Iterator[Results]:
        """The results of calculations with the statement's own values."""

    @abstractmethod
    def derivations(self, basis: Basis) -> Iterator[Derivation]:
        """All other results, with the marks of their calculations."""


def together(several: Iterable[Operands]) -> Operands:
    """The operands of several texts in one."""
    return sum(several, Operands())
