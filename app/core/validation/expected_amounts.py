"""Expected results that are amounts: see ``expected_values``."""

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
from app.core.text.values import MAX_APPROXIMATION, MAX_ROUNDING, MONEY, Value
from app.core.validation.expected_values import (
    DAY_SECONDS,
    YEAR_MONTHS,
    AmountsBetween,
    CalculationBasis,
    Derivation,
    ExpectedValue,
    Results,
    SourceOperands,
    combined_operands,
)

_MIN_SIMILAR_VALUES: Final = 38
"""The least number of similar values that are considered: a number with one digit has only few of its size."""
_MIN_SIMILAR_PRICES: Final = 125
"""The least number of similar amounts of money: prices and what follows from them are rounder than other numbers."""
_SMALL_NUMBER, _SMALL_NUMBER_WITHOUT_UNIT = 10, 100
"""Smaller numbers (final zeros left off) follow from nearly any other numbers. The second limit is for numbers without
a unit below a thousand, for which that is even easier."""
_LARGE_NUMBER: Final = 1_000
_EXACT: Final = 1e-6
_HALF: Final = 0.5
_MAX_OPERANDS: Final = 24
_MAX_SOURCE_OPERANDS: Final = 48
_MAX_PAIRS: Final = 2_000
_MAX_TERMS: Final = 12
_PAIR: Final = 2
_WHOLE_PERCENT: Final = 100
"""All parts together in percent: "34 % are fields, the other 66 % woods"."""
_MAX_RUN: Final = 8
_MONTH_FACTORS: Final = (12.0,)
_USUAL_FACTORS: Final = (12.0, 2.0, 60.0, 1_000.0)
_RARE_FACTORS: Final = (3_600.0, 7.0, 52.0, 24.0, 100.0, 10.0)
"""Less usual factors between units of time and of the metric system. ``_USUAL_FACTORS`` has that of a pair too."""
_DECIMAL_SHIFTS: Final = frozenset({10.0, 100.0})
"""Those of them that are no conversion where both amounts have the same unit: 24,000 euros is a slip of 2,400 euros."""
_OMITTED_FACTORS: Final = (1_000.0, 100.0, 10.0)
"""Factors that are left unsaid: prices are given without their thousands, sizes without their unit."""
_PlacedAmount = tuple[Quantity, int]
"""An amount, and how close its clause is to the statement."""


def expected_amount(value: Value) -> _Amount | None:
    """The amount in the row of numbers of its size and precision; ``None`` for 0."""
    amount, is_money = abs(value.amount or 0.0), value.kind == "money"
    step = resolution(plain_number(amount))
    step = min(step, 1.0) if value.base == "%" else step  # 10 % is as exact as 11 %
    position = round(amount / step)
    least_similar = _MIN_SIMILAR_PRICES if is_money else _MIN_SIMILAR_VALUES
    unit = MONEY if is_money else value.base
    last = max(2 * position, position / 2 + least_similar)
    written_step = min(resolution_as_written(value.text, amount), 1.0)
    return (
        _Amount(position, position / 2, last, unit, value.factor, step, written_step, value.approximate)
        if position
        else None
    )


