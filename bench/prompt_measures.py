"""Compares two versions of the summarizer's prompt in pairs: the same case, answered under each version."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import fmean
from typing import Final, Literal

from app.core.model.model_io import Proposal
from app.core.summarizer.candidate import CandidateError, parse_candidate
from app.core.summarizer.prompts import PromptWords, render_summary
from app.core.text.token_counts import estimate_text
from app.core.validation.gate import judge
from bench.trust.playing import played
from bench.trust.rounds import Case

Verdict = Literal["worse", "better", "no difference shown", "too few conversations"]
ENOUGH: Final = 5
"""The fewest conversations for which an interval is meaningful."""
_DRAWS: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The measures of one answer; for each of them less is better."""

    refused: float
    """1 if the whole answer was refused, else 0."""
    asked_again: float
    """1 if the model had to be asked again about something, else 0."""
    novel: float
    """How many statements have a value that no message has."""
    items_refused: float
    """The share of its items that are not served as they were written."""
    lost: float
    """How many passages have exact values that the answer would lose, so that code has to bring them back."""
    by_id: float
    """How many texts name a kept passage by its id, which no reader sees."""
    tokens_written: float
    tokens_read: float
    """The tokens of the prompt."""


NAMES: Final[Mapping[str, str]] = {
    "refused": "answers refused",
    "asked_again": "answers asked about again",
    "novel": "novel values an answer",
    "items_refused": "share of items refused",
    "lost": "passages lost an answer",
    "by_id": "texts an answer that name a passage by its id",
    "tokens_written": "tokens written",
    "tokens_read": "tokens read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure: its mean under each version, and the mean change in pairs, with a 95 % interval.

    The interval resamples whole conversations, since the pairs of one conversation depend on each other.
    """

    name: str
    pairs: int
    talks: int
    """How many conversations the pairs are from."""
    old: float
    new: float
    change: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the interval."""
        if self.talks < ENOUGH:
            return "too few conversations"
        if self.low > 0:
            return "worse"
        return "better" if self.high < 0 else "no difference shown"


def measured(case: Case, words: PromptWords) -> Measures:
    """The results of the checks of a case's answer, and the tokens of answer and prompt."""
    report = judge(Proposal(text=case.answer, finish="stop", model="recorded"), case.request)
    failures = report.examined.failures if report.examined else ()
    outcome = played(case)
    served = set(outcome.items.values()) if outcome.applied else set[str]()
    written = _items(case)
    prompt = render_summary(case.request, words)
    return Measures(
        refused=float(outcome.reason is not None),
        asked_again=float(outcome.asked_again),
        novel=float(sum(bool(failure.values) for failure in failures)),
        items_refused=sum(text not in served for text in written) / len(written) if written else 0.0,
        lost=float(len(outcome.applied.lost)) if outcome.applied else 0.0,
        by_id=float(sum(repair.reason == "passage_named" for repair in report.repairs)),
        tokens_written=float(estimate_text(case.answer)),
        tokens_read=float(estimate_text(prompt.system) + estimate_text(prompt.user)),
    )


def compared(old: Mapping[str, Measures], new: Mapping[str, Measures]) -> list[Difference]:
    """Every measure over the cases that both versions have; empty if they have none in common."""
    shared = sorted(old.keys() & new.keys())
    if not shared:
        return []
    before, after = ({name: asdict(of[name]) for name in shared} for of in (old, new))
    return [_difference(name, {one: (before[one][name], after[one][name]) for one in shared}) for name in NAMES]


def _difference(name: str, pairs: Mapping[str, tuple[float, float]]) -> Difference:
    by_talk: dict[str, list[float]] = {}
    for case, (old, new) in pairs.items():
        by_talk.setdefault(case.partition("/")[0], []).append(new - old)
    changes = list(by_talk.values())
    draw = random.Random(1)
    means = sorted(fmean(chain(*draw.choices(changes, k=len(changes)))) for _ in range(_DRAWS))
    return Difference(
        name=name,
        pairs=len(pairs),
        talks=len(changes),
        old=fmean(old for old, _ in pairs.values()),
        new=fmean(new for _, new in pairs.values()),
        change=fmean(chain(*changes)),
        low=means[int(0.025 * _DRAWS)],
        high=means[int(0.975 * _DRAWS) - 1],
    )


def _items(case: Case) -> list[str]:
    try:
        return [item.text for item in parse_candidate(case.answer, case.request.schema).items]
    except CandidateError:
        return []
