"""What a text holds that others can calculate with: amounts, days and times of day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from app.core.text import moments
from app.core.text.folding import folded
from app.core.text.reader import read
from app.core.text.tokens import Found

MONEY: Final = "money"
"""The unit of every currency: conversions between them are no calculation."""
_MOST: Final = 32
"""Of each sort from one text."""
_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount as it is written, with its unit."""

    amount: float
    unit: str = ""
    """The base of its unit; empty: a bare number."""
    factor: float = 1.0
    """From the written unit to its base."""

    @property
    def size(self) -> float:
        """In the base of its unit."""
        return self.amount * self.factor


@dataclass(frozen=True, slots=True)
class Operands:
    """What one text holds, or several together; each in the order of the text, without repetitions."""

    amounts: tuple[Quantity, ...] = ()
    days: tuple[date, ...] = ()
    times: tuple[int, ...] = ()
    """Minutes after midnight; a time without its half of the day is there twice."""

    def __add__(self, other: Operands) -> Operands:
        """Both."""
        return Operands(
            tuple(dict.fromkeys(self.amounts + other.amounts)),
            tuple(dict.fromkeys(self.days + other.days)),
            tuple(dict.fromkeys(self.times + other.times)),
        )


def operands(text: str, at: datetime | None = None, *, without: Iterable[tuple[int, int]] = ()) -> Operands:
    """Read a text generously: relative days and all readings of a number included.

    Args:
        text: Of any length.
        at: The moment of its message: its day and its time are operands too.
        without: Stretches of the text that do not count, as start and end.
    """
    plain_text = folded(text)
    left_out = tuple(without)
    amounts: dict[Quantity, None] = {}
    days: dict[date, None] = {} if at is None else {at.date(): None}
    times: dict[int, None] = {} if at is None else {at.hour * _MINUTES + at.minute: None}
    for found in read(plain_text, at.date() if at is not None else None, generous=True):
        start = plain_text.original(found.start)
        if any(first <= start < last for first, last in left_out):
            continue
        amounts.update(dict.fromkeys(_amounts(found)))
        for form in sorted(found.forms):
            if (day := moments.day_in(form)) is not None:
                days[day] = None
            elif (minutes := moments.minutes_in(form)) is not None:
                times[minutes] = None
    return Operands(tuple(amounts)[:_MOST], tuple(days)[:_MOST], tuple(times)[:_MOST])


def _amounts(found: Found) -> list[Quantity]:
    unit, factor = (MONEY, 1.0) if found.kind == MONEY else found.unit or ("", 1.0)
    if found.readings:
        return [Quantity(reading * found.scale, unit, factor) for reading in found.readings]
    lengths = [form[2:].partition("|") for form in sorted(found.forms) if form.startswith("q:")]
    return [Quantity(float(size), base) for size, _, base in lengths]
