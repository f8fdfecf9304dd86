"""From the services' values to the contract's resources: one function each, no decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.api import schemas
from app.domain import conversation, records
from app.domain.anchors.values import Anchor
from app.domain.assembling import assembly
from app.domain.policies import presets
from app.domain.recall.choose import Recalled
from app.domain.states import state
from app.domain.states.state_difference import StateDifference
from app.domain.weighing import gauge
from app.services.conversations import ConversationView
from app.services.turn_handle import ChatResult
from app.services.views import CompactionView

FULL = "full"
"""Originals: the most detailed level."""

Value = TypeVar("Value")
Item = TypeVar("Item")


def present_list(found: tuple[Sequence[Value], str | None], present: Callable[[Value], Item]) -> schemas.Listing[Item]:
    """One page of a list."""
    values, cursor = found
    return schemas.Listing(data=[present(value) for value in values], next_cursor=cursor, has_more=cursor is not None)


def present_gauge(value: gauge.Gauge) -> schemas.Gauge:
    """A gauge."""
    return schemas.Gauge.model_validate(value)


def present_conversation(view: ConversationView) -> schemas.Conversation:
    """A conversation with its resolved policy and its state."""
    return schemas.Conversation(
        **_summary(view),
        policy=view.policy.model_dump(mode="json"),
        compressed_state=_json(view.conversation.compressed_state),
        scratchpad=dict(view.conversation.scratchpad),
    )


def present_conversation_summary(view: ConversationView) -> schemas.ConversationSummary:
    """A conversation in a list: no state, no policy, no scratchpad."""
    return schemas.ConversationSummary(**_summary(view))


def present_message(value: conversation.Message) -> schemas.Message:
    """A message."""
    return schemas.Message.model_validate(value)


def present_compaction(view: CompactionView) -> schemas.Compaction:
    """A compaction, stored or only planned."""
    row = view.compaction
    return schemas.Compaction(
        id=None if view.planned else row.id,
        conversation_id=row.conversation_id,
        trigger=row.trigger,
        ran_in=row.ran_in,
        status="planned" if view.planned else row.status,
        reason=row.reason,
        strategy=row.strategy,
        model=row.model,
        focus=row.request.focus,
        joined=view.joined,
        attempts=[schemas.Attempt.model_validate(attempt) for attempt in row.attempts],
        from_seq=row.from_seq,
        to_seq=row.to_seq,
        messages_covered=row.messages_covered,
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
        ratio=ratio_of(row.tokens_before, row.tokens_after),
        entries=schemas.EntryCounts.model_validate(row.entries),
        state_version_before=row.state_version_before,
        state_version_after=row.state_version_after,
        summary=view.summary,
        usage=schemas.Usage.model_validate(row.usage),
        cost_usd=row.usage.cost_usd,
        duration_ms=row.duration_ms,
        retry_of=row.retry_of,
        requested_at=row.requested_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def ratio_of(before: int | None, after: int | None) -> float | None:
    """Tokens after ÷ tokens before; ``None`` while either is unknown."""
    return round(after / before, 4) if before and after is not None else None


def present_state(value: state.StateVersion) -> schemas.StateVersion:
    """A version of the state, with the provenance of each entry."""
    return schemas.StateVersion(
        version=value.version,
        state=dict(value.state),
        state_schema=value.state_schema,
        provenance=[present_entry(entry) for entry in value.entries],
        compaction_id=value.compaction_id,
        boundary_seq=value.boundary_seq,
        created_at=value.created_at,
    )


def present_entry(entry: state.StateEntry) -> schemas.Provenance:
    """Where one entry came from."""
    return schemas.Provenance(
        entry_id=entry.id,
        field=entry.field,
        text=entry.text,
        from_seqs=list(entry.from_seqs),
        since_version=entry.since_version,
        origins=list(entry.origins),
        superseded=list(entry.superseded),
        pruned=entry.pruned,
    )


def present_anchor(value: Anchor) -> schemas.Anchor:
    """An anchor."""
    return schemas.Anchor(
        id=value.id,
        type=value.type,
        content=value.content,
        original_position=value.seq,
        offset=value.offset,
        message_id=value.message_id,
        status=value.status,
        proposed_by=value.proposed_by,
        superseded_by=value.superseded_by,
    )


def present_difference(value: StateDifference) -> schemas.StateDifference:
    """What changed between two versions."""
    return schemas.StateDifference(
        a=value.a,
        b=value.b,
        added=[present_entry(entry) for entry in value.added],
        removed=[present_entry(entry) for entry in value.removed],
        changed=[schemas.EntryChange.model_validate(change) for change in value.changed],
    )


def present_context(value: assembly.AssembledContext) -> schemas.AssembledContext:
    """A context; markers come with segments."""
    return schemas.AssembledContext(
        messages=[schemas.ContextMessage.model_validate(message) for message in value.messages],
        sections=[schemas.Section.model_validate(section) for section in value.sections],
        markers=[],
        recalled=[present_recalled_message(one) for one in value.recalled],
        gauge=present_gauge(value.gauge),
        warnings=list(value.warnings),
        truncated=schemas.SeqRange(from_seq=value.truncated[0], to_seq=value.truncated[1]) if value.truncated else None,
    )


def present_recalled_message(value: Recalled) -> schemas.RecalledMessage:
    """One message that was brought back."""
    return schemas.RecalledMessage(
        segment_id=None,
        level=FULL,
        seqs=[value.source.seq],
        score=value.score,
        reasons=dict(value.reasons),
    )


def runs_of(seqs: Sequence[int]) -> list[list[int]]:
    """Ascending positions in runs without gaps."""
    runs: list[list[int]] = []
    for seq in seqs:
        if runs and seq == runs[-1][-1] + 1:
            runs[-1].append(seq)
        else:
            runs.append([seq])
    return runs


def present_chat(result: ChatResult) -> schemas.ChatResult:
    """A turn that is over."""
    return schemas.ChatResult(
        message=present_message(result.message),
        reply=present_message(result.reply),
        context=present_gauge(result.gauge),
        compaction=present_compaction(result.compaction) if result.compaction else None,
        recalled=[schemas.Recalled(segment_id=None, level=FULL, seqs=run) for run in runs_of(result.recalled)],
        warnings=list(result.warnings),
    )


def present_interruption(turn: records.Turn | None) -> schemas.Interruption:
    """What an interrupt found."""
    return schemas.Interruption(interrupted=turn is not None, message_id=turn.message_id if turn else None)


def present_event(event: records.Event) -> schemas.Event:
    """An event; the ``events`` way of notifying carries no words."""
    return schemas.Event(
        id=str(event.number),
        type=event.type,
        conversation_id=event.conversation_id,
        occurred_at=event.occurred_at,
        data=dict(event.data),
        notification=None,
    )


def present_preset(preset: presets.Preset) -> schemas.Preset:
    """A preset with its policy."""
    return schemas.Preset(
        name=preset.name,
        title=preset.title,
        description=preset.description,
        policy=preset.policy.model_dump(mode="json"),
    )


def _summary(view: ConversationView) -> dict[str, Any]:
    row = view.conversation
    return {
        "id": row.id,
        "title": row.title,
        "user_id": row.user_id,
        "locale": row.locale,
        "system_prompt": row.system_prompt,
        "preset": row.preset,
        "state_schema": row.state_schema,
        "compressed_at_message_id": row.compressed_at_message_id,
        "state_version": row.state_version,
        "compression_count": row.compression_count,
        "metadata": dict(row.metadata),
        "message_count": row.last_seq,
        "last_message_at": row.last_message_at,
        "context": present_gauge(view.gauge),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _json(value: Any) -> dict[str, Any] | None:
    return None if value is None else dict(value)
