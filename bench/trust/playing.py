"""Puts one recorded answer through every check and the merge, and returns what is served of it at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from app.core.model.doubt_marks import PARAGRAPH
from app.core.model.model_io import Doubt, Proposal, SummaryRequest
from app.core.model.policies.budgets import budgets_of
from app.core.model.policies.resolving import resolve
from app.core.planning.compaction import CompactionPlan
from app.core.state.apply import AppliedCandidate, ApplyContext, apply_candidate, served
from app.core.state.schema_change import next_entry_number
from app.core.summarizer.candidate import parse_candidate
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentences
from app.core.validation.asking import doubts_of
from app.core.validation.gate import judge, judge_again
from bench.replay import OUTPUT_LIMIT
from bench.trust.rounds import Case

_WINDOW: Final = 1_000_000
_STATE_TOKENS: Final = 20_000
"""Tokens of a state: so many that nothing is pruned, since no case is about pruning."""
_FOLDED: Final = 8_000
"""Tokens of a usual chunk, assumed for all cases: the corpus has smaller ones, but no case is about size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The outcome of an answer."""

    reason: str | None
    """Why the answer was refused; ``None`` if it was not."""
    applied: AppliedCandidate | None = None
    asked_again: bool = False
    """Whether the writer was asked again about something."""

    @property
    def items(self) -> dict[str, str]:
        """Served texts of lists, by entry id, without days that code added, since these replace nothing."""
        entries = served(self.applied.entries) if self.applied else ()
        return {entry.id: without_added_days(entry.text) for entry in entries if entry.role != "narrative"}

    @property
    def texts(self) -> dict[str, str]:
        """Narratives by field, followed by what earlier narratives said."""
        entries = served(self.applied.entries) if self.applied else ()
        narratives = [entry for entry in entries if entry.role == "narrative"]
        return {
            name: PARAGRAPH.join(without_added_days(entry.text) for entry in narratives if entry.field == name)
            for name in dict.fromkeys(entry.field for entry in narratives)
        }

    @property
    def briefs(self) -> dict[int, str]:
        """The briefs of the described stretches, by number."""
        return {one.number: one.brief for one in self.applied.digests} if self.applied else {}


def played(case: Case, answer: str | None = None, *, twin: str | None = None) -> Played:
    """Process the case's own answer, or ``answer`` instead, as the service would.

    The writer is asked once again about failures. Without ``twin`` the writer repeats the text; with ``twin`` the reply
    is the text in its place in that other answer, or nothing.
    """
    request, written = case.request, case.answer if answer is None else answer
    applying = _applying(case, request)
    report = judge(_proposal(written), request)
    if report.examined is not None and report.examined.failures:
        doubts = doubts_of(report.examined.failures)
        texts = [doubt.statement if twin is None else _twin_text(doubt, written, twin, request) for doubt in doubts]
        second = {"statements": [{"n": number, "text": text} for number, text in enumerate(texts, start=1)]}
        report = judge_again(report, _proposal(json.dumps(second, ensure_ascii=False)), replace(request, doubts=doubts))
    if report.reason:
        return Played(reason=report.reason, asked_again=report.examined is not None)
    applied = apply_candidate(report, applying)
    asked = bool(report.examined and report.examined.failures)
    if isinstance(applied, str):
        return Played(reason=applied, asked_again=asked)
    return Played(reason=None, applied=applied, asked_again=asked)


def _proposal(text: str) -> Proposal:
    return Proposal(text=text, finish="stop", model="recorded")


def _twin_text(doubt: Doubt, written: str, twin: str, request: SummaryRequest) -> str:
    """The twin's text in the place of the statement."""
    mine, other = parse_candidate(written, request.schema), parse_candidate(twin, request.schema)
    for one, honest in zip(mine.items, other.items, strict=False):
        if one.field == doubt.field and one.text == doubt.statement:
            return honest.text if honest.field == one.field else ""
    pairs = [(mine.narrative.get(doubt.field, ""), other.narrative.get(doubt.field, ""))]
    pairs += [(one.brief, honest.brief) for one, honest in zip(mine.digests, other.digests, strict=False)]
    for text, honest_text in pairs:
        own_sentences, honest_sentences = sentences(text), sentences(honest_text)
        if doubt.statement in own_sentences:
            place = own_sentences.index(doubt.statement)
            return (
                honest_sentences[place]
                if place < len(honest_sentences) and len(own_sentences) == len(honest_sentences)
                else ""
            )
    return ""


def _applying(case: Case, request: SummaryRequest) -> ApplyContext:
    overrides: dict[str, Any] = {"context_window": _WINDOW}
    if resolve(case.preset, overrides).state_share is None:
        overrides["state_tokens"] = _STATE_TOKENS
    policy = resolve(case.preset, overrides)
    first, last = request.messages[0].seq, request.messages[-1].seq
    block = 400 if request.previous else 0
    return ApplyContext(
        schema=request.schema,
        policy=policy,
        budgets=replace(budgets_of(policy, _WINDOW, output_limit=OUTPUT_LIMIT)),
        plan=CompactionPlan(
            from_seq=first,
            to_seq=last,
            messages=len(request.messages),
            folded_tokens=_FOLDED,
            goal_seq=last + 1,
            predicted_tokens=_FOLDED,
            irreducible=False,
        ),
        span=request.messages,
        previous=request.previous,
        next_entry=next_entry_number(request.previous, 1),
        version=case.round + 1,
        tokens_before=10 * _FOLDED,
        block_before=block,
        target=10 * _FOLDED,
        anchors=request.anchors,
    )
