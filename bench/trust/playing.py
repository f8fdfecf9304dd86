"""One recorded answer through every check and the merge: what is served of it in the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.domain.gating.gate import judge
from app.domain.merging.apply import Applied, Applying, apply_candidate, served
from app.domain.model_io import Proposal, SummaryRequest
from app.domain.planning.compaction import CompactionPlan
from app.domain.policies.policy import budgets_of
from app.domain.policies.presets import resolve
from app.domain.states.adopting import next_after
from bench.replay import OUTPUT_LIMIT
from bench.trust.rounds import Case

_WINDOW: Final = 1_000_000
_ROOM: Final = 20_000
"""Tokens of a state: no case is about pruning."""
_FOLDED: Final = 8_000
"""A usual chunk; those of the corpus are smaller, and none of its cases is about size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of an answer."""

    reason: str | None
    """Why it was refused; ``None``: it was not."""
    applied: Applied | None = None

    @property
    def items(self) -> dict[str, str]:
        """Served texts of lists, by entry id."""
        entries = served(self.applied.entries) if self.applied else ()
        return {entry.id: entry.text for entry in entries if entry.role != "narrative"}

    @property
    def texts(self) -> dict[str, str]:
        """Narratives by field."""
        entries = served(self.applied.entries) if self.applied else ()
        return {entry.field: entry.text for entry in entries if entry.role == "narrative"}

    @property
    def briefs(self) -> dict[int, str]:
        """Briefs of the described stretches by number."""
        return {one.number: one.brief for one in self.applied.digests} if self.applied else {}


def played(case: Case, answer: str | None = None) -> Played:
    """The case's own answer, or another in its place, as the service would take it."""
    request = case.request
    proposal = Proposal(text=case.answer if answer is None else answer, finish="stop", model="recorded")
    report = judge(proposal, request)
    if report.reason:
        return Played(reason=report.reason)
    applied = apply_candidate(report, _applying(case, request))
    return Played(reason=applied) if isinstance(applied, str) else Played(reason=None, applied=applied)


def planted(case: Case, lie: Mapping[str, Any]) -> str:
    """The case's answer with one lie in it."""
    answer = json.loads(case.answer)
    field, index = lie.get("field"), lie.get("index")
    if lie["kind"] == "dropped_valid":
        drop = {"entry": lie["entry"], "reason": lie["reason"], "by_seq": lie["by_seq"]}
        answer.setdefault("dropped", []).append(drop)
    elif index is None:
        answer[field] = lie["text"]
    elif index == -1:
        made = {"text": lie["text"], "from": lie.get("from", []), "replaces": lie.get("replaces", [])}
        answer.setdefault(field, []).append(made)
    elif field == "segments":
        answer[field][index]["brief"] = lie["text"]
    else:
        answer[field][index]["text"] = lie["text"]
    return json.dumps(answer, ensure_ascii=False)


def _applying(case: Case, request: SummaryRequest) -> Applying:
    overrides: dict[str, Any] = {"context_window": _WINDOW}
    if resolve(case.preset, overrides).state_share is None:
        overrides["state_tokens"] = _ROOM
    policy = resolve(case.preset, overrides)
    first, last = request.messages[0].seq, request.messages[-1].seq
    block = 400 if request.previous else 0
    return Applying(
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
        next_entry=next_after(request.previous, 1),
        version=case.round + 1,
        tokens_before=10 * _FOLDED,
        block_before=block,
        target=10 * _FOLDED,
        anchors=request.anchors,
    )
