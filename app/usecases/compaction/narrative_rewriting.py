"""Writes the narrative again after an erasure, from what remains of the covered range. The boundary stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from app.core.model.candidate import Candidate
from app.core.model.conversation import Conversation, Layout, Message
from app.core.model.records import Compaction, CompactionStatus, EntryCounts
from app.core.model.redaction import redact_messages
from app.core.model.schemas import schema_named
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema, StateVersion
from app.core.planning.compaction import CompactionPlan
from app.core.state.apply import (
    QUOTES_DIVISOR,
    AppliedCandidate,
    fitting_quotes,
    repairs_of_restored_sentences,
    repairs_on_record,
)
from app.core.state.layout import layout_of
from app.core.state.pruning import prune, state_of, state_token_limit
from app.core.state.restored_sentences import with_quotes
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.budget import Budget, first_fitting
from app.core.validation.dates import text_with_dates
from app.core.validation.gate import GateReport
from app.core.validation.lost_values import lost_sentences
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import AttemptsResult, run_attempts
from app.usecases.compaction.chunk import OUTLINE_LIMIT, Chunk, chunk_tokens, summarizer_of, system_excerpt_of
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.ending import count_compaction, end_held, end_row, finish
from app.usecases.compaction.job import Job
from app.usecases.compaction.saving import is_outdated
from app.usecases.shared.layouts import MAX_ANCHORS, lay_out
from app.usecases.shared.lease import Lease, check_held
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Shell
from app.usecases.verification.pending import initial_mark, note_version

EMPTY_NARRATIVE: Final = "empty_summary"
NO_SENTENCE_FITS: Final = "not_smaller"  # not one sentence fits: the digest says more


@dataclass(frozen=True, slots=True, kw_only=True)
class _NarrativeSources:
    """The messages from which the narrative is written again."""

    chunk: Chunk
    """The newest part of the covered range that one call digests; it moves no boundary."""
    before: tuple[Message, ...] = ()
    """Covered messages before that chunk which only the narrative described; without secrets."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages from which the narrative is written."""
        return *self.before, *self.chunk.span


async def rewrite_narrative(job: Job) -> Compaction:
    """Run a row whose trigger is ``erasure``: one new version, the same boundary, only narratives changed.

    If it fails, the digest that replaced the narrative stays, and the conversation backs off as after any failure.

    Raises:
        LeaseLostError: The row is no longer this process's.
    """
    shell, lease = job.shell, job.lease
    sources = await _read_sources(shell, lease)
    if sources is None or sources.chunk.version is None:
        return await end_held(shell, lease, status="skipped", reason="nothing_to_compact")
    chunk = sources.chunk
    inputs = await job.inputs_for(chunk, _applying(sources, sources.chunk.version))
    attempted = await run_attempts(inputs, job.begin_calls(chunk))
    if attempted.applied is None:
        status: CompactionStatus = "failed" if attempted.got_no_answer else "rejected"
        return await end_held(shell, lease, status=status, reason=attempted.reason, attempted=attempted)
    return await job.save(partial(run_with_retries, partial(_save, shell, lease, chunk, attempted)))


async def _read_sources(shell: Shell, lease: Lease) -> _NarrativeSources | None:
    """Read the messages from which the narrative is written again.

    Returns:
        ``None`` if there is no state, no narrative in its schema, or no message left.
    """
    async with shell.uow(lease.tenant_id) as uow:
        resolved = shell.resolver(await uow.conversations.get(lease.conversation_id))
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        conversation = resolved.conversation
        if not conversation.state_version:
            return None
        version = await uow.states.get(conversation.id, conversation.state_version)
        most = chunk_tokens(summarizer_of(shell, resolved).profile)
        schema = schema_named(version.state_schema)
        messages = await _newest_covered(uow, conversation, most, through_seq=conversation.boundary_seq)
        before = list[Message]()
        if messages and messages[0].seq > 1 and is_narrative_only(schema):
            before = await _newest_covered(uow, conversation, most, through_seq=messages[0].seq - 1)
        anchors = await uow.anchors.active(
            conversation.id, through_seq=conversation.boundary_seq, limit=MAX_ANCHORS, as_said=True
        )
    if not messages or all(field.is_list for field in schema.fields):
        return None
    chunk = Chunk(
        row=row,
        resolved=replace(resolved, schema=schema),
        plan=_plan_folding_nothing(resolved, messages),
        span=await off_loop(redact_messages, messages),
        system=await off_loop(system_excerpt_of, resolved, size=len(conversation.system_prompt)),
        version=replace(version, entries=tuple(entry for entry in version.entries if entry.role != "narrative")),
        anchors=tuple(anchors),
        most_tokens=most,
    )
    return _NarrativeSources(chunk=chunk, before=await off_loop(redact_messages, before) if before else ())


