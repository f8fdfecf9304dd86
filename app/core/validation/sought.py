"""What is looked for among the results of calculations, and what they may start from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.core.text.operands import Operands

Results = Iterator[float]
"""Of one kind of calculation with some operands, in the unit of what is looked for."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The operands that a statement may have been calculated from."""

    statement: Operands
    """Of its own values that hold, and of its small numbers."""
    own: Sequence[Operands] = ()
    """Of each of its sources."""
    near: Sequence[Operands] = ()
    """Of each message beside them."""


@dataclass(frozen=True, slots=True)
class Sought(ABC):
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
    def kinds(self, basis: Basis) -> Iterator[Results]:
        """All other results, from the likeliest kind to the least, as measured on honest statements."""


def together(several: Iterable[Operands]) -> Operands:
    """The operands of several texts."""
    return sum(several, Operands())
