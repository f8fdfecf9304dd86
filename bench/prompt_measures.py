"""Two versions of the summarizer's prompt in pairs: the same case, answered under each, measured alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from app.core.model.model_io import Proposal
from app.core.summarizer.candidate import CandidateError, parse_candidate
from app.core.summarizer.prompts import PromptWords, render_summary
from app.core.text.token_counts import estimate_text
from app.core.validation.gate import judge
from bench.fidelity import interval
from bench.trust.playing import played
from bench.trust.rounds import Case

Verdict = Literal["worse", "better", "no difference shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Of one answer; of every one of them less is better."""

    refused: float
    """1 where the whole answer was refused."""
    asked_again: float
    """1 where something of it had to be asked about again."""
    novel: float
    """Statements with a value that no message holds."""
    items_refused: float
    """Of its items, the share that is not served as it was written."""
    lost: float
    """Passages whose exact values nothing would tell any more, so that code has to bring them back."""
    tokens_written: float
    tokens_read: float
    """Of the prompt."""


NAMES: Final[Mapping[str, str]] = {
    "refused": "answers refused",
    "asked_again": "answers asked about again",
    "novel": "novel values an answer",
    "items_refused": "share of items refused",
    "lost": "passages lost an answer",
    "tokens_written": "tokens written",
    "tokens_read": "tokens read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure: its mean under each version, and what changes in pairs, with a 95 % interval."""

    name: str
    pairs: int
    old: float
    new: float
    change: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """What the interval says."""
        if self.low > 0:
            return "worse"
        return "better" if self.high < 0 else "no difference shown"


def measured(case: Case, words: PromptWords) -> Measures:
    """What the checks make of a case's answer, and what it weighs with its prompt."""
    report = judge(Proposal(text=case.answer, finish="stop", model="recorded"), case.request)
    failures = report.examined.failures if report.examined else ()
    told = played(case)
    served = set(told.items.values()) if told.applied else set[str]()
    written = _items(case)
    prompt = render_summary(case.request, words)
    return Measures(
        refused=float(told.reason is not None),
        asked_again=float(told.asked_again),
        novel=float(sum(bool(failure.values) for failure in failures)),
        items_refused=sum(text not in served for text in written) / len(written) if written else 0.0,
        lost=float(len(told.applied.lost)) if told.applied else 0.0,
        tokens_written=float(estimate_text(case.answer)),
        tokens_read=float(estimate_text(prompt.system) + estimate_text(prompt.user)),
    )


def compared(old: Mapping[str, Measures], new: Mapping[str, Measures]) -> list[Difference]:
    """Every measure over the cases that both have; empty where they have none in common."""
    shared = sorted(old.keys() & new.keys())
    if not shared:
        return []
    before, after = ([asdict(of[name]) for name in shared] for of in (old, new))
    return [_difference(name, [one[name] for one in before], [one[name] for one in after]) for name in NAMES]


def _difference(name: str, old: Sequence[float], new: Sequence[float]) -> Difference:
    change, low, high = interval([after - before for before, after in zip(old, new, strict=True)])
    return Difference(
        name=name,
        pairs=len(old),
        old=sum(old) / len(old),
        new=sum(new) / len(new),
        change=change,
        low=low,
        high=high,
    )


def _items(case: Case) -> list[str]:
    try:
        return [item.text for item in parse_candidate(case.answer, case.request.schema).items]
    except CandidateError:
        return []
