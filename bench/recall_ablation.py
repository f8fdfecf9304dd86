"""Removes recall's least useful features step by step, fits again and measures on talks left out. Needs numpy.

Features are computed once. Each step tries every remaining group: its columns are removed, the weights of the others
are adjusted by the curvature of the loss, and evidence recall is measured at 5, 10 and 20 % of each talk. The group
whose removal gives the best lower bound of the difference to the start is removed; then the weights are fitted again.
The process ends when the interval of the difference would no longer exclude a loss of one point. A group is kept if its
removal costs the talks in languages other than English a point.

LoCoMo's talks are measured with weights of the other four, in each of their four kinds; a question counts with its mean
over the kinds. The made-up talks and the open half of ``bench/trust`` are measured with weights of all five. The
odd-numbered questions of the made-up talks are fitted on; the even-numbered ones are not, and do not affect choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from app.core.text.language import detect
from bench.fidelity_made import FOLDER as MADE
from bench.recall_fit import (
    KINDS,
    NEAREST,
    SHARES,
    Array,
    Rows,
    fitted,
    learned_from,
    learned_from_made_talks,
    recalls,
    rows_of,
)
from bench.recall_talks import Talk, open_trust_talks, talks

LOSS: Final = -1.0
"""The lower bound of the difference, in points of evidence recall, must stay above this."""
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "messages two places away": ("two_before",),
    "sittings": ("sitting",),
    "second hop": ("second_hop",),
    "questions": ("asks", "asks_own"),
    "answers to questions": ("follows_match",),
    "information": ("information", "mean_information", "named_information"),
    "repeated words": ("echo",),
    "times": ("says_when", "when_near"),
    "dates": ("date",),
    "numbers": ("number",),
    "table of kinds": ("kind", "kind_near"),
    "table of forms": ("form", "form_near"),
    "families": ("family_near",),
    "beside long answers": ("user_says",),
}
"""Groups of features that one piece of code or one table makes: without the features it can be deleted."""
_MEASURED: Final = SHARES[:3]
_BOUNDS: Final = (2.5, 97.5)
_RESAMPLES: Final = 2_000
_WITHIN: Final = 200
"""Resamples of each talk's questions; each resample of the talks takes one of them."""
_TRIED: Final = 12
"""How many groups a step tries: those with the best results in the last step."""

Found = list[Array]
"""For each talk and question, the fraction of the tried shares at which all evidence of the question is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of some weights."""

    locomo: Found
    made: Found
    trust: Found

    @property
    def choosing(self) -> Found:
        """The results by which groups are chosen."""
        return [*self.locomo, *(one[0::2] for one in self.made), *self.trust]

    @property
    def unseen(self) -> Found:
        """The results of questions that do not affect choices."""
        return [one[1::2] for one in self.made]


@dataclass(slots=True, kw_only=True)
class Weighted:
    """The remaining features and their weights: with each talk left out, then of all talks."""

    columns: list[int]
    weights: list[Array]
    curvatures: list[Array] = field(default_factory=list)

    def without(self, gone: Sequence[int]) -> Weighted:
        """The weights of the others if these columns are removed, estimated from the curvature."""
        out = [place for place, column in enumerate(self.columns) if column in gone]
        kept = [place for place, column in enumerate(self.columns) if column not in gone]
        weights = [
            found[kept] + np.linalg.solve(curvature[np.ix_(kept, kept)], curvature[np.ix_(kept, out)] @ found[out])
            for found, curvature in zip(self.weights, self.curvatures, strict=True)
        ]
        return Weighted(columns=[self.columns[place] for place in kept], weights=weights)


class Ablation:
    """The features of all talks, computed once.

    Args:
        locomo: The talks that weights are fitted on.
    """

    def __init__(self, locomo: Sequence[Talk]) -> None:
        made = [talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path)]
        trust = open_trust_talks()
        found = [rows_of(talk) for talk in locomo]
        self.names = found[0][0]
        given = [rows for _, rows in found]
        self._learned = [learned_from(rows, self.names.index(NEAREST)) for rows in given]
        self._made_learned = learned_from_made_talks(self.names)
        self._kinds = [
            given if change is None else [rows_of(change(talk))[1] for talk in locomo] for change in KINDS.values()
        ]
        self._made, self._trust = ([rows_of(talk)[1] for talk in each] for each in (made, trust))
        self._foreign = [detect("\n".join(talk.texts)) not in {"en", None} for talk in (*made, *trust)]

    def fit(self, columns: Sequence[int], start: Sequence[Array] | None = None) -> Weighted:
        """The weights of these features, with each talk left out, then of all talks."""
        learned, found = self._learned, Weighted(columns=list(columns), weights=[])
        sets = [[*learned[:index], *learned[index + 1 :]] for index in range(len(learned))]
        for index, each in enumerate([*sets, learned]):
            one = fitted([*each, *self._made_learned], np.array(found.columns), start[index] if start else None)
            found.weights.append(one.weights)
            found.curvatures.append(one.curvature)
        return found

    def measure(self, given: Weighted) -> Measured:
        """The results of these weights."""
        weights = [self._whole(given.columns, found) for found in given.weights]
        kinds = [[_served(rows, weights[index]) for index, rows in enumerate(kind)] for kind in self._kinds]
        return Measured(
            locomo=[np.mean(each, axis=0) for each in zip(*kinds, strict=True)],
            made=[_served(rows, weights[-1]) for rows in self._made],
            trust=[_served(rows, weights[-1]) for rows in self._trust],
        )

    def foreign(self, found: Measured) -> Found:
        """The results of the talks that are not English."""
        others = (*found.made, *found.trust)
        return [one for one, is_foreign in zip(others, self._foreign, strict=True) if is_foreign]

    def _whole(self, columns: Sequence[int], weights: Array) -> Array:
        whole = np.zeros(len(self.names))
        whole[columns] = weights
        return whole

    def line(self, name: str, left: int, start: Measured, now: Measured) -> str:
        """A line with the loss compared with the start, in points."""
        mean = _points(start.choosing, now.choosing)
        low, high = interval(start.choosing, now.choosing)
        parts = (
            (start.locomo, now.locomo),
            (start.made, now.made),
            (start.unseen, now.unseen),
            (start.trust, now.trust),
            (self.foreign(start), self.foreign(now)),
        )
        shown = " | ".join(f"{_points(before, after):+.1f}" for before, after in parts)
        return f"| {name} | {left} | {mean:+.2f} ({low:+.2f} to {high:+.2f}) | {shown} |"