@dataclass(frozen=True, slots=True)
class _Amount(ExpectedValue):
    unit: str
    factor: float
    step: float
    """The worth of the last digit that is not zero."""
    written_step: float
    """The worth of the last digit."""
    is_approximate: bool

    def position_of(self, result: float) -> int | None:
        exact = result / self.step
        position = self.position if abs(exact - self.position) <= _HALF else round(exact)  # 88.5 is 88 or 89
        target, off = position * self.step, abs(result - position * self.step)
        least, most = (self.step, MAX_APPROXIMATION) if self.is_approximate else (self.written_step, MAX_ROUNDING)
        tolerance = min(least / 2, target * most)
        return position if off <= max(tolerance, _EXACT * target) else None

    def known_operands(self, basis: CalculationBasis) -> Results:
        sources = [basis.statement, *(one.operands for one in (*basis.own_sources, *basis.nearby_sources))]
        yield from (self._in_own_unit(one) for source in sources for one in source.amounts if self._is_comparable(one))

    def results_within_statement(self, basis: CalculationBasis) -> Iterator[Results]:
        stated = basis.statement.amounts[:_MAX_OPERANDS]
        if self.position >= (
            _SMALL_NUMBER if self.unit or self.position * self.step >= _LARGE_NUMBER else _SMALL_NUMBER_WITHOUT_UNIT
        ):
            for one, other in combinations(stated, 2):
                yield (result for _, results in self._pair_results(one, other) for result in results)
        if self.unit and self.position >= _SMALL_NUMBER:
            yield self._converted(stated, _MONTH_FACTORS)
            yield self._in_other_units(stated)
        if self.unit == "%":
            yield (_WHOLE_PERCENT - one.amount for one in stated if one.unit == "%")
        yield self._totals([stated])
        dated = basis.statement.with_relative_days
        yield self._lengths_of_time(_Instants.of(dated), _Instants.of(dated, basis.own_operands))
        yield self._lengths_of_time(_Instants.of(dated), _Instants((basis.newest_day,) if basis.newest_day else (), ()))

    def derivations(self, basis: CalculationBasis) -> Iterator[Derivation]:
        stated = [(one, 1) for one in basis.statement.amounts[:_MAX_OPERANDS]]
        own, near = (
            [_placed_amounts(source) for source in sources] for sources in (basis.own_sources, basis.nearby_sources)
        )
        instants = _Instants.of(basis.statement, basis.own_operands)
        relative = _Instants(basis.own_operands.relative, ())
        yield ("span",), self._lengths_of_time(instants, instants)
        yield ("span relative",), self._lengths_of_time(relative, instants)
        yield from self._pairs("told", combinations(stated, 2))
        yield ("triple",), self._triples([one for one, _ in stated])
        yield from self._stated_with_sources(stated, own)
        yield from self._within_sources(own)
        yield from self._pairs("near", product(stated, list(chain.from_iterable(near))[:_MAX_SOURCE_OPERANDS]))
        own_amounts = list(chain.from_iterable(own))[:_MAX_SOURCE_OPERANDS]
        yield from self._from_one_amount("told", stated)
        yield from self._from_one_amount("own", own_amounts)
        for (one, close), factor in product(own_amounts, _OMITTED_FACTORS):
            if not one.unit and (self.unit or self.step >= factor):
                yield (f"unsaid {factor:.0f}", f"close {close}"), self._converted([one], (factor,))

    def comparable(self, amounts: Iterable[Quantity]) -> list[Quantity]:
        """The amounts that may have the unit of this one."""
        return [one for one in amounts if self._is_comparable(one)]

    def differences_between(self, amounts: Sequence[Quantity]) -> Results:
        """The differences between any two of these amounts."""
        for one, other in combinations(amounts, 2):
            for name, results in self._sums(one, other):
                yield from results if name == "difference" else ()

    def differences_to_shown(self, amounts: Sequence[Quantity], amounts_between: AmountsBetween) -> Results:
        """The differences between these amounts and all shown amounts."""
        reach = self.last * self.step
        for one in amounts:
            unit, factor = (self.unit, self.factor) if self.unit else (one.unit, one.factor)
            own = self._in_own_unit(one)
            for scale, base in ((factor, unit), (1.0, "")) if unit else ((1.0, ""),):
                shown_amounts = amounts_between(base, (own - reach) * scale, (own + reach) * scale)
                yield from (abs(own - amount / scale) for amount in shown_amounts)

    def _stated_with_sources(
        self, stated: Sequence[_PlacedAmount], source_amounts: Iterable[Sequence[_PlacedAmount]]
    ) -> Iterator[Derivation]:
        for one in source_amounts:
            amounts = {quantity.amount for quantity, _ in one}
            for first in stated:
                where = "told there+own" if first[0].amount in amounts else "told+own"
                yield from self._pairs(where, ((first, other) for other in one if other[0].amount != first[0].amount))

    def _within_sources(self, source_amounts: Sequence[Sequence[_PlacedAmount]]) -> Iterator[Derivation]:
        for one in source_amounts:
            yield from self._pairs("next", pairwise(one))
            apart = ((first, other) for index, first in enumerate(one) for other in one[index + 2 :])
            yield from self._pairs("own", apart)
            yield from self._sums_of_runs(one)
            yield ("total",), self._totals([[quantity for quantity, _ in one]])
        across = chain.from_iterable(product(one, other) for one, other in combinations(source_amounts, 2))
        yield from self._pairs("across", islice(across, _MAX_PAIRS))

    def _from_one_amount(self, where: str, quantities: Iterable[_PlacedAmount]) -> Iterator[Derivation]:
        for (one, close), (name, factors) in product(
            quantities, (("usual", _USUAL_FACTORS), ("seldom", _RARE_FACTORS))
        ):
            features = (f"{name} {where}", f"{name} {self._unit_feature(one)}", f"close {close}")
            is_conversion = one.unit != self.unit
            used = [factor for factor in factors if is_conversion or factor not in _DECIMAL_SHIFTS]
            yield features, self._converted([one], used)

    def _unit_feature(self, *quantities: Quantity) -> str:
        if not self.unit:
            return "bare"
        return f"unit {sum(one.unit == self.unit for one in quantities)} {sum(not one.unit for one in quantities)}"

    def _pairs(self, where: str, pairs: Iterable[tuple[_PlacedAmount, _PlacedAmount]]) -> Iterator[Derivation]:
        for (one, close), (other, as_close) in pairs:
            for name, results in self._pair_results(one, other):
                yield (
                    (f"{name} {where}", f"{name} {self._unit_feature(one, other)}", f"close {close + as_close}"),
                    results,
                )

    def _sums_of_runs(self, quantities: Sequence[_PlacedAmount]) -> Iterator[Derivation]:
        for start in range(len(quantities) - 2):
            total, size = 0.0, 0
            for one, _ in quantities[start : start + _MAX_RUN]:
                if not self._is_comparable(one) or one.unit != quantities[start][0].unit:
                    break
                total, size = total + self._in_own_unit(one), size + 1
                if size > _PAIR:
                    yield (f"run {self._unit_feature(one)}", f"run close {quantities[start][1]}"), iter((total,))

    def _pair_results(self, one: Quantity, other: Quantity) -> Iterator[tuple[str, Results]]:
        yield from self._sums(one, other)
        yield "product", self._products(one, other)
        yield "share", self._shares(one, other)

    def _lengths_of_time(self, ones: _Instants, others: _Instants) -> Results:
        if self.unit == "mo" or (self.unit == "s" and self.factor >= DAY_SECONDS):
            yield from (_length_between(*days, self.unit) / self.factor for days in product(ones.days, others.days))
        elif self.unit == "s":
            yield from (abs(one - other) * 60 / self.factor for one, other in product(ones.times, others.times))

    def _is_comparable(self, one: Quantity) -> bool:
        return not self.unit or not one.unit or one.unit == self.unit

    def _in_own_unit(self, one: Quantity) -> float:
        return one.size / self.factor if self.unit and one.unit == self.unit else one.amount

    def _totals(self, lists: Iterable[Sequence[Quantity]]) -> Results:
        for quantities in lists:
            comparable = [self._in_own_unit(one) for one in quantities if one.unit == self.unit]
            if len(comparable) > _PAIR:
                yield sum(comparable)

    def _triples(self, quantities: Sequence[Quantity]) -> Results:
        comparable = [self._in_own_unit(one) for one in quantities if self._is_comparable(one)][:_MAX_TERMS]
        yield from (sum(terms) for terms in combinations(comparable, 3))

    def _sums(self, one: Quantity, other: Quantity) -> Iterator[tuple[str, Results]]:
        if (
            self._is_comparable(one)
            and self._is_comparable(other)
            and (one.unit == other.unit or not one.unit or not other.unit)
        ):
            first, second = self._in_own_unit(one), self._in_own_unit(other)
            yield "sum", iter((first + second,))
            yield "difference", iter((abs(first - second),))

    def _converted(self, quantities: Sequence[Quantity], factors: Sequence[float]) -> Results:
        for factor in factors:
            for one in quantities:
                if self._is_comparable(one):
                    yield self._in_own_unit(one) * factor
                    yield self._in_own_unit(one) / factor

    def _in_other_units(self, quantities: Sequence[Quantity]) -> Results:
        for one in quantities:
            if one.unit == self.unit == DEGREES:
                yield fahrenheit_from_celsius(one.amount)
                yield celsius_from_fahrenheit(one.amount)
            elif one.unit == self.unit and one.factor != self.factor:
                yield self._in_own_unit(one)

    def _products(self, one: Quantity, other: Quantity) -> Results:
        for first, second in ((one, other), (other, one)):
            if not self._is_comparable(first) or (self.unit and second.unit == self.unit):
                continue
            times = second.amount / 100 if second.unit == "%" else second.amount
            yield self._in_own_unit(first) * times
            if second.unit == "%":
                yield self._in_own_unit(first) * (1 + times)
                yield self._in_own_unit(first) * (1 - times)

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
            elif self._is_comparable(first) and second.unit != self.unit:
                yield self._in_own_unit(first) / second.amount


def _placed_amounts(source: SourceOperands) -> list[_PlacedAmount]:
    return [(one, source.closeness_at(one.start)) for one in source.operands.amounts[:_MAX_OPERANDS]]


@dataclass(frozen=True, slots=True)
class _Instants:
    days: tuple[date, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, *operands_of_texts: Operands) -> _Instants:
        one = combined_operands(operands_of_texts)
        days, times = (at.date() for at in one.moments), (at.hour * 60 + at.minute for at in one.moments)
        return cls((*one.days, *days), (*one.times, *times))


def _length_between(one: date, other: date, unit: str) -> float:
    # The length is in seconds, or in whole months if the value is in months or years.
    if unit == "s":
        return abs((one - other).days) * DAY_SECONDS
    first, last = sorted((one, other))
    return (last.year - first.year) * YEAR_MONTHS + last.month - first.month - (last.day < first.day)