def _plan_folding_nothing(resolved: Resolved, messages: Sequence[Message]) -> CompactionPlan:
    """A plan that folds nothing: these messages are not in the context any more."""
    boundary = resolved.conversation.boundary_seq
    return CompactionPlan(
        from_seq=messages[0].seq,
        to_seq=boundary,
        messages=len(messages),
        folded_tokens=0,
        goal_seq=boundary,
        predicted_tokens=resolved.breakdown.total,
        irreducible=False,
    )


async def _newest_covered(
    uow: UnitOfWork, conversation: Conversation, tokens: int, *, through_seq: int
) -> list[Message]:
    start = max(through_seq - OUTLINE_LIMIT, 0)
    outline = await uow.messages.outline(conversation.id, after_seq=start, limit=OUTLINE_LIMIT)
    weights = {item.seq: item.token_count for item in outline if item.seq <= through_seq and not item.is_command}
    newest = sorted(weights, reverse=True)
    shown = first_fitting(newest, tokens, weights.__getitem__) or newest[:1] or [through_seq]
    found = await uow.messages.between(conversation.id, shown[-1], through_seq)
    return [message for message in found if message.status != "erased"]


def _applying(sources: _NarrativeSources, version: StateVersion) -> Callable[[GateReport], AppliedCandidate | str]:
    """The function that makes the new state from a report of the gate, using only its narrative."""
    resolved, staying = sources.chunk.resolved, version.entries

    def layout_for(state: dict[str, Any]) -> Layout:
        policy = resolved.policy
        return layout_of(resolved.schema, state, served_as=policy.served_as, estimator=policy.estimator)

    def apply(report: GateReport) -> AppliedCandidate | str:
        narrative = (
            _narrative_entries(report.candidate, version, resolved.conversation.state_version + 1)
            if report.candidate
            else []
        )
        if not narrative:
            return report.reason or EMPTY_NARRATIVE
        report = _without_repairs_of_items(report, resolved.schema)
        narrative, quotes = _with_lost_values(sources, narrative, by_model=report.by_model)
        most = state_token_limit(resolved.schema, resolved.budgets)
        kept, pushed_out = prune(
            resolved.schema, (*staying, *narrative), fits=lambda state: layout_for(state).tokens <= most
        )
        if not any(entry.role == "narrative" for entry in kept):
            return NO_SENTENCE_FITS
        state = state_of(resolved.schema, kept)
        layout = layout_for(state)
        applied = AppliedCandidate(
            state=state,
            entries=(*kept, *pushed_out, *(entry for entry in staying if entry.pruned)),
            next_entry=version.next_entry + len(narrative),
            layout=layout,
            counts=EntryCounts(
                added=len(narrative), kept=len(kept) - len(narrative), ungrounded=report.ungrounded_count
            ),
            tokens_after=resolved.breakdown.total - resolved.breakdown.state + layout.tokens,
            repairs=report.repairs,
        )
        restored = repairs_of_restored_sentences(quotes, applied, resolved.schema)
        return replace(applied, repairs=(*report.repairs, *restored))

    return apply


def _without_repairs_of_items(report: GateReport, schema: StateSchema) -> GateReport:
    """The report without repairs of items, which are not used: nothing that was cut of them may come back."""
    narratives = {field.name for field in schema.fields if not field.is_list}
    return replace(report, repairs=tuple(one for one in report.repairs if one.field in narratives))