def report(locomo: Sequence[Talk], first: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[str]:
    """The table, a line after each step; then what the removal of each remaining group costs by itself.

    Args:
        locomo: The talks that weights are fitted on.
        first: Groups that are removed before any is chosen.
        kept: Groups that are never removed.
    """
    ablation = Ablation(locomo)
    names = ablation.names
    current = ablation.fit(range(len(names)))
    start = ablation.measure(current)
    sizes = [sum(map(len, found)) for found in (start.locomo, start.made, start.unseen, start.trust)]
    heads = ("LoCoMo", "made", "made, unseen", "trust")
    heads_sized = " | ".join(f"{head} ({size})" for head, size in zip(heads, sizes, strict=True))
    foreign = sum(map(len, ablation.foreign(start)))
    yield f"| without | features | all | {heads_sized} | not English ({foreign}) |"
    yield f"|---|{'---:|' * 7}"
    known: dict[str, float] = {}
    given = list(reversed(first))
    while True:
        tried = {name: gone for name, gone in _left(names, current.columns) if name not in kept}
        if given:
            name = given.pop()
            tried = {name: tried[name]}
        best = _best(ablation, current, start, tried, known)
        if best is None or best[0] < LOSS:
            break
        _, name, found = best
        current = ablation.fit(found.columns, found.weights)
        yield ablation.line(name, len(current.columns), start, ablation.measure(current))
    now = ablation.measure(current)
    yield "\nEach of the others, against what is left:"
    for name, gone in _left(names, current.columns):
        found = current.without(gone)
        yield ablation.line(name, len(found.columns), now, ablation.measure(found))


def interval(start: Found, now: Found) -> tuple[float, float]:
    """The 95 % interval of the paired difference in points; talks, and the questions of each, are resampled."""
    chance = np.random.default_rng(1)
    found = [after - before for before, after in zip(start, now, strict=True)]
    count = np.array([len(one) for one in found])
    sums = np.stack([one[chance.integers(0, len(one), (_WITHIN, len(one)))].sum(1) for one in found])
    drawn = chance.integers(0, len(found), (_RESAMPLES, len(found)))
    means = sums[drawn, chance.integers(0, _WITHIN, drawn.shape)].sum(1) / count[drawn].sum(1)
    low, high = np.percentile(100 * means, _BOUNDS)
    return float(low), float(high)


def _best(
    ablation: Ablation, current: Weighted, start: Measured, left: Mapping[str, Sequence[int]], known: dict[str, float]
) -> tuple[float, str, Weighted] | None:
    """The lower bound, the group to remove, and what is left; ``known`` has the bounds by group, from earlier steps."""
    tried = sorted(left, key=lambda name: -known.get(name, math.inf))
    best: tuple[float, str, Weighted] | None = None
    for name in tried[: max(_TRIED, sum(name not in known for name in tried))]:
        gone = left[name]
        found = current.without(gone)
        now = ablation.measure(found)
        known[name] = low = interval(start.choosing, now.choosing)[0]
        if _points(ablation.foreign(start), ablation.foreign(now)) >= LOSS and (best is None or low > best[0]):
            best = (low, name, found)
    return best


def _left(names: Sequence[str], columns: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """The remaining groups, each set of columns once."""
    seen = set()
    for name, group in GROUPS.items():
        gone = tuple(names.index(one) for one in group if names.index(one) in columns)
        if gone and gone not in seen:
            seen.add(gone)
            yield name, list(gone)


def _served(rows: Rows, weights: Array) -> Array:
    return np.array([np.mean(shares) for _, shares in recalls(rows, weights, _MEASURED)])


def _points(start: Found, now: Found) -> float:
    return 100 * float(np.concatenate(now).mean() - np.concatenate(start).mean())
