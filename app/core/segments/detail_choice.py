"""Chooses the detail of each segment within a budget: the upgrades with most value per token, in a fixed order.

This is a multiple-choice knapsack: exactly one form of each segment is served. Forms beneath the upper convex hull of
value over tokens are ignored. The steps along the hulls are taken greedily, by value per token. The result is the
optimum of the linear relaxation, except for its last step (Sinha and Zoltners, The Multiple-Choice Knapsack Problem,
Operations Research 27(3), 1979; Kellerer, Pferschy and Pisinger, Knapsack Problems, 2004, chapter 11). The order does
not depend on the room, and the first step without room ends the choice. So more room never undoes a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.text.budget import first_fitting

FORM_WORTHS: Final[Mapping[str, float]] = {"marker": 0.02, "L3": 0.15, "L2": 0.25, "L1": 0.45, "full": 1.0}
"""The worth of each form of a segment, relative to its originals.

The numbers are a compromise between the share of content words and tokens that a form has (``python -m bench.budgets``)
and its use: a keyword leads to a sentence, and a sentence answers.
"""

NEWEST_BONUS: Final = 2.0
"""How much more a token of the newest segment is worth than one of long ago."""
NEWEST_HALVING: Final = 4
"""The number of segments further back after which ``NEWEST_BONUS`` counts half."""
IMPORTANCE_BONUS: Final = 1.0
"""How much more a segment full of exact values and protected messages is worth."""
RELATION_BONUS: Final = 4.0
"""How much more the segment to which a question refers is worth."""


class Form(NamedTuple):
    """One way of serving a segment."""

    name: str
    tokens: int
    """The tokens that this form adds to a context without the segment."""
    value: float
    line: str = ""
    """The line of this form in the block."""


class Step(NamedTuple):
    """A step from one form of a segment to a better one."""

    segment: int
    """The place of the segment in the list of all segments."""
    form: int
    """The place of the better form among the segment's."""
    tokens: int
    """Tokens that the step adds; negative for a form that is better and also shorter."""
    gain: float
    slope: float
    """Value per token."""


@dataclass(frozen=True, slots=True)
class DetailOptions:
    """The forms in which each of several segments could be served."""

    forms: Sequence[Sequence[Form]]
    """The forms of each segment, the present one first."""
    steps: Sequence[Step]
    """All steps, in the order in which they are taken."""

    def forms_after(self, steps: Sequence[Step]) -> list[Form]:
        """The form of each segment after these steps."""
        last = {step.segment: step.form for step in steps}
        return [forms[last.get(place, 0)] for place, forms in enumerate(self.forms)]


def token_worth(*, rank: int, importance: float, relation: float) -> float:
    """The worth of a token of a segment, relative to one of an old, unimportant, unrelated segment.

    ``rank``: how many segments are newer. ``importance`` and ``relation`` (to the question) are from 0 to 1.
    """
    return 1 + NEWEST_BONUS / (1 + rank / NEWEST_HALVING) + IMPORTANCE_BONUS * importance + RELATION_BONUS * relation


def upgrade_steps(segments: Sequence[Sequence[Form]]) -> list[Step]:
    """All useful steps in the order in which they are taken: by value per token, among equals the newest first.

    Args:
        segments: The forms of each segment, in the order of the conversation. The first one is the present form.
    """
    steps = [step for place, forms in enumerate(segments) for step in _hull_steps(place, forms)]
    return sorted(steps, key=lambda step: (-step.slope, -step.segment))  # stable: steps of a segment keep their order


def fitting_steps(steps: Iterable[Step], max_tokens: int) -> list[Step]:
    """The first steps that fit into ``max_tokens`` tokens."""
    return first_fitting(steps, max_tokens, lambda step: step.tokens)


def _hull_steps(place: int, forms: Sequence[Form]) -> Iterator[Step]:
    # The upper convex hull: each step is flatter than the one before.
    present = forms[0]
    while better := [
        (_slope(form.value - present.value, form.tokens - present.tokens), form.value - present.value, -number)
        for number, form in enumerate(forms)
        if form.value > present.value
    ]:
        slope, gain, number = max(better)
        best = forms[-number]
        yield Step(place, -number, best.tokens - present.tokens, gain, slope)
        present = best


def _slope(gain: float, tokens: int) -> float:
    return gain / tokens if tokens > 0 else math.inf
