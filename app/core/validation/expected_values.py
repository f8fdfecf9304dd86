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
Features = tuple[str, ...]
"""What is known about a calculation: its kind, where its operands stand, how well they fit."""
DAY_SECONDS: Final = 86_400.0
YEAR_MONTHS: Final = 12
Derivation = tuple[Features, Results]
"""The features and the results of one calculation, or of a few with the same features."""
AmountsBetween = Callable[[str, float, float], Sequence[float]]
"""From a unit and two sizes to the shown amounts of that unit between them; the empty unit has amounts without one."""


@dataclass(frozen=True, slots=True)
class SourceOperands:
    """One text that a statement may rest on."""

    operands: Operands
    clause_closeness: tuple[tuple[int, int, int], ...] = ()
    """(start, end, closeness) of each clause: 2 if none shares more words with the statement, 1 if it shares any."""

    def closeness_at(self, position: int) -> int:
        """How close the clause at this place is to the statement."""
        return next((close for start, end, close in self.clause_closeness if start <= position < end), 0)


@dataclass(frozen=True, slots=True)
class CalculationBasis:
    """The operands that a statement may have been calculated from."""

    statement: Operands
    """The operands among the statement's own values that hold, and its small numbers. Its dates without a year are also
    given as relative days."""
    own_sources: Sequence[SourceOperands] = ()
    """The statement's sources."""
    nearby_sources: Sequence[SourceOperands] = ()
    """The messages near the sources."""
    stays: Sequence[tuple[date, date]] = ()
    """The first and the last day of each stretch of some days in the texts that were shown: "28 to 31 May"."""
    newest_day: date | None = None
    """The day of the newest message, for a sentence of a narrative: it may count days to it."""

    @property
    def own_operands(self) -> Operands:
        """The operands of all its sources, together."""
        return combined_operands(one.operands for one in self.own_sources)

    @property
    def nearby_operands(self) -> Operands:
        """The operands of all messages near the sources, together."""
        return combined_operands(one.operands for one in self.nearby_sources)


@dataclass(frozen=True, slots=True)
class ExpectedValue(ABC):
    """A value as its ``position`` in a row of values; the values similar to it reach from ``first`` to ``last``."""

    position: int
    first: float
    last: float

    @abstractmethod
    def position_of(self, result: float) -> int | None:
        """The position of a result in that row; ``None`` if it lies between two positions."""

    @abstractmethod
    def known_operands(self, basis: CalculationBasis) -> Results:
        """The operands of the value's own kind: if it is among them, it needs no calculation."""

    @abstractmethod
    def results_within_statement(self, basis: CalculationBasis) -> Iterator[Results]:
        """The results of calculations with the statement's own values."""

    @abstractmethod
    def derivations(self, basis: CalculationBasis) -> Iterator[Derivation]:
        """All other results, with the features of their calculations."""


def combined_operands(operands_of_texts: Iterable[Operands]) -> Operands:
    """The operands of several texts in one."""
    return sum(operands_of_texts, Operands())
