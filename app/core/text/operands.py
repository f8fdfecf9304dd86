"""The amounts, days and times of day of a text, as operands for calculations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain, islice, starmap
from typing import Final

from app.core.text import moments
from app.core.text.scan_results import FoundValue
from app.core.text.tables import WEEKDAYS
from app.core.text.value_reader import day_of, plain_text_and_tokens, read_values
from app.core.text.values import MONEY

_COUNTABLE: Final = {"number", MONEY, "time"}
_MAX_PER_SORT: Final = 32
"""The most operands of each sort that are taken from one text."""
_MAX_GAP: Final = 3
"""The most characters between a weekday and the date beside it."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount as it is written, with its unit."""

    amount: float
    unit: str = ""
    """The base unit; empty for a number without a unit."""
    factor: float = 1.0
    """The factor from the written unit to its base unit."""
    start: int = field(default=0, compare=False)
    """The place of the operand in its text."""

    @property
    def size(self) -> float:
        """The amount in the base of its unit."""
        return self.amount * self.factor


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of one text or of several: each sort in the order of the text, without repetitions."""

    moments: tuple[datetime, ...] = ()
    """The times of the messages."""
    amounts: tuple[Quantity, ...] = ()
    days: tuple[date, ...] = ()
    """Dates; a date without a year is included as the last and as the next such day."""
    relative: tuple[date, ...] = ()
    """The days that "tomorrow", "on Friday", "the 3rd" may mean."""
    weekdays: tuple[int, ...] = ()
    lone_weekdays: tuple[int, ...] = ()
    """The weekdays that are named without a date beside them."""
    times: tuple[int, ...] = ()
    """Times in minutes after midnight; a time without its half of the day is included twice."""

    @property
    def with_relative_days(self) -> Operands:
        """These operands, with the relative days among the dates."""
        return replace(self, days=self.days + self.relative)

    def __add__(self, other: Operands) -> Operands:
        """The operands of both."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Operands(*(tuple(dict.fromkeys(mine + others)) for mine, others in pairs))


def operands(text: str, at: datetime | None = None, *, without: Iterable[tuple[int, int]] = ()) -> Operands:
    """Read a text generously, with relative days and all readings of a number.

    Args:
        text: A text of any length.
        at: The moment of its message.
        without: (start, end) of each part of the text that does not count.
    """
    plain_text, pieces = plain_text_and_tokens(text)
    left_out = set(chain.from_iterable(starmap(range, without)))
    read_out = _Read()
    for found in read_values(plain_text, pieces, day_of(at), all_readings=True):
        start = plain_text.original(found.start)
        if start not in left_out:
            read_out.take(found, plain_text.text[found.start : found.end], start)
    return read_out.operands(at)


class _Read:
    def __init__(self) -> None:
        self._amounts: dict[Quantity, None] = {}
        self._days: dict[date, None] = {}
        self._relative: dict[date, None] = {}
        self._weekdays: list[tuple[int, FoundValue]] = []
        self._dates: list[FoundValue] = []
        self._times: dict[int, None] = {}

    def take(self, found: FoundValue, text: str, start: int) -> None:
        if found.kind in _COUNTABLE:
            for one in _amounts(found, start):
                self._amounts.setdefault(one)
        if text in WEEKDAYS:
            self._weekdays.append((WEEKDAYS[text], found))
        if found.kind == "date" and found.is_stated:
            self._dates.append(found)
        for form in sorted(found.forms):
            if (day := moments.day_in(form)) is not None:
                (self._days if found.is_stated else self._relative)[day] = None
            elif (minutes := moments.minutes_in(form)) is not None:
                self._times[minutes] = None

    def operands(self, at: datetime | None) -> Operands:
        return Operands(
            moments=(at,) if at is not None else (),
            amounts=tuple(islice(self._amounts, _MAX_PER_SORT)),
            days=tuple(islice(self._days, _MAX_PER_SORT)),
            relative=tuple(islice(self._relative, _MAX_PER_SORT)),
            weekdays=tuple(dict.fromkeys(weekday for weekday, _ in self._weekdays)),
            lone_weekdays=tuple(dict.fromkeys(self._lone_weekdays())),
            times=tuple(islice(self._times, _MAX_PER_SORT)),
        )

    def _lone_weekdays(self) -> Iterator[int]:
        beside = {at for one in self._dates for at in range(one.start - _MAX_GAP, one.end + _MAX_GAP + 1)}
        return (weekday for weekday, one in self._weekdays if beside.isdisjoint((one.start, one.end)))


def _amounts(found: FoundValue, start: int) -> list[Quantity]:
    unit, factor = (MONEY, 1.0) if found.kind == MONEY else found.unit or ("", 1.0)
    if found.readings:
        return [Quantity(reading * found.scale, unit, factor, start) for reading in found.readings[:1]]
    kinds = "q:" if found.kind == "time" else ("q:", "n:")
    forms = (form[2:].partition("|") for form in sorted(found.forms) if form.startswith(kinds) and "&" not in form)
    return [Quantity(float(size), base, start=start) for size, _, base in forms]
