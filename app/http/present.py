"""Turns the services' values into the API's resources, if ``model_validate`` alone is not enough."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from app.core.context.formats import Format, in_format
from app.core.model import files, records
from app.core.model.continuity import PROBE_KINDS, Continuity
from app.core.model.notifications import Notification
from app.core.model.schemas import SCHEMAS, in_order
from app.core.model.segments import EXTRACTIVE, LEVELS, NAME_BY_LEVEL, Level, Marker
from app.core.model.state import StateVersion
from app.core.model.usage_limits import LimitUsage
from app.core.retrieval.ranking import RecalledMessage
from app.core.segments.markers import render_marker
from app.http import schemas
from app.off_loop import in_slices
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.context.requests import ContextView
from app.usecases.history.conversations import ConversationView, PresetView
from app.usecases.segments.expansion import Expanded, ListedSegment, deeper_markers
from app.usecases.shared.caller import Principal
from app.usecases.shared.compaction_views import CompactionView

FULL = "full"
"""The most detailed level: the originals."""

Value = TypeVar("Value")
Item = TypeVar("Item")


async def present_list(
    found: tuple[Sequence[Value], str | None], present: Callable[[Value], Item]
) -> schemas.Listing[Item]:
    """One page of a list."""
    values, cursor = found
    data = await in_slices(present, values)
    return schemas.Listing(data=data, next_cursor=cursor, has_more=cursor is not None)


def present_conversation(view: ConversationView) -> schemas.Conversation:
    """A conversation with its resolved policy and its state."""
    row = view.conversation
    return schemas.Conversation.from_value(
        row,
        message_count=row.last_seq,
        context=view.gauge,
        policy=view.policy.model_dump(mode="json"),
        compressed_state=_in_reading_order(row.state_schema, row.compressed_state) if row.compressed_state else None,
        live_context=row.live,
    )


def present_state_version(value: StateVersion) -> schemas.StateVersion:
    """A version of the state, with the fields of its schema."""
    shown = schemas.StateVersion.model_validate(value)
    return shown.model_copy(update={"state": _in_reading_order(value.state_schema, value.state)})


def _in_reading_order(schema: str | None, state: Mapping[str, Any]) -> dict[str, Any]:
    # Stored fields come ordered by the length of their names.
    known = SCHEMAS.get(schema or "")
    return in_order(known, state) if known else dict(state)


def present_conversation_summary(view: ConversationView) -> schemas.ConversationSummary:
    """A conversation in a list: no state, no policy, no scratchpad."""
    row = view.conversation
    return schemas.ConversationSummary.from_value(row, message_count=row.last_seq, context=view.gauge)


def present_exported_file(value: tuple[files.ConversationFile, bytes]) -> schemas.ExportedFile:
    """A file with its bytes."""
    file, data = value
    return schemas.ExportedFile.from_value(file, data=base64.b64encode(data).decode())


def present_compaction(view: CompactionView) -> schemas.Compaction:
    """A compaction, stored or only planned."""
    row = view.compaction
    planned: dict[str, Any] = {"id": None, "status": "planned"} if view.planned else {}
    return schemas.Compaction.from_value(
        row,
        **planned,
        focus=row.request.focus,
        joined=view.joined,
        ratio=ratio_of(row.tokens_before, row.tokens_after),
        repairs=view.repairs,
        prompt_version=next((one.prompt_version for one in reversed(row.attempts) if one.prompt_version), None),
        continuity=row.continuity and present_continuity(row.continuity),
        summary=view.summary,
        cost_usd=row.usage.cost_usd,
    )


def present_continuity(value: Continuity) -> schemas.Continuity:
    """A score, with its kinds of probes in their order."""
    kinds = {kind: schemas.Answered.model_validate(value.kinds[kind]) for kind in PROBE_KINDS if kind in value.kinds}
    return schemas.Continuity(**value.as_dict(), kinds=kinds)


def present_compaction_continuity(view: CompactionView) -> schemas.CompactionContinuity:
    """The score of a compaction that has one."""
    row = view.compaction
    score = present_continuity(row.continuity or Continuity())
    return schemas.CompactionContinuity.from_value(row, compaction_id=row.id, continuity=score)


def present_verification(view: records.VerificationView) -> schemas.Verification:
    """A verification, and what came of it."""
    row = view.verification
    return schemas.Verification.from_value(
        row,
        state_version=row.version,
        claims=view.claims,
        changed=view.changed,
        cost_usd=row.usage.cost_usd,
        requested_at=row.created_at,
    )


def ratio_of(before: int | None, after: int | None) -> float | None:
    """Tokens after divided by tokens before; ``None`` while either is unknown."""
    return round(after / before, 4) if before and after is not None else None


def present_context(view: ContextView, format_: Format) -> schemas.AssembledContext:
    """A context in one of the formats. Everything else is the same in each format."""
    value = view.context
    formatted = in_format(value.messages_with_files, format_, value.locale)
    return schemas.AssembledContext.from_value(
        value,
        messages=[dict(message) for message in formatted.messages],
        system=formatted.system,
        sections=[schemas.Section.from_value(one, level=level_name(one.level)) for one in value.sections],
        markers=[present_marker(marker) for marker in value.markers],
        recalled=[present_recalled_message(one, view.segments) for one in value.recalled],
        truncated=schemas.SeqRange(from_seq=value.truncated[0], to_seq=value.truncated[1]) if value.truncated else None,
        compaction=present_compaction(view.compaction) if view.compaction else None,
    )


def present_marker(value: Marker) -> schemas.Marker:
    """A marker as it is served, and what it leads to."""
    return schemas.Marker(text=render_marker(value), level=NAME_BY_LEVEL[value.level], segment_id=value.segment_id)


def level_name(level: str | None) -> str | None:
    """The published name of a level."""
    return next((name for one, name in NAME_BY_LEVEL.items() if one is not None and one == level), level)


def present_listed(value: ListedSegment, wanted: Level | None) -> schemas.Segment:
    """A segment in a list, at the wanted level or the nearest that it has; shorter levels come before longer ones."""
    segment, start = value.segment, LEVELS.index(wanted) if wanted else 0
    stored = (segment.levels.get(level) for level in (*LEVELS[start:], *reversed(LEVELS[:start])))
    level = next((one for one in stored if one is not None), None)
    shown = level.level if level else LEVELS[start]
    return present_expanded(
        Expanded(
            segment_id=segment.id,
            level=NAME_BY_LEVEL[shown],
            segment=segment,
            content=level.text if level else "",
            anchors=value.anchors,
            markers=deeper_markers(segment, shown),
            token_count=level.tokens if level else 0,
            made_by=level.made_by if level else EXTRACTIVE,
        )
    )


def present_expanded(value: Expanded) -> schemas.Segment:
    """A page of a segment, or of a list of segments or anchors."""
    segment = value.segment
    segments = [segment] if segment else value.segments
    first, last = (segments[0], segments[-1]) if segments else (None, None)
    seqs = [anchor.seq for anchor in value.anchors]
    return schemas.Segment.from_value(
        value,
        topic=segment.topic if segment else value.segment_id,
        from_seq=first.from_seq if first else min(seqs, default=None),
        to_seq=last.to_seq if last else max(seqs, default=None),
        started_at=first.started_at if first else None,
        ended_at=last.ended_at if last else None,
        message_count=sum(one.messages for one in segments),
        is_current=segment.is_current if segment else True,
        expansion_markers=[present_marker(marker) for marker in value.markers],
        next_cursor=value.next_cursor,
    )


def present_recalled_message(value: RecalledMessage, segments: Mapping[int, str]) -> schemas.RecalledMessage:
    """One recalled message."""
    seq = value.source.seq
    return schemas.RecalledMessage.from_value(value, segment_id=segments.get(seq), level=FULL, seqs=[seq])


def present_recalled(seqs: Sequence[int], segments: Mapping[int, str]) -> list[schemas.Recalled]:
    """Recalled messages as ranges without gaps, each within one segment."""
    runs: list[schemas.Recalled] = []
    for seq in seqs:
        segment_id = segments.get(seq)
        if runs and seq == runs[-1].seqs[-1] + 1 and segment_id == runs[-1].segment_id:
            runs[-1].seqs.append(seq)
        else:
            runs.append(schemas.Recalled(segment_id=segment_id, level=FULL, seqs=[seq]))
    return runs


def present_chat(result: ChatResult) -> schemas.ChatResult:
    """A turn that has ended."""
    return schemas.ChatResult.from_value(
        result,
        context=result.gauge,
        compaction=present_compaction(result.compaction) if result.compaction else None,
        recalled=present_recalled(result.recalled, result.segments),
        status=_status(result),
        open_calls=[schemas.ToolCall.model_validate(call) for call in result.open_calls],
    )


def _status(result: ChatResult) -> Literal["completed", "interrupted", "requires_action"]:
    if result.open_calls:
        return "requires_action"
    return "interrupted" if result.reply.status == "interrupted" else "completed"


def present_interruption(turn: records.Turn | None) -> schemas.Interruption:
    """The result of an interruption."""
    return schemas.Interruption(interrupted=turn is not None, message_id=turn.message_id if turn else None)


def present_event(event: records.Event, notification: Notification | None) -> schemas.Event:
    """An event, with a notification for the user if the policy wants one."""
    return schemas.Event.from_value(event, id=str(event.number), notification=notification)


def present_notification(value: Notification | None) -> schemas.Notification | None:
    """The notification for the user, if there is one."""
    return None if value is None else schemas.Notification.model_validate(value)


def present_preset(view: PresetView) -> schemas.Preset:
    """A preset with the policy that it has in this service."""
    policy = view.policy.model_dump(mode="json")
    earlier = [
        schemas.PresetVersion(version=version, policy=policy.model_dump(mode="json"))
        for version, policy in sorted(view.earlier.items())
    ]
    return schemas.Preset.from_value(view.preset, is_default=view.is_default, policy=policy, earlier=earlier)


def present_limits(
    principal: Principal, standings: Sequence[LimitUsage], stream_seconds: float | None
) -> schemas.KeyLimits:
    """The limits of a key."""
    limits = [
        schemas.LimitStanding.from_value(
            one, of=one.whose, resets_in=round(one.resets_in, 1), retry_after=round(one.wait, 1)
        )
        for one in standings
    ]
    return schemas.KeyLimits.from_value(principal, stream_seconds=stream_seconds, limits=limits)
