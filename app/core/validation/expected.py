"""Operands a statement may have been calculated from, and the results to look for among the calculations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from app.core.text.operands import Operands, Quantity

Results = Iterator[float]
"""Of one kind of calculation with some operands, in the unit of what is looked for."""
Marks = tuple[str, ...]
"""What is known of a calculation: its kind, where its operands stand, how they fit."""
DAY_SECONDS: Final = 86_400.0
YEAR_MONTHS: Final = 12
Derivation = tuple[Marks, Results]
"""The results of one calculation, or of a few of which the same is known."""
AmountsBetween = Callable[[str, float, float], Sequence[float]]
"""The amounts of a unit that were shown, from one size to another, and those without a unit (of the empty one)."""


@dataclass(frozen=True, slots=True)
class Source:
    """One text that a statement may rest on."""

    operands: Operands
    close: tuple[tuple[int, int, int], ...] = ()
    """Its clauses, as start and end, and how close each is to the statement: 2 as none is closer, 1 by some word."""

    def closeness(self, place: int) -> int:
        """How close the clause at this place is to the statement."""
        return next((close for start, end, close in self.close if start <= place < end), 0)


@dataclass(frozen=True, slots=True)
class Basis:
    """The operands that a statement may have been calculated from."""

    statement: Operands
    """Of its own values that hold, and of its small numbers; dates without a year are there as relative days."""
    own: Sequence[Source] = ()
    """Each of its sources."""
    near: Sequence[Source] = ()
    """Each message beside them."""
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
    """A value as its place ``at`` in a row of values, with the first and the last of those that are like it."""

    at: int
    first: float
    last: float

    @abstractmethod
    def place(self, result: float) -> int | None:
        """Where a result stands in that row; ``None``: between two places."""

    @abstractmethod
    def shown(self, basis: Basis) -> Results:
        """The operands of its own kind: a value that stands there needs no calculation."""

    @abstractmethod
    def within(self, basis: Basis) -> Iterator[Results]:
        """What the statement itself shows how to calculate."""

    @abstractmethod
    def derivations(self, basis: Basis) -> Iterator[Derivation]:
        """All other results, by what is known of their calculations."""

    def may_differ_from(self, one: Quantity) -> bool:  # noqa: ARG002
        """Whether it may be a difference of this amount and another."""
        return False

    def differences_between(self, amounts: Sequence[Quantity]) -> Results:  # noqa: ARG002
        """Between each two of these amounts; none where it is no amount."""
        return iter(())

    def differences(self, amounts: Sequence[Quantity], shown: AmountsBetween) -> Results:  # noqa: ARG002
        """Between these amounts and all that were shown; none where it is no amount."""
        return iter(())


def together(several: Iterable[Operands]) -> Operands:
    """The operands of several texts."""
    return sum(several, Operands())
