"""Amounts among the results of calculations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, product
from typing import Final

from app.core.text.numerals import plain, resolution
from app.core.text.operands import MONEY, Operands, Quantity
from app.core.text.values import Value
from app.core.validation.sought import Basis, Results, Sought, together

_LEAST_AROUND: Final = 38
"""Values that are looked at around one, at least: of a number with one digit there are only few of its size."""
_AROUND_PRICE: Final = 60
"""The same of money: prices and what follows from them are rounder than other numbers."""
_SMALL, _SMALL_BARE = 10, 100
"""A smaller number, zeros at its end apart, follows from nearly any others; one without a unit does so sooner."""
_EXACT: Final = 1e-6
_ROUGHLY: Final = 0.1
_ROUNDED: Final = 0.02
_ROUND_FROM: Final = 1_000
_MOST_OPERANDS: Final = 24
_MOST_TOGETHER: Final = 48
_MOST_PAIRS: Final = 2_000
_MOST_TERMS: Final = 12
_PAIR: Final = 2
_MONTHS: Final = (12.0,)
_USUAL: Final = (12.0, 2.0, 60.0, 1_000.0)
_SELDOM: Final = (3_600.0, 7.0, 52.0, 24.0, 100.0, 10.0)
"""Factors between units: of time, of the metric system, and for each of two."""
_UNSAID: Final = (1_000.0, 100.0, 10.0)
"""Prices are told without their thousands, sizes without their unit."""
_DAY: Final = 86_400.0
_YEAR_MONTHS: Final = 12
_Operation = Callable[[Quantity, Quantity], Results]
_Pairs = Sequence[tuple[Quantity, Quantity]]


def sought_amount(value: Value) -> Sought | None:
    """A number among those of its size and precision."""
    amount, is_money = abs(value.amount or 0.0), value.kind == "money"
    step = resolution(plain(amount))
    at = round(amount / step)
    around = _AROUND_PRICE if is_money else _LEAST_AROUND
    unit = MONEY if is_money else value.base
    last = max(2 * at, at / 2 + around)
    return _Amount(at, at / 2, last, unit, value.factor, step, min(step, 1.0), value.approximate) if at else None


@dataclass(frozen=True, slots=True)
class _Amount(Sought):
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
        if self.is_about:
            tolerance = min(self.step / 2, target * _ROUGHLY)
        elif target >= _ROUND_FROM:
            tolerance = min(self.step / 2, target * _ROUNDED)
        else:
            tolerance = min(self.written / 2, target * _ROUNDED)
        return place if off <= max(tolerance, _EXACT * target) else None

    def shown(self, basis: Basis) -> Results:
        sources = [basis.statement, *basis.own, *basis.near]
        yield from (self._own(one) for source in sources for one in source.amounts if self._is_alike(one))

    def within(self, basis: Basis) -> Iterator[Results]:
        told = basis.statement.amounts[:_MOST_OPERANDS]
        if self.at >= (_SMALL if self.unit else _SMALL_BARE):
            yield from self._of(list(combinations(told, 2)), self._sums, self._products, self._shares)
        if self.unit and self.at >= _SMALL:
            yield self._converted(told, _MONTHS)
        yield self._totals([told])
        yield self._spans(_Instants.of(basis.statement), _Instants.of(basis.statement, *basis.own))

    def kinds(self, basis: Basis) -> Iterator[Results]:
        told = basis.statement.amounts[:_MOST_OPERANDS]
        own = [one.amounts[:_MOST_OPERANDS] for one in basis.own]
        every = _together(own)
        with_own = [pair for pair in product(told, every) if pair[0].amount != pair[1].amount]
        with_near = list(product(told, _together(one.amounts for one in basis.near)))
        in_own = [pair for one in own for pair in combinations(one, 2)]
        across = [pair for one, other in combinations(own, 2) for pair in product(one, other)][:_MOST_PAIRS]
        instants = _Instants.of(basis.statement, *basis.own)
        yield self._spans(instants, instants)
        yield from self._of(list(combinations(told, 2)), self._sums, self._products, self._shares)
        yield self._triples(told)
        if self.unit == "%":  # a share, more often than not
            yield from self._bare([*with_own, *in_own, *across], self._shares)
        yield from self._measured(with_own, self._sums, self._products, self._shares)
        yield self._converted(told, _USUAL)
        yield self._totals(own)
        yield from self._measured(across, self._sums, self._products)
        yield from self._measured(in_own, self._sums, self._shares, self._products)
        yield self._converted(told, _SELDOM)
        yield self._converted([one for one in every if self.unit and not one.unit], _UNSAID)
        yield from self._measured(with_near, self._sums, self._shares, self._products)
        yield from self._bare(with_own, self._products, self._shares, self._sums)

    def _spans(self, ones: _Instants, others: _Instants) -> Results:
        """Lengths of time between two days, or two times of day."""
        if self.unit == "mo" or (self.unit == "s" and self.factor >= _DAY):
            yield from (_between(*days, self.unit) / self.factor for days in product(ones.days, others.days))
        elif self.unit == "s":
            yield from (abs(one - other) * 60 / self.factor for one, other in product(ones.times, others.times))

    def _measured(self, pairs: _Pairs, *operations: _Operation) -> Iterator[Results]:
        """Of pairs in which one operand has the unit that is looked for."""
        chosen = [pair for pair in pairs if self.unit and self.unit in {pair[0].unit, pair[1].unit}]
        yield from self._of(chosen, *operations)

    def _bare(self, pairs: _Pairs, *operations: _Operation) -> Iterator[Results]:
        """Of all other pairs."""
        chosen = [pair for pair in pairs if not self.unit or self.unit not in {pair[0].unit, pair[1].unit}]
        yield from self._of(chosen, *operations)

    @staticmethod
    def _of(pairs: _Pairs, *operations: _Operation) -> Iterator[Results]:
        for operation in operations:
            yield (result for one, other in pairs for result in operation(one, other))

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


def _together(lists: Iterable[Sequence[Quantity]]) -> list[Quantity]:
    return list(dict.fromkeys(quantity for one in lists for quantity in one))[:_MOST_TOGETHER]


@dataclass(frozen=True, slots=True)
class _Instants:
    days: tuple[date, ...]
    times: tuple[int, ...]

    @classmethod
    def of(cls, *several: Operands) -> _Instants:
        one = together(several)
        days, times = (at.date() for at in one.moments), (at.hour * 60 + at.minute for at in one.moments)
        return cls((*one.days, *days), (*one.times, *times))


def _between(one: date, other: date, unit: str) -> float:
    """In seconds; in whole months for a length that is told in months or years."""
    if unit == "s":
        return abs((one - other).days) * _DAY
    first, last = sorted((one, other))
    return (last.year - first.year) * _YEAR_MONTHS + last.month - first.month - (last.day < first.day)
