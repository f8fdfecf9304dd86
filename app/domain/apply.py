"""From an accepted candidate to a state version: merge, prune to the cap, lay out, and prove that it is smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.domain.anchors.values import Anchor, FoundAnchor
from app.domain.candidate import Candidate
from app.domain.compaction import CompactionPlan
from app.domain.conversation import Layout, Message, Sums
from app.domain.gate import not_smaller
from app.domain.layout import layout_of
from app.domain.merge import MergeResult, merge
from app.domain.policy import Budgets, CompactionPolicy
from app.domain.pruning import prune, state_of
from app.domain.records import EntryCounts
from app.domain.state import StateEntry, StateSchema, StateVersion
from app.domain.tokens import MESSAGE_OVERHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """Everything that an accepted candidate is applied to."""

    schema: StateSchema
    policy: CompactionPolicy
    budgets: Budgets
    plan: CompactionPlan
    span: tuple[Message, ...]
    previous: tuple[StateEntry, ...]
    next_entry: int
    version: int
    """The number of the version to be written."""
    tokens_before: int
    """The context's size now."""
    block_before: int
    """What the present state block weighs, its anchors included."""
    target: int
    """Estimated tokens that the whole context is to end below: the budget's target, by the conversation's factor."""
    anchors: tuple[Anchor, ...] = ()
    """Active anchors up to the end of the chunk whose messages are not held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A new state, ready to be saved."""

    state: dict[str, Any]
    entries: tuple[StateEntry, ...]
    """Served ones first, then those that the cap pushed out."""
    next_entry: int
    layout: Layout
    counts: EntryCounts
    tokens_after: int
    """The context's size with this state, at the same tail."""
    found: tuple[FoundAnchor, ...] = ()
    """Anchors that the model proposed and that stand verbatim in the span."""


def apply_candidate(candidate: Candidate, to: Applying) -> Applied | None:
    """The state that this candidate leads to, or ``None`` when it saves too little.

    What is weighed is the candidate as it came: one that repeats its input is no summary, though the cap would cut it
    down to size. The state stays within its cap; where the context would still be above the target after the last
    chunk, it is pruned as far as that takes, at most to its planned size.
    """
    merged = merge(to.schema, to.previous, candidate, to.span, to.version, to.next_entry)
    proposed = _laid_out(state_of(to.schema, merged.entries), to)
    if not_smaller(_said(to), to.block_before, proposed.tokens):
        return None
    applied = _pruned(merged, to, cap=to.budgets.state_cap)
    excess = applied.tokens_after - to.budgets.target
    if to.plan.is_last and excess > 0:
        applied = _pruned(merged, to, cap=max(applied.layout.tokens - excess, to.budgets.state_tokens))
    return applied


def version_of(
    applied: Applied, to: Applying, *, boundary: UUID, covered: Sums, compaction_id: UUID, layout: Layout, now: datetime
) -> StateVersion:
    """The version to be stored; ``layout`` names the held messages that follow the block."""
    return StateVersion(
        version=to.version,
        state_schema=to.schema.name,
        state=applied.state,
        entries=applied.entries,
        next_entry=applied.next_entry,
        boundary_seq=to.plan.to_seq,
        boundary_message_id=boundary,
        covered=covered,
        layout=layout,
        compaction_id=compaction_id,
        created_at=now,
    )


def served(entries: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
    """The entries that are in the state, without those that the cap pushed out."""
    return tuple(entry for entry in entries if not entry.pruned)


def _said(to: Applying) -> int:
    """What the folded messages say, without the marks around each: echoing them all would already save those."""
    marks = MESSAGE_OVERHEAD if to.policy.estimator == "script" else 0
    return max(to.plan.folded_tokens - marks * to.plan.messages, 0)


def _pruned(merged: MergeResult, to: Applying, *, cap: int) -> Applied:
    def fits(state: dict[str, Any]) -> bool:
        """The block with its frame: so the planner and the policy's floor reckon it."""
        return _laid_out(state, to).tokens <= cap

    kept, pushed_out = prune(to.schema, merged.entries, fits=fits)
    state = state_of(to.schema, kept)
    layout = _laid_out(state, to)
    return Applied(
        state=state,
        entries=(*kept, *pushed_out),
        next_entry=merged.next_entry,
        layout=layout,
        counts=merged.counts,
        tokens_after=to.tokens_before - to.plan.folded_tokens - to.block_before + layout.tokens,
    )


def _laid_out(state: dict[str, Any], to: Applying) -> Layout:
    return layout_of(to.schema, state, served_as=to.policy.served_as, estimator=to.policy.estimator)
