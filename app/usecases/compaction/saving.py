"""Saves an applied chunk in one transaction that compares, writes, and records what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from app.core.continuity.comparing import Exam
from app.core.model.anchors import Anchor
from app.core.model.continuity import Continuity
from app.core.model.conversation import Conversation, Layout, Message, MessageStatus, QuietPeriod
from app.core.model.records import Compaction
from app.core.model.state import Verified
from app.core.planning.triggers import quiet_after
from app.core.state.apply import AppliedCandidate, ApplyContext, version_of
from app.core.validation.kept_values import exact_values, fidelity
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import AttemptsResult
from app.usecases.compaction.chunk import Chunk, wants_detail_by_model
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.continuity import added_score, exam_of
from app.usecases.compaction.ending import count_compaction, end_held, end_row, finish
from app.usecases.compaction.segmenting import NewSegment, new_segments, store_segments
from app.usecases.history.anchoring import add_proposed, proposed_anchors
from app.usecases.history.due_anchors import find_due_anchors, find_due_anchors_within
from app.usecases.shared.layouts import LayoutSources, layout_from_sources, layout_sources
from app.usecases.shared.lease import Lease, LeaseLostError, check_held
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Shell
from app.usecases.verification.pending import initial_mark, is_pressing, note_version


async def save_chunk(
    shell: Shell, lease: Lease, chunk: Chunk, attempted: AttemptsResult, applied: AppliedCandidate
) -> Compaction:
    """Install a state, if the lease is still held and what the state was made from is unchanged.

    Returns:
        The row: still running while chunks follow, ``applied`` after the last, ``superseded`` when another change of
        the state, or an erasure, took effect meanwhile, or when because of a change of the policy or of a pin the state
        would no longer make the context smaller.

    Raises:
        LeaseLostError: The row is no longer this process's; nothing is written.
    """
    now = shell.clock.now()
    # New messages may have come while the model worked, even a whole imported history; they are not read under the
    # lock.
    await find_due_anchors(shell, lease.tenant_id, lease.conversation_id)
    ready = _Ready(
        chunk=chunk,
        attempted=attempted,
        applied=applied,
        values=await off_loop(exact_values, chunk.span),
        exam=attempted.exam or await exam_of(chunk),
        segments=await _segments_with_texts(chunk, attempted, applied, now),
        proposed=proposed_anchors(shell, applied.proposed_anchors, chunk.span),
        now=now,
    )
    try:
        return await run_with_retries(partial(_save, shell, lease, ready))
    except _SavesNothingNowError:
        return await end_held(shell, lease, status="superseded", reason="stale", attempted=attempted)


class _SavesNothingNowError(Exception):
    """The rules changed while the model worked, and by the new ones the state makes the context no smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """An accepted answer, with everything that follows from it and the chunk alone."""

    chunk: Chunk
    attempted: AttemptsResult
    applied: AppliedCandidate
    values: Sequence[str]
    """The exact values in the folded messages."""
    exam: Exam
    segments: Sequence[NewSegment]
    proposed: Sequence[Anchor]
    """The anchors that the model proposed."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """The state as it will be served, and how much of the folded messages it preserves."""

    applied: AppliedCandidate
    fidelity: float | None
    continuity: Continuity


async def _save(shell: Shell, lease: Lease, ready: _Ready, results: Results) -> Compaction:
    chunk, attempted = ready.chunk, ready.attempted
    async with shell.uow(lease.tenant_id) as uow:
        present = await uow.conversations.lock(lease.conversation_id)
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        if await is_outdated(uow, chunk, present):
            saved = await end_row(shell, uow, row, status="superseded", reason="stale", attempted=attempted)
        else:
            present = await find_due_anchors_within(uow, shell, present, compute=results)
            resolved = shell.resolver(present)
            await uow.anchors.store_ranking(present.id, ready.applied.ranking)
            await add_proposed(uow, resolved, ready.proposed, chunk.span, compute=results)
            wants_detail = wants_detail_by_model(shell, chunk.resolved)
            ids = await store_segments(uow, present.id, ready.segments, wants_detail=wants_detail, now=ready.now)
            served = await _laid_out(uow, resolved, ready, results)
            mark = _verified_mark(shell, chunk, attempted)
            stored = await _write_state(shell, uow, resolved, chunk, served.applied, row, ids, mark)
            probed = {"fidelity": served.fidelity, "continuity": added_score(row, served.continuity)}
            probed |= _sizes_by_new_rules(row, chunk, resolved, shell.resolver(stored))
            saved = await _record_chunk(shell, uow, lease, row, chunk, attempted, served.applied, stored, probed)
        await uow.commit()
    return saved


async def is_outdated(uow: UnitOfWork, chunk: Chunk, present: Conversation) -> bool:
    """Whether what a chunk was made from has changed meanwhile, in the transaction that saves the new state.

    The content epoch also counts changes after the chunk: a reply that was made again, a file that was removed.
    """
    if not chunk.is_stale(present):
        return False
    read, number = chunk.resolved.conversation, present.state_version
    if (read.state_version, read.boundary_seq) != (number, present.boundary_seq) or not chunk.span:
        return True
    entries = (await uow.states.get(present.id, number)).entries if number else ()
    if chunk.version is not None and not set(chunk.version.entries).issubset(entries):
        return True
    stored = await uow.messages.between(present.id, chunk.span[0].seq, chunk.plan.to_seq)
    return not set(map(_weights, chunk.span)).issubset(map(_weights, stored))


def _weights(message: Message) -> tuple[UUID, MessageStatus, int]:
    return message.id, message.status, message.byte_length


def _sizes_by_new_rules(row: Compaction, chunk: Chunk, before: Resolved, after: Resolved) -> dict[str, int]:
    """The row's sizes if policy or held messages have changed since the chunk was planned; empty if they have not.

    Sizes by the old rules and by the new ones cannot be compared, so both are measured by the new ones.
    """
    planned = chunk.resolved
    held, then = before.conversation.total.held_tokens, planned.conversation.total.held_tokens
    if before.as_set == planned.as_set and held == then:
        return {}
    if after.breakdown.total >= before.breakdown.total:
        raise _SavesNothingNowError
    first = planned.tokens if row.state_version_after is None else row.tokens_before or planned.tokens
    return {"tokens_before": max(first + before.tokens - planned.tokens, 0), "tokens_after": after.tokens}


async def _segments_with_texts(
    chunk: Chunk, attempted: AttemptsResult, applied: AppliedCandidate, now: datetime
) -> tuple[NewSegment, ...]:
    return await new_segments(
        chunk.segments,
        chunk.span,
        chunk.resolved.policy,
        digests=applied.digests,
        model=attempted.accepted.model,
        locale=chunk.resolved.conversation.locale,
        now=now,
    )


def _verified_mark(shell: Shell, chunk: Chunk, attempted: AttemptsResult) -> Verified:
    before = chunk.version.verified if chunk.version else "exact"
    return initial_mark(shell, chunk.resolved.policy, by_language_model=attempted.accepted.metered, before=before)


async def _laid_out(uow: UnitOfWork, resolved: Resolved, ready: _Ready, results: Results) -> _Served:
    """The state laid out with pins and anchors as they are now, not as they were when the chunk was planned."""
    applied, chunk = ready.applied, ready.chunk
    sources = await layout_sources(
        uow,
        resolved,
        schema=chunk.resolved.schema,
        boundary_seq=chunk.plan.to_seq,
        anchor_room=applied.anchor_room,
        digest_room=None,
    )
    return await results(_served_state, ready, sources)


def _served_state(ready: _Ready, sources: LayoutSources) -> _Served:
    """The state with everything that is served next to it.

    Digests get the room that is left up to the target or, if everything is folded, as much as keeps the context smaller
    than before.
    """
    applied, chunk = ready.applied, ready.chunk

    def room_for_digests(layout: Layout) -> int | None:
        tokens_left = _most_tokens_after(chunk) - (
            applied.tokens_after + _tokens_beyond_computed(chunk, applied, layout)
        )
        return None if tokens_left >= chunk.resolved.budgets.digest_tokens else max(tokens_left, 0)

    layout = layout_from_sources(sources, chunk.resolved.schema, applied.state, room_for_digests)
    tokens = applied.tokens_after + _tokens_beyond_computed(chunk, applied, layout)
    if tokens >= chunk.resolved.breakdown.total:  # what is applied has to be smaller than what it replaces
        layout = layout.without_held_days()
        tokens = applied.tokens_after + _tokens_beyond_computed(chunk, applied, layout)
    return _Served(
        applied=replace(applied, layout=layout, tokens_after=tokens),
        fidelity=fidelity(ready.values, state=applied.state, layout=layout, span=chunk.span),
        continuity=ready.exam.compare(applied.state, layout).continuity,
    )


def _tokens_beyond_computed(chunk: Chunk, applied: AppliedCandidate, layout: Layout) -> int:
    before = chunk.resolved.conversation.layout
    return layout.tokens - applied.layout.tokens - (before.held_day_tokens if before else 0)


def _most_tokens_after(chunk: Chunk) -> int:
    before, resolved = chunk.resolved.tokens, chunk.resolved
    most = resolved.breakdown.total - 1
    while most > 0 and resolved.conversation.counted(most) >= before:
        most -= 1
    return min(most, resolved.target_tokens) if chunk.row.request.fold == "to_target" else most


async def _write_state(
    shell: Shell,
    uow: UnitOfWork,
    resolved: Resolved,
    chunk: Chunk,
    applied: AppliedCandidate,
    row: Compaction,
    segment_ids: tuple[str, ...],
    mark: Verified,
) -> Conversation:
    """Write the new version, and the conversation row that points to it."""
    plan, applying, present = chunk.plan, chunk.apply_context(), resolved.conversation
    boundary = await uow.messages.at_seq(present.id, plan.to_seq)
    covered = await uow.messages.sums_at(present.id, plan.to_seq)
    version = version_of(
        applied,
        applying,
        boundary=boundary.id,
        covered=covered,
        compaction_id=row.id,
        layout=applied.layout,
        now=shell.clock.now(),
    )
    version = replace(version, parent_version=present.state_version or None, segment_ids=segment_ids, verified=mark)
    await uow.states.add(present.id, version)
    pressing = is_pressing(chunk.resolved, version, by_hand=row.trigger == "manual")
    await note_version(uow, shell, present.id, version, is_pressing=pressing)
    changed = await uow.conversations.update(
        present.id,
        **version.as_served,
        layout_version=present.layout_version + 1,
        failure_count=0,
        quiet=_quiet_after_saving(chunk, applying, applied)
        if resolved.has_same_rules(chunk.resolved)
        else QuietPeriod(),
    )
    return await refresh_sizes(uow, shell.resolver(changed))


def _quiet_after_saving(chunk: Chunk, applying: ApplyContext, applied: AppliedCandidate) -> QuietPeriod:
    above = _is_above_target(chunk, applied)
    quiet = quiet_after(
        applying.policy,
        applying.budgets,
        seen_seq=chunk.resolved.conversation.last_seq,
        predicted_tokens=chunk.resolved.conversation.counted(applied.tokens_after),
        lasting_floor=chunk.plan.lasting and above,
    )
    return replace(quiet, reason="irreducible_floor") if chunk.plan.irreducible and above else quiet


def _is_above_target(chunk: Chunk, applied: AppliedCandidate) -> bool:
    return chunk.plan.is_last and applied.tokens_after > chunk.resolved.target_tokens


async def _record_chunk(
    shell: Shell,
    uow: UnitOfWork,
    lease: Lease,
    row: Compaction,
    chunk: Chunk,
    attempted: AttemptsResult,
    applied: AppliedCandidate,
    stored: Conversation,
    probed: Mapping[str, Any],
) -> Compaction:
    changes = {**_row_numbers(row, chunk, attempted, applied, stored), **probed}
    if not chunk.plan.is_last:
        updated = await uow.compactions.update(lease.compaction_id, lease.token, **changes)
        if updated is None:
            raise LeaseLostError
        return updated
    reason = "irreducible_floor" if chunk.plan.irreducible and _is_above_target(chunk, applied) else None
    await count_compaction(uow, row)
    return await finish(shell, uow, row, status="applied", reason=reason, **changes)


def _row_numbers(
    row: Compaction, chunk: Chunk, attempted: AttemptsResult, applied: AppliedCandidate, stored: Conversation
) -> dict[str, Any]:
    plan, before = chunk.plan, chunk.resolved
    first = row.state_version_after is None
    return {
        "model": attempted.accepted.model,
        "attempts": (*row.attempts, *attempted.attempts),
        "usage": row.usage.plus(attempted.usage),
        "from_seq": plan.from_seq if first else row.from_seq,
        "to_seq": plan.to_seq,
        "messages_covered": row.messages_covered + plan.messages,
        "tokens_before": before.tokens if first else row.tokens_before,
        "tokens_after": before.conversation.counted(applied.tokens_after),
        "entries": row.entries.plus(applied.counts),
        "state_version_before": before.conversation.state_version if first else row.state_version_before,
        "state_version_after": stored.state_version,
        "claims": 0,
    }
