"""Least squares with prices that are never negative, in plain Python: coordinate descent on the normal equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Row = tuple[float, Mapping[str, float]]
"""A text's weight, and its counts per true token: with right prices, the priced counts of every row add up to 1."""

_SWEEPS: Final = 120
_STILL: Final = 3e-4  # the fit ends when no price changes by more: a thousandth of the lowest price that matters


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """How strongly a price is drawn towards its start value: rare characters keep their class's price."""

    towards: Mapping[str, float]
    strength: Mapping[str, float]
    otherwise: float


def fit(rows: Sequence[Row], fixed: Mapping[str, float], shrinkage: Shrinkage) -> dict[str, float]:
    """The prices of everything in the rows but what is ``fixed``.

    Minimises the sum of weighted squared relative errors plus the shrinkage; deterministic.
    """
    names = sorted({name for _, row in rows for name in row if name not in fixed})
    index = {name: number for number, name in enumerate(names)}
    gram: list[dict[int, float]] = [{} for _ in names]
    aim = [0.0] * len(names)
    for weight, row in rows:
        rest = 1.0 - sum(value * fixed[name] for name, value in row.items() if name in fixed)
        own = [(index[name], value) for name, value in row.items() if name not in fixed]
        for first, value in own:
            aim[first] += weight * value * rest
            line = gram[first]
            for second, other in own:
                line[second] = line.get(second, 0.0) + weight * value * other
    prior = [shrinkage.towards.get(name, 0.0) for name in names]
    pull = [shrinkage.strength.get(name, shrinkage.otherwise) for name in names]
    prices = list(prior)
    for _ in range(_SWEEPS):
        if max(_sweep(gram, aim, prior, pull, prices), default=0.0) < _STILL:
            break
    return {**dict(zip(names, prices, strict=True)), **fixed}


def _sweep(
    gram: Sequence[Mapping[int, float]],
    aim: Sequence[float],
    prior: Sequence[float],
    pull: Sequence[float],
    prices: list[float],
) -> Iterator[float]:
    """Update all prices once, in place; yield how much each changed."""
    for number, line in enumerate(gram):
        others = sum(value * prices[other] for other, value in line.items() if other != number)
        wanted = aim[number] - others + pull[number] * prior[number]
        price = max(0.0, wanted / (line.get(number, 0.0) + pull[number]))
        yield abs(price - prices[number])
        prices[number] = price
