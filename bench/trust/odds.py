"""``python -m bench.trust.odds``: how likely each kind of calculation is to be right, by honest statements.

The checks try many calculations for an honest, calculated value; one of them is right. The odds that a calculation is
right are fitted to its properties (its marks) by logistic regression, on the open corpora only. The printed weights are
those in ``app/core/validation/odds.py``.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from app.core.summarizer.candidate import parse_candidate
from app.core.text.sentences import sentences
from app.core.text.values import values
from app.core.validation.calculations import expected_value
from app.core.validation.expected_values import Features
from app.core.validation.source_texts import SourceTexts
from bench.report import take_no_options
from bench.trust.rounds import cases
from bench.trust.values import HALVES, Block, blocks

_OPEN: Final = ("open", "loose, open")
_STEPS: Final = 25
_PULL: Final = 1.0
"""How strongly weights that rest on few statements are pulled towards 0."""
_MIN_WEIGHT: Final = 0.15
"""Weights below it are left out."""
_FIRST: Final = -5.0


def tried(given: Iterable[Block]) -> Iterator[tuple[Features, bool]]:
    """The calculations for every calculated value, and whether each gives it; equal ones with one result count once."""
    for block in given:
        for text, seqs, kind in block.statements:
            found = values(text) if kind == "derived" else ()
            novel = [value for value in found if not block.shown.sources_of(value)]
            known = [value for value in found if block.shown.sources_of(value)]
            basis = block.shown.calculation_basis(text, novel, known, seqs)
            for value in novel:
                expected = expected_value(value)
                if expected is None or any(
                    expected.position_of(one) == expected.position
                    for some in expected.results_within_statement(basis)
                    for one in some
                ):
                    continue
                shown = {expected.position_of(one) for one in expected.known_operands(basis)}
                results = {
                    (marks, position)
                    for marks, some in expected.derivations(basis)
                    for position in map(expected.position_of, some)
                    if position is not None and expected.first <= position <= expected.last and position not in shown
                }
                yield from ((marks, position == expected.position) for marks, position in results)


def answers() -> Iterator[Block]:
    """The recorded honest answers of the open half; each statement is treated as calculated."""
    for case in cases():
        candidate = parse_candidate(case.answer, case.request.schema)
        items = [(item.text, item.from_seqs, "derived") for item in candidate.items]
        narratives = [(one, (), "derived") for text in candidate.narrative.values() for one in sentences(text)]
        yield Block(lang=case.talk.language, shown=SourceTexts.of(case.request), statements=[*items, *narratives])


def fitted(given: Iterable[tuple[Features, bool]]) -> dict[str, float]:
    """The weight of each mark, by Newton's method."""
    count, right = Counter[Features](), Counter[Features]()
    for marks, is_right in given:
        count[marks] += 1
        right[marks] += is_right
    names = sorted({mark for marks in count for mark in marks})
    places = {name: place for place, name in enumerate(names)}
    rows = [([*(places[mark] for mark in marks), len(names)], count[marks], right[marks]) for marks in sorted(count)]
    weights = [*[0.0] * len(names), _FIRST]
    best = _likelihood(rows, weights)
    for _ in range(_STEPS):
        step, size = _step(rows, weights), 1.0
        while size > 1e-3:
            moved = [weight + size * one for weight, one in zip(weights, step, strict=True)]
            if (likelihood := _likelihood(rows, moved)) >= best:
                weights, best = moved, likelihood
                break
            size /= 2
    return dict(zip(names, weights[:-1], strict=True))


_Row = tuple[list[int], int, int]


def _likelihood(rows: Sequence[_Row], weights: Sequence[float]) -> float:
    total = -_PULL / 2 * sum(weight**2 for weight in weights[:-1])
    for marks, count, right in rows:
        odds = sum(weights[place] for place in marks)
        total += right * odds - count * (max(odds, 0) + math.log1p(math.exp(-abs(odds))))
    return total


def _step(rows: Sequence[_Row], weights: Sequence[float]) -> list[float]:
    size = len(weights)
    slope = [*(-_PULL * weight for weight in weights[:-1]), 0.0]
    curve = [[0.0] * size for _ in range(size)]
    for place in range(size):
        curve[place][place] = _PULL if place < size - 1 else 1e-9
    for marks, count, right in rows:
        share = 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(weights[place] for place in marks)))))
        for place in marks:
            slope[place] += right - count * share
            for other in marks:
                curve[place][other] += count * share * (1 - share)
    return _solved(curve, slope)


def _solved(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """The solution of a system of linear equations, by elimination."""
    rows = [[*row, last] for row, last in zip(matrix, vector, strict=True)]
    for place in range(len(rows)):
        pivot = max(range(place, len(rows)), key=lambda at: abs(rows[at][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for below in islice(rows, place + 1, None):
            factor = below[place] / rows[place][place]
            if factor:
                below[place:] = [
                    one - factor * other for one, other in zip(below[place:], rows[place][place:], strict=True)
                ]
    solution = [0.0] * len(rows)
    for place in reversed(range(len(rows))):
        rest = sum(rows[place][at] * solution[at] for at in range(place + 1, len(rows)))
        solution[place] = (rows[place][-1] - rest) / rows[place][place]
    return solution


def table(weights: Mapping[str, float]) -> str:
    """The weights as they are in the code."""
    kept = sorted((mark, weight) for mark, weight in weights.items() if abs(weight) >= _MIN_WEIGHT)
    return "\n".join(f'    "{mark}": {weight:.2f},' for mark, weight in kept)


def main() -> int:
    """Run the command; return its exit status."""
    given = [block for name in _OPEN for block in blocks(map(json.loads, HALVES[name].open(encoding="utf-8")))]
    sys.stdout.write(table(fitted(tried([*given, *answers()]))) + "\n")
    return 0


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())