def _with_lost_values(
    sources: _NarrativeSources, narrative: list[StateEntry], *, by_model: bool
) -> tuple[list[StateEntry], Sequence[str]]:
    """The entries with the sentences whose exact values they lack, and these sentences.

    Sentences are added only if the narrative is the whole state.
    """
    resolved, messages = sources.chunk.resolved, sources.messages
    if not is_narrative_only(resolved.schema):  # other schemas have entries in lists, which hold the values
        return narrative, ()
    lost = lost_sentences(messages, [entry.text for entry in narrative], served_anchors=(), unserved_anchors=())
    budget = Budget(resolved.budgets.state_cap // QUOTES_DIVISOR)
    by_seq = {message.seq: message for message in messages}
    quotes = [
        (seq, text_with_dates(text, [by_seq[seq]]))
        for seq, text in fitting_quotes(lost, budget, resolved.policy.estimator)
    ]
    version = narrative[0].since_version
    whole = with_quotes(resolved.schema, narrative, quotes, messages, version=version, next_entry=0, at_end=by_model)
    return [*whole], [text for _, text in quotes]


def _narrative_entries(candidate: Candidate, before: StateVersion, version: int) -> list[StateEntry]:
    return [
        StateEntry(
            id=f"{ID_LETTERS['narrative']}{number}", field=field, role="narrative", text=text, since_version=version
        )
        for number, (field, text) in enumerate(candidate.narrative.items(), start=before.next_entry)
    ]


async def _save(shell: Shell, lease: Lease, chunk: Chunk, attempted: AttemptsResult, results: Results) -> Compaction:
    async with shell.uow(lease.tenant_id) as uow:
        present = await uow.conversations.lock(lease.conversation_id)
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        if attempted.applied is None or await is_outdated(uow, chunk, present):
            ended = await end_row(shell, uow, row, status="superseded", reason="stale", attempted=attempted)
        else:
            stored = await _write_version(shell, uow, present, chunk, attempted, attempted.applied, row, results)
            await count_compaction(uow, row)
            numbers = _row_numbers(row, chunk, attempted, stored)
            ended = await finish(shell, uow, row, status="applied", reason=None, **numbers)
        await uow.commit()
    return ended


async def _write_version(
    shell: Shell,
    uow: UnitOfWork,
    present: Conversation,
    chunk: Chunk,
    attempted: AttemptsResult,
    applied: AppliedCandidate,
    row: Compaction,
    results: Results,
) -> Conversation:
    layout = await lay_out(
        uow,
        replace(shell.resolver(present), schema=chunk.resolved.schema),  # the policy may have changed meanwhile
        schema=chunk.resolved.schema,
        state=applied.state,
        boundary_seq=present.boundary_seq,
        compute=results,
    )
    before = await uow.states.get(present.id, present.state_version)
    version = replace(
        before,
        parent_version=before.version,
        segment_ids=(),
        repairs=repairs_on_record(applied),
        version=present.state_version + 1,
        state=applied.state,
        entries=applied.entries,
        next_entry=applied.next_entry,
        covered=present.covered,
        layout=layout,
        compaction_id=row.id,
        created_at=shell.clock.now(),
        made_by="erasure",
        verified=initial_mark(
            shell,
            chunk.resolved.policy,
            by_language_model=attempted.attempts[-1].metered,
            before=before.verified,
        ),
        verification=None,
    )
    await uow.states.add(present.id, version)
    await note_version(uow, shell, present.id, version)
    changed = await uow.conversations.update(
        present.id,
        **version.as_served,
        layout_version=present.layout_version + 1,
        failure_count=0,
    )
    return await refresh_sizes(uow, shell.resolver(changed))


def _row_numbers(row: Compaction, chunk: Chunk, attempted: AttemptsResult, stored: Conversation) -> dict[str, Any]:
    before = chunk.resolved
    return {
        "model": attempted.attempts[-1].model,
        "attempts": (*row.attempts, *attempted.attempts),
        "usage": row.usage.plus(attempted.usage),
        "from_seq": chunk.span[0].seq,
        "to_seq": before.conversation.boundary_seq,
        "messages_covered": len(chunk.span),
        "tokens_before": before.tokens,
        "tokens_after": stored.context_tokens,
        "entries": attempted.applied.counts if attempted.applied else EntryCounts(),
        "state_version_before": before.conversation.state_version,
        "state_version_after": stored.state_version,
    }
