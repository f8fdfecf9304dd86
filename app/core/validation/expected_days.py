"""Expected results that are years, days or times of day: see ``expected_values``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Final

from app.core.text.moments import LEAP_YEAR, day_in, day_of_year_in, days_at_distance, minutes_in
from app.core.text.operands import Operands, Quantity
from app.core.validation.expected_values import (
    DAY_SECONDS,
    YEAR_MONTHS,
    CalculationBasis,
    Derivation,
    ExpectedValue,
    Results,
    combined_operands,
)

_NEAR_YEARS: Final = 20
_NEAR_DAYS: Final = 60
_DAY_MINUTES: Final = 1_440
_WEEK: Final = 7
_MAX_LIFE_YEARS: Final = 150
_TIME_STEPS: Final = (30, 15, 10, 5, 1)
"""Precisions of times in minutes. Unlike in ``values.py``, one minute is among them, and full hours count as 30."""


def expected_year(year: int) -> ExpectedValue:
    """The year in the row of years some decades around it."""
    return _Year(year, year - _NEAR_YEARS, year + _NEAR_YEARS)


def expected_date(forms: Iterable[str]) -> ExpectedValue | None:
    """The day in the row of days some months around it; ``None`` if only a month is given."""
    in_order = sorted(forms)
    days = [day for form in in_order if (day := day_in(form))]
    days_of_year = [day for form in in_order if (day := day_of_year_in(form))]
    if not (days or days_of_year):
        return None
    position = (days or days_of_year)[0].toordinal()
    return _Date(position, position - _NEAR_DAYS, position + _NEAR_DAYS, bool(days))


def expected_time(forms: Iterable[str]) -> ExpectedValue | None:
    """The time in the row of all times of a day with the same precision."""
    times = [minutes for form in sorted(forms) if (minutes := minutes_in(form)) is not None]
    if not times:
        return None
    step = next(step for step in _TIME_STEPS if times[0] % step == 0)
    return _Time(times[0] // step, 0, _DAY_MINUTES // step - 1, step)


@dataclass(frozen=True, slots=True)
class _Year(ExpectedValue):
    def position_of(self, result: float) -> int | None:
        return round(result)

    def known_operands(self, basis: CalculationBasis) -> Results:
        yield from (float(day.year) for one in (basis.statement, basis.own_operands) for day in one.days)

    def results_within_statement(self, basis: CalculationBasis) -> Iterator[Results]:
        yield from self._moved({day.year for day in basis.statement.days}, basis.statement.amounts, "mo")

    def derivations(self, basis: CalculationBasis) -> Iterator[Derivation]:
        statement_and_sources = combined_operands([basis.statement, basis.own_operands])
        message_years, stated_years = (
            {at.year for at in statement_and_sources.moments},
            {day.year for day in statement_and_sources.days},
        )
        for unit in ("mo", ""):
            for name, years in (("now", message_years), ("told", stated_years)):
                for results in self._moved(years, statement_and_sources.amounts, unit):
                    yield ("year", f"year {name} {unit}"), results

    @staticmethod
    def _moved(years: Iterable[int], amounts: Iterable[Quantity], unit: str) -> Iterator[Results]:
        counts = (one.size / YEAR_MONTHS if unit else one.amount for one in amounts if one.unit == unit)
        whole = {count for count in counts if count == int(count) and 0 < count < _MAX_LIFE_YEARS}
        for way in (1, -1):
            yield (year + way * count for year in years for count in whole)


@dataclass(frozen=True, slots=True)
class _Date(ExpectedValue):
    has_year: bool

    def position_of(self, result: float) -> int | None:
        day = round(result)
        if self.has_year:
            return day
        is_in_calendar = date.min.toordinal() <= day <= date.max.toordinal()
        return date.fromordinal(day).replace(year=LEAP_YEAR).toordinal() if is_in_calendar else None

    def known_operands(self, basis: CalculationBasis) -> Results:
        yield from (float(day.toordinal()) for one in (basis.statement, basis.own_operands) for day in one.days)

    def results_within_statement(self, basis: CalculationBasis) -> Iterator[Results]:
        yield self._moved(basis.statement.days, _lengths(basis.statement))

    def derivations(self, basis: CalculationBasis) -> Iterator[Derivation]:
        stated, own, near = basis.statement, basis.own_operands, basis.nearby_operands
        message_days = [at.date() for at in own.moments]
        yield ("date", "now + told"), self._moved(message_days, _lengths(stated), ways=(1,))
        yield ("date", "own ± told"), self._moved(own.days, _lengths(stated))
        yield ("date", "now + own"), self._moved(message_days, _lengths(own), ways=(1,))
        yield ("date", "told ± own"), self._moved(stated.days, _lengths(own))
        yield ("date", "own ± own"), self._moved(own.days, _lengths(own))
        yield ("date", "relative ± any"), self._moved(own.relative, _lengths(stated + own))
        yield ("date", "weekday after own"), self._weekdays_after(stated.days + own.days, own)
        yield ("date", "weekday near relative"), self._weekdays_after(near.relative, own)
        yield ("date", "own ± near"), self._moved(own.days, _lengths(near))
        yield ("date", "near ± any"), self._moved(near.days, _lengths(stated + own))
        yield ("date", "weekday after near"), self._weekdays_after(near.days, own)
        yield ("date", "weekday within stay"), self._weekdays_within(basis.stays, own.weekdays)

    @staticmethod
    def _moved(days: Iterable[date], lengths: Sequence[Quantity], ways: Sequence[int] = (1, -1)) -> Results:
        for day, one, way in product(days, lengths, ways):
            yield from (float(moment.toordinal()) for moment in days_at_distance(day, way * one.size, one.unit))

    @staticmethod
    def _weekdays_after(days: Iterable[date], own: Operands) -> Results:
        # A weekday beside a date is that of this date. One that is named alone may also be that of the next week.
        for day, weekday in product(days, own.weekdays):
            distance = (weekday - day.weekday()) % _WEEK
            if distance or weekday in own.lone_weekdays:
                yield float(day.toordinal() + (distance or _WEEK))

    @staticmethod
    def _weekdays_within(stays: Iterable[tuple[date, date]], weekdays: Sequence[int]) -> Results:
        for (first, last), weekday in product(stays, weekdays):
            yield from (
                float(day) for day in range(first.toordinal(), last.toordinal() + 1) if (day - 1) % _WEEK == weekday
            )


def _lengths(one: Operands) -> list[Quantity]:
    return [each for each in one.amounts if (each.unit == "s" and each.size >= DAY_SECONDS) or each.unit == "mo"]


@dataclass(frozen=True, slots=True)
class _Time(ExpectedValue):
    step: int

    def position_of(self, result: float) -> int | None:
        return round(result) // self.step if round(result) % self.step == 0 else None

    def known_operands(self, basis: CalculationBasis) -> Results:
        yield from (float(time) for one in (basis.statement, basis.own_operands) for time in one.times)

    def results_within_statement(self, basis: CalculationBasis) -> Iterator[Results]:
        yield from self._moved(basis.statement.times, basis.statement)

    def derivations(self, basis: CalculationBasis) -> Iterator[Derivation]:
        stated, own, near = basis.statement, basis.own_operands, basis.nearby_operands
        message_times = [at.hour * 60 + at.minute for at in own.moments]
        for name, times, pool in (
            ("own ± told", stated.times, own),
            ("told ± own", own.times, stated),
            ("own ± own", own.times, own),
            ("now ± any", message_times, stated + own),
            ("own ± near", own.times, near),
            ("near ± own", near.times, own),
        ):
            for results in self._moved(times, pool):
                yield ("time", f"time {name}"), results

    @staticmethod
    def _moved(times: Iterable[int], pool: Operands) -> Iterator[Results]:
        lengths = [one.size / 60 for one in pool.amounts if one.unit == "s" and one.size < DAY_SECONDS]
        for way in (1, -1):
            yield (float(time + way * length) for time in times for length in lengths)
