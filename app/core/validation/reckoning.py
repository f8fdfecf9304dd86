"""Values that follow from others by one calculation: "150 + 40 + 30 is 220", "ten days before 12 May is 2 May".

With enough operands nearly every number follows from some of them. So results are looked through from the likeliest
kind of calculation to the least likely, and only as long as they cover no more than a small share of the values that
could as well have stood there: other values of about the same size, told with the same precision. A value from nowhere
passes by chance no more often than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, product
from typing import Final

from app.core.text.moments import LEAP_YEAR, day_in, day_of_year_in, made, minutes_in, moved
from app.core.text.numerals import plain, resolution
from app.core.text.operands import MONEY, Operands, Quantity
from app.core.text.values import Value

CHANCE: Final = 1 / 20
"""The share of the values around one that may follow as well."""
_LEAST_AROUND: Final = 38
"""Values that are looked at around one, at least: of a number with one digit there are only few of its size."""
_EXACT: Final = 1e-6
_ROUGHLY: Final = 0.1
_ROUNDED: Final = 0.02
_ROUND_FROM: Final = 1_000
_MOST_OPERANDS: Final = 24
_MOST_TOGETHER: Final = 48
_MOST_TERMS: Final = 12
_USUAL: Final = (12.0, 2.0, 60.0, 1_000.0)
_UNSAID: Final = (1_000.0, 100.0, 10.0)
"""Prices are told without their thousands, sizes in another unit of the metric system."""
_SELDOM: Final = (3_600.0, 7.0, 52.0, 24.0, 100.0, 10.0)
_DAY: Final = 86_400.0
_DAY_MINUTES: Final = 1_440
_WEEK: Final = 7
_LONGEST_LIFE: Final = 150
_YEAR_MONTHS: Final = 12
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_NEAR_YEARS: Final = 20
_NEAR_DAYS: Final = 60
_TIME_STEPS: Final = (30, 15, 10, 5, 1)


Results = Iterator[float]
"""Of one kind of calculation with some operands, in the unit of what is looked for."""
_Operation = Callable[[Quantity, Quantity], Results]


@dataclass(frozen=True, slots=True)
class Basis:
    """The operands that a statement may have been calculated from."""

    statement: Operands
    """Of its own values that hold, and of its small numbers."""
    own: Sequence[Operands] = ()
    """Of each of its sources."""
    near: Sequence[Operands] = ()
    """Of each message beside them."""


def follows(value: Value, basis: Basis) -> bool:
    """Whether a value follows by one calculation, and few other values like it do."""
    sought = _sought(value)
    if sought is None:
        return False
    if any(sought.place(result) == sought.at for results in sought.within(basis) for result in results):
        return True
    most = CHANCE * (sought.last - sought.first + 1)
    reached: set[int] = set()
    for results in sought.kinds(basis):
        for result in results:
            place = sought.place(result)
            if place is not None and sought.first <= place <= sought.last:
                reached.add(place)
                if len(reached) > most:
                    return False
        if sought.at in reached:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Sought:
    """What is looked for, as its place ``at`` in a row of values, with the first and the last of those like it."""

    at: int
    first: float
    last: float


def _sought(value: Value) -> _Amount | _Year | _Date | _Time | None:
    if value.kind == "date":
        return _Date.of(value)
    if value.kind == "time":
        return _Time.of(value)
    if value.kind in {"number", "money"} and value.amount:
        is_year = not value.base and _FIRST_YEAR <= value.amount <= _LAST_YEAR and value.text.isdecimal()
        return _Year.of(value) if is_year else _Amount.of(value)
    return None


# --- amounts


@dataclass(frozen=True, slots=True)
class _Amount(_Sought):
    unit: str
    factor: float
    step: float
    """The worth of the last digit that is not zero."""
    written: float
    """The worth of the last digit."""
    is_about: bool

    @classmethod
    def of(cls, value: Value) -> _Amount:
        amount = abs(value.amount or 0.0)
        step = resolution(plain(amount))
        at = round(amount / step)
        return cls(
            at=at,
            first=at / 2,
            last=max(2 * at, at / 2 + (60 if at >= 10 and value.kind == "money" else _LEAST_AROUND)),
            unit=MONEY if value.kind == "money" else value.base,
            factor=value.factor,
            step=step,
            written=min(step, 1.0),
            is_about=value.approximate,
        )

    def place(self, result: float) -> int | None:
        place = round(result / self.step)
        target, off = place * self.step, abs(result - place * self.step)
        if self.is_about:
            tolerance = min(self.step / 2, target * _ROUGHLY)
        elif target >= _ROUND_FROM:
            tolerance = min(self.step / 2, target * _ROUNDED)
        else:
            tolerance = min(self.written / 2, target * _ROUNDED)
        return place if off <= max(tolerance, _EXACT * target) else None

    def within(self, basis: Basis) -> Iterator[Results]:
        told = basis.statement.amounts[:_MOST_OPERANDS]
        pairs = list(combinations(told, 2))
        if self.at >= (10 if self.unit else 100):
            yield from ((result for one, other in pairs for result in kind(one, other)) for kind in self._operations)
        yield self._totals([told])
        yield self._spans(_instants(basis.statement), _instants(basis.statement, *basis.own))

    def kinds(self, basis: Basis) -> Iterator[Results]:
        """From the likeliest to the least, as measured on honest statements."""
        told = basis.statement.amounts[:_MOST_OPERANDS]
        own = [one.amounts[:_MOST_OPERANDS] for one in basis.own]
        every = _together(own)
        beside = _together([one.amounts for one in basis.near])
        with_own = list(product(told, every))
        in_own = [pair for one in own for pair in combinations(one, 2)]
        across = [pair for one, other in combinations(own, 2) for pair in product(one, other)]
        with_near = list(product(told, beside))
        yield self._spans(_instants(basis.statement, *basis.own), _instants(basis.statement, *basis.own))
        pairs = list(combinations(told, 2))
        yield from ((result for one, other in pairs for result in kind(one, other)) for kind in self._operations)
        yield self._triples(told)
        if self.unit == "%":  # a share, more often than not
            yield from self._of(((self._shares, pairs, False) for pairs in (with_own, in_own, across)))
        yield self._converted(told, _USUAL)
        yield from self._of((
            (self._sums, with_own, True), (self._products, with_own, True), (self._shares, with_own, True),
        ))
        yield self._totals(own)
        yield from self._of((
            (self._sums, across, True), (self._products, across, True),
            (self._sums, in_own, True), (self._shares, in_own, True), (self._products, in_own, True),
        ))
        yield self._converted(told, _SELDOM)
        yield self._converted([one for one in every if self.unit and not one.unit], _UNSAID)
        yield from self._of((
            (self._sums, with_near, True), (self._shares, with_near, True), (self._products, with_near, True),
            (self._products, with_own, False), (self._shares, with_own, False), (self._sums, with_own, False),
        ))

    def _spans(self, ones: _Instants, others: _Instants) -> Results:
        """Lengths of time between two days, or two times of day."""
        if self.unit == "mo" or (self.unit == "s" and self.factor >= _DAY):
            yield from (_between(*days, self.unit) / self.factor for days in product(ones.days, others.days))
        elif self.unit == "s":
            yield from (abs(one - other) * 60 / self.factor for one, other in product(ones.times, others.times))

    def _of(self, kinds):
        for kind, pairs, is_measured in kinds:
            yield (
                result
                for one, other in pairs
                if (bool(self.unit) and self.unit in {one.unit, other.unit}) is is_measured
                for result in kind(one, other)
            )

    @property
    def _operations(self) -> tuple[_Operation, ...]:
        return self._sums, self._products, self._shares

    def _is_alike(self, one: Quantity) -> bool:
        return not self.unit or not one.unit or one.unit == self.unit

    def _own(self, one: Quantity) -> float:
        return one.size / self.factor if self.unit and one.unit == self.unit else one.amount

    def _totals(self, lists: Iterable[Sequence[Quantity]]) -> Results:
        for quantities in lists:
            alike = [self._own(one) for one in quantities if one.unit == self.unit]
            if len(alike) > 2:
                yield sum(alike)

    def _triples(self, quantities: Sequence[Quantity]) -> Results:
        alike = [self._own(one) for one in quantities if self._is_alike(one)][:_MOST_TERMS]
        yield from (sum(terms) for terms in combinations(alike, 3))

    def _sums(self, one: Quantity, other: Quantity) -> Results:
        if self._is_alike(one) and self._is_alike(other) and (one.unit == other.unit or not one.unit or not other.unit):
            first, second = self._own(one), self._own(other)
            yield first + second
            yield abs(first - second)

    def _converted(self, quantities: Sequence[Quantity], factors: Sequence[float]) -> Results:
        for factor in factors:
            for one in quantities:
                if self._is_alike(one):
                    yield self._own(one) * factor
                    yield self._own(one) / factor

    def _products(self, one: Quantity, other: Quantity) -> Results:
        for first, second in ((one, other), (other, one)):
            if not self._is_alike(first) or (self.unit and second.unit == self.unit):
                continue
            times = second.amount / 100 if second.unit == "%" else second.amount
            yield self._own(first) * times
            if second.unit == "%":
                yield self._own(first) * (1 + times)
                yield self._own(first) * (1 - times)

    def _shares(self, one: Quantity, other: Quantity) -> Results:
        for first, second in ((one, other), (other, one)):
            if not second.amount:
                continue
            if first.unit == second.unit and self.unit in {"", "%"}:
                share = first.size / second.size
                if self.unit:
                    yield share * 100
                    yield abs(share - 1) * 100
                else:
                    yield share
            elif self._is_alike(first) and second.unit != self.unit:
                yield self._own(first) / second.amount


def _together(lists: Sequence[Sequence[Quantity]]) -> list[Quantity]:
    return list(dict.fromkeys(quantity for one in lists for quantity in one))[:_MOST_TOGETHER]


# --- years, days and times


@dataclass(frozen=True, slots=True)
class _Instants:
    days: tuple[date, ...]
    times: tuple[int, ...]


def _instants(*several: Operands) -> _Instants:
    one = _all(several)
    return _Instants(
        (*one.days, *(at.date() for at in one.moments)), (*one.times, *(at.hour * 60 + at.minute for at in one.moments))
    )


def _between(one: date, other: date, unit: str) -> float:
    """In seconds; in whole months for a length that is told in months or years."""
    if unit == "s":
        return abs((one - other).days) * _DAY
    first, last = sorted((one, other))
    return (last.year - first.year) * _YEAR_MONTHS + last.month - first.month - (last.day < first.day)


@dataclass(frozen=True, slots=True)
class _Year(_Sought):
    @classmethod
    def of(cls, value: Value) -> _Year:
        at = round(value.amount or 0)
        return cls(at=at, first=at - _NEAR_YEARS, last=at + _NEAR_YEARS)

    def place(self, result: float) -> int | None:
        return round(result)

    def within(self, basis: Basis) -> Iterator[Results]:
        yield from ()

    def kinds(self, basis: Basis) -> Iterator[Results]:
        sources = [basis.statement, *basis.own]
        now = {at.year for one in sources for at in one.moments}
        told = {day.year for one in sources for day in one.days}
        lengths = [one for source in sources for one in source.amounts]
        for years, unit in ((now, "mo"), (told, "mo"), (now, ""), (told, "")):
            counts = [one.size / _YEAR_MONTHS if unit else one.amount for one in lengths if one.unit == unit]
            whole = {count for count in counts if count == int(count) and 0 < count < _LONGEST_LIFE}
            for way in (1, -1):
                yield (year + way * count for year in years for count in whole)


@dataclass(frozen=True, slots=True)
class _Date(_Sought):
    has_year: bool

    @classmethod
    def of(cls, value: Value) -> _Date | None:
        days = [day for form in sorted(value.forms) if (day := day_in(form))]
        of_year = [day for form in sorted(value.forms) if (day := day_of_year_in(form))]
        if not (days or of_year):
            return None
        at = (days or of_year)[0].toordinal()
        return cls(at=at, first=at - _NEAR_DAYS, last=at + _NEAR_DAYS, has_year=bool(days))

    def place(self, result: float) -> int | None:
        return round(result) if self.has_year else date.fromordinal(round(result)).replace(year=LEAP_YEAR).toordinal()

    def within(self, basis: Basis) -> Iterator[Results]:
        yield self._moved(basis.statement.days, _lengths(basis.statement))

    def kinds(self, basis: Basis) -> Iterator[Results]:
        told, own = basis.statement, _all(basis.own)
        near = _all(basis.near)
        now = [at.date() for at in own.moments]
        yield self._moved(now, _lengths(told), ways=(1,))
        yield self._moved(own.days, _lengths(told))
        yield self._moved(now, _lengths(own), ways=(1,))
        yield self._moved(told.days, _lengths(own))
        yield self._moved(own.days, _lengths(own))
        yield self._moved(own.relative, _lengths(told + own))
        yield self._after(told.days + own.days, own.weekdays)
        yield self._in_month(own.days, own.numbers)
        yield self._moved(own.days, _lengths(near))
        yield self._moved(near.days, _lengths(told + own))
        yield self._after(near.days, own.weekdays)
        yield self._in_month(near.days, own.numbers)

    @staticmethod
    def _moved(days: Iterable[date], lengths: Sequence[Quantity], ways: Sequence[int] = (1, -1)) -> Results:
        for day, one, way in product(days, lengths, ways):
            yield from (float(moment.toordinal()) for moment in moved(day, way * one.size, one.unit))

    @staticmethod
    def _after(days: Iterable[date], weekdays: Sequence[int]) -> Results:
        """Such as "the Saturday after"."""
        for day, weekday in product(days, weekdays):
            yield float(day.toordinal() + (weekday - day.weekday() - 1) % _WEEK + 1)

    @staticmethod
    def _in_month(days: Iterable[date], numbers: Sequence[int]) -> Results:
        """Such as "on the 10th", where other days say which month is meant."""
        for day, number in product(days, numbers):
            if other := made(day.year, day.month, number):
                yield float(other.toordinal())


def _lengths(one: Operands) -> list[Quantity]:
    return [each for each in one.amounts if (each.unit == "s" and each.size >= _DAY) or each.unit == "mo"]


def _all(several: Iterable[Operands]) -> Operands:
    return sum(several, Operands())


@dataclass(frozen=True, slots=True)
class _Time(_Sought):
    """Of all times of a day with that precision."""

    step: int

    @classmethod
    def of(cls, value: Value) -> _Time | None:
        times = [minutes for form in sorted(value.forms) if (minutes := minutes_in(form)) is not None]
        if not times:
            return None
        step = next(step for step in _TIME_STEPS if times[0] % step == 0)
        return cls(at=times[0] // step, first=0, last=_DAY_MINUTES // step - 1, step=step)

    def place(self, result: float) -> int | None:
        return round(result) // self.step if round(result) % self.step == 0 else None

    def within(self, basis: Basis) -> Iterator[Results]:
        yield from self._moved(basis.statement.times, basis.statement)

    def kinds(self, basis: Basis) -> Iterator[Results]:
        told, own, near = basis.statement, _all(basis.own), _all(basis.near)
        now = [at.hour * 60 + at.minute for at in own.moments]
        for times, pool in (
            (told.times, own), (own.times, told), (own.times, own), (now, told + own), (own.times, near), (near.times, own)
        ):
            yield from self._moved(times, pool)

    @staticmethod
    def _moved(times: Iterable[int], pool: Operands) -> Iterator[Results]:
        lengths = [one.size / 60 for one in pool.amounts if one.unit == "s" and one.size < _DAY]
        for way in (1, -1):
            yield (float(time + way * length) for time in times for length in lengths)
