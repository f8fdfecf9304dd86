"""Expected results that are amounts: see ``expected``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, combinations, islice, pairwise, product
from typing import Final

from app.core.text.numerals import (
    DEGREES,
    celsius_from_fahrenheit,
    fahrenheit_from_celsius,
    plain_number,
    resolution,
    resolution_as_written,
)
from app.core.text.operands import Operands, Quantity
from app.core.text.values import MONEY, MOST_APPROXIMATION, MOST_ROUNDING, Value
from app.core.validation.expected import (
    DAY_SECONDS,
    YEAR_MONTHS,
    AmountsBetween,
    Basis,
    Derivation,
    Expected,
    Results,
    Source,
    together,
)

_LEAST_AROUND: Final = 38
"""The least number of similar values that are considered: a number with one digit has only few of its size."""
_AROUND_PRICE: Final = 125
"""The same for money: prices and what follows from them are rounder than other numbers."""
_SMALL, _SMALL_BARE = 10, 100
"""Smaller numbers (final zeros left off) follow from nearly any other numbers. The second limit is for numbers without
a unit below a thousand, for which that is even easier."""
_LARGE: Final = 1_000
_EXACT: Final = 1e-6
_MOST_OPERANDS: Final = 24
_MOST_TOGETHER: Final = 48
_MOST_PAIRS: Final = 2_000
_MOST_TERMS: Final = 12
_PAIR: Final = 2
_WHOLE: Final = 100
"""All parts together in percent: "34 % are fields, the other 66 % woods"."""
_LONGEST_RUN: Final = 8
_MONTHS: Final = (12.0,)
_USUAL: Final = (12.0, 2.0, 60.0, 1_000.0)
_SELDOM: Final = (3_600.0, 7.0, 52.0, 24.0, 100.0, 10.0)
"""Less usual factors between units of time and of the metric system; ``_USUAL`` also has the factor of a pair."""
_UNSAID: Final = (1_000.0, 100.0, 10.0)
"""Factors that are left unsaid: prices are given without their thousands, sizes without their unit."""
_Placed = tuple[Quantity, int]
"""An amount, and how close its clause is to the statement."""


def expected_amount(value: Value) -> _Amount | None:
    """The amount in the row of numbers of its size and precision; ``None`` for 0."""
    amount, is_money = abs(value.amount or 0.0), value.kind == "money"
    step = resolution(plain_number(amount))
    step = min(step, 1.0) if value.base == "%" else step  # 10 % is as exact as 11 %
    at = round(amount / step)
    around = _AROUND_PRICE if is_money else _LEAST_AROUND
    unit = MONEY if is_money else value.base
    last = max(2 * at, at / 2 + around)
    written = min(resolution_as_written(value.text, amount), 1.0)
    return _Amount(at, at / 2, last, unit, value.factor, step, written, value.approximate) if at else None


@dataclass(frozen=True, slots=True)
class _Amount(Expected):
    unit: str
    factor: float
    step: float
    """The worth of the last digit that is not zero."""
    written: float
    """The worth of the last digit."""
    is_about: bool

    def place(self, result: float) -> int | None:
        place = round(result / self.step)
        target, off = place * self.step, abs(result - place * self.step)
        least, most = (self.step, MOST_APPROXIMATION) if self.is_about else (self.written, MOST_ROUNDING)
        tolerance = min(least / 2, target * most)
        return place if off <= max(tolerance, _EXACT * target) else None

    def shown(self, basis: Basis) -> Results:
        sources = [basis.statement, *(one.operands for one in (*basis.own, *basis.near))]
        yield from (self._own(one) for source in sources for one in source.amounts if self._is_alike(one))

    def within(self, basis: Basis) -> Iterator[Results]:
        told = basis.statement.amounts[:_MOST_OPERANDS]
        if self.at >= (_SMALL if self.unit or self.at * self.step >= _LARGE else _SMALL_BARE):
            for one, other in combinations(told, 2):
                yield (result for _, results in self._of(one, other) for result in results)
        if self.unit and self.at >= _SMALL:
            yield self._converted(told, _MONTHS)
            yield self._in_other_units(told)
        if self.unit == "%":
            yield (_WHOLE - one.amount for one in told if one.unit == "%")
        yield self._totals([told])
        dated = basis.statement.with_relative_days
        yield self._lengths_of_time(_Instants.of(dated), _Instants.of(dated, basis.of_own))
        yield self._lengths_of_time(_Instants.of(dated), _Instants((basis.now,) if basis.now else (), ()))

    def derivations(self, basis: Basis) -> Iterator[Derivation]:
        told = [(one, 1) for one in basis.statement.amounts[:_MOST_OPERANDS]]
        own, near = ([_placed(source) for source in sources] for sources in (basis.own, basis.near))
        instants = _Instants.of(basis.statement, basis.of_own)
        relative = _Instants(basis.of_own.relative, ())
        yield ("span",), self._lengths_of_time(instants, instants)
        yield ("span relative",), self._lengths_of_time(relative, instants)
        yield from self._pairs("told", combinations(told, 2))
        yield ("triple",), self._triples([one for one, _ in told])
        yield from self._told_with_sources(told, own)
        yield from self._within_sources(own)
        yield from self._pairs("near", product(told, list(chain.from_iterable(near))[:_MOST_TOGETHER]))
        every = list(chain.from_iterable(own))[:_MOST_TOGETHER]
        yield from self._from_one_amount("told", told)
        yield from self._from_one_amount("own", every)
        for (one, close), factor in product(every, _UNSAID):
            if not one.unit and (self.unit or self.step >= factor):
                yield (f"unsaid {factor:.0f}", f"close {close}"), self._converted([one], (factor,))

    def alike(self, amounts: Iterable[Quantity]) -> list[Quantity]:
        """The amounts that may have the unit of this one."""
        return [one for one in amounts if self._is_alike(one)]

    def differences_between(self, amounts: Sequence[Quantity]) -> Results:
        """The differences between any two of these amounts."""
        for one, other in combinations(amounts, 2):
            for name, results in self._sums(one, other):
                yield from results if name == "difference" else ()

    def differences(self, amounts: Sequence[Quantity], shown: AmountsBetween) -> Results:
        """The differences between these amounts and all shown amounts."""
        reach = self.last * self.step
        for one in amounts:
            unit, factor = (self.unit, self.factor) if self.unit else (one.unit, one.factor)
            own = self._own(one)
            for scale, base in ((factor, unit), (1.0, "")) if unit else ((1.0, ""),):
                around = shown(base, (own - reach) * scale, (own + reach) * scale)
                yield from (abs(own - amount / scale) for amount in around)

    def _told_with_sources(self, told: Sequence[_Placed], own: Iterable[Sequence[_Placed]]) -> Iterator[Derivation]:
        for one in own:
            amounts = {quantity.amount for quantity, _ in one}
            for first in told:
                where = "told there+own" if first[0].amount in amounts else "told+own"
                yield from self._pairs(where, ((first, other) for other in one if other[0].amount != first[0].amount))

    def _within_sources(self, own: Sequence[Sequence[_Placed]]) -> Iterator[Derivation]:
        for one in own:
            yield from self._pairs("next", pairwise(one))
            apart = ((first, other) for place, first in enumerate(one) for other in one[place + 2 :])
            yield from self._pairs("own", apart)
            yield from self._sums_of_runs(one)
            yield ("total",), self._totals([[quantity for quantity, _ in one]])
        across = chain.from_iterable(product(one, other) for one, other in combinations(own, 2))
        yield from self._pairs("across", islice(across, _MOST_PAIRS))

    def _from_one_amount(self, where: str, quantities: Iterable[_Placed]) -> Iterator[Derivation]:
        for (one, close), (name, factors) in product(quantities, (("usual", _USUAL), ("seldom", _SELDOM))):
            marks = (f"{name} {where}", f"{name} {self._unit_mark(one)}", f"close {close}")
            yield marks, self._converted([one], factors)

    def _unit_mark(self, *quantities: Quantity) -> str:
        if not self.unit:
            return "bare"
        return f"unit {sum(one.unit == self.unit for one in quantities)} {sum(not one.unit for one in quantities)}"

    def _pairs(self, where: str, pairs: Iterable[tuple[_Placed, _Placed]]) -> Iterator[Derivation]:
        for (one, close), (other, as_close) in pairs:
            for name, results in self._of(one, other):
                yield (f"{name} {where}", f"{name} {self._unit_mark(one, other)}", f"close {close + as_close}"), results

    def _sums_of_runs(self, quantities: Sequence[_Placed]) -> Iterator[Derivation]:
        for start in range(len(quantities) - 2):
            total, size = 0.0, 0
            for one, _ in quantities[start : start + _LONGEST_RUN]:
                if not self._is_alike(one) or one.unit != quantities[start][0].unit:
                    break
                total, size = total + self._own(one), size + 1
                if size > _PAIR:
                    yield (f"run {self._unit_mark(one)}", f"run close {quantities[start][1]}"), iter((total,))

    def _of(self, one: Quantity, other: Quantity) -> Iterator[tuple[str, Results]]:
        yield from self._sums(one, other)
        yield "product", self._products(one, other)
        yield "share", self._shares(one, other)

    def _lengths_of_time(self, ones: _Instants, others: _Instants) -> Results:
        if self.unit == "mo" or (self.unit == "s" and self.factor >= DAY_SECONDS):
            yield from (_length_between(*days, self.unit) / self.factor for days in product(ones.days, others.days))
        elif self.unit == "s":
            yield from (abs(one - other) * 60 / self.factor for one, other in product(ones.times, others.times))

    def _is_alike(self, one: Quantity) -> bool:
        return not self.unit or not one.unit or one.unit == self.unit

    def _own(self, one: Quantity) -> float:
        return one.size / self.factor if self.unit and one.unit == self.unit else one.amount

    def _totals(self, lists: Iterable[Sequence[Quantity]]) -> Results:
        for quantities in lists:
            alike = [self._own(one) for one in quantities if one.unit == self.unit]
            if len(alike) > _PAIR:
                yield sum(alike)

    def _triples(self, quantities: Sequence[Quantity]) -> Results:
        alike = [self._own(one) for one in quantities if self._is_alike(one)][:_MOST_TERMS]
        yield from (sum(terms) for terms in combinations(alike, 3))

    def _sums(self, one: Quantity, other: Quantity) -> Iterator[tuple[str, Results]]:
        if self._is_alike(one) and self._is_alike(other) and (one.unit == other.unit or not one.unit or not other.unit):
            first, second = self._own(one), self._own(other)
            yield "sum", iter((first + second,))
            yield "difference", iter((abs(first - second),))

    def _converted(self, quantities: Sequence[Quantity], factors: Sequence[float]) -> Results:
        for factor in factors:
            for one in quantities:
                if self._is_alike(one):
                    yield self._own(one) * factor
                    yield self._own(one) / factor

    def _in_other_units(self, quantities: Sequence[Quantity]) -> Results:
        for one in quantities:
            if one.unit == self.unit == DEGREES:
                yield fahrenheit_from_celsius(one.amount)
                yield celsius_from_fahrenheit(one.amount)
            elif one.unit == self.unit and one.factor != self.factor:
                yield self._own(one)

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


def _placed(source: Source) -> list[_Placed]:
    return [(one, source.closeness(one.start)) for one in source.operands.amounts[:_MOST_OPERANDS]]


@dataclass(frozen=True, slots=True)
class _Instants:
    days: tuple[date, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, *several: Operands) -> _Instants:
        one = together(several)
        days, times = (at.date() for at in one.moments), (at.hour * 60 + at.minute for at in one.moments)
        return cls((*one.days, *days), (*one.times, *times))


def _length_between(one: date, other: date, unit: str) -> float:
    # The length is in seconds, or in whole months if the value is in months or years.
    if unit == "s":
        return abs((one - other).days) * DAY_SECONDS
    first, last = sorted((one, other))
    return (last.year - first.year) * YEAR_MONTHS + last.month - first.month - (last.day < first.day)
