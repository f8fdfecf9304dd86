"""Removes what was erased from segments: code writes levels and topics again, and ids that reveal it are replaced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final

from app.core.model.conversation import Message
from app.core.model.redaction import redact_messages
from app.core.model.segments import EXTRACTIVE, LEVELS, CutSegment, Segment
from app.core.segments.describing import describe
from app.core.segments.segment_ids import FALLBACK
from app.core.state.erasing import ERASED_RESULT, ErasedTexts, RemainingMessages, full_text
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import wants_detail_by_model
from app.usecases.compaction.segmenting import cut_of, extractive_level
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

READ_AT_ONCE: Final = 500
"""How many segments are read at once."""
REWRITTEN_AT_ONCE: Final = 20
"""How many segments are rewritten at once, with their messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedSegments:
    """The segments that may contain something of an erased message."""

    touched: tuple[Segment, ...]
    """Segments whose range holds the message: all of their texts may come from it."""
    doubtful: tuple[Segment, ...]
    """Segments that a model described together with the message, or after it, and whose texts contain something erased.
    """


async def affected_segments(
    uow: UnitOfWork,
    resolved: Resolved,
    seqs: Collection[int],
    erased: ErasedTexts,
    *,
    made_since: int,
    compute: Compute,
) -> AffectedSegments:
    """The segments of all state versions that may contain something of these messages.

    ``made_since`` is the position since which versions may have been made from them.
    """
    conversation_id = resolved.conversation.id
    touched = await uow.segments.touching(conversation_id, sorted(seqs))
    known = {segment.id for segment in touched}
    made = await uow.states.segments_since_boundary(conversation_id, made_since)
    ids = [id_ for id_ in made if id_ not in known]
    doubtful: list[Segment] = []
    for place in range(0, len(ids), READ_AT_ONCE):
        described = await uow.segments.described_by_model(conversation_id, ids[place : place + READ_AT_ONCE])
        doubtful += await compute(_segments_in_doubt, described, erased) if described else []
    return AffectedSegments(touched=tuple(touched), doubtful=tuple(doubtful))


def _segments_in_doubt(segments: Sequence[Segment], erased: ErasedTexts) -> list[Segment]:
    return [segment for segment in segments if any(erased.pieces_in(text) for text in _texts_by_model(segment))]


async def rewrite_without_erased(
    uow: UnitOfWork,
    shell: Shell,
    resolved: Resolved,
    affected: AffectedSegments,
    *,
    erased: ErasedTexts,
    remaining: RemainingMessages,
    now: datetime,
    compute: Compute,
) -> None:
    """Write the segments again that hold the erased message, and those that used it.

    Call it in the erasing transaction, before layouts are made. ``compute`` runs what takes time off the event loop.
    """
    drawing = await compute(_drawing_on_erased, affected.doubtful, erased, remaining) if affected.doubtful else []
    wants_detail, locale = wants_detail_by_model(shell, resolved), resolved.conversation.locale
    segments = (*affected.touched, *drawing)
    for place in range(0, len(segments), REWRITTEN_AT_ONCE):
        some = segments[place : place + REWRITTEN_AT_ONCE]
        spans = [await uow.messages.between(one.conversation_id, one.from_seq, one.to_seq) for one in some]
        for rewritten, leaks in await compute(_rewritten_with_leaks, some, spans, erased, locale, now):
            await uow.segments.rewrite(
                replace(rewritten, wants_detail=wants_detail and "L1" in rewritten.levels, detail_tries=0)
            )
            await uow.segments.update(rewritten.conversation_id, rewritten.id, detail_after=None)
            if leaks:
                await uow.segments.rename(rewritten.conversation_id, rewritten.id, await _neutral_id(uow, rewritten))


def _texts_by_model(segment: Segment) -> list[str]:
    # The model may have used more than the messages of the segment.
    by_model = [level.text for level in segment.levels.values() if level.made_by != EXTRACTIVE]
    return [*by_model, segment.topic, segment.id.replace("_", " ")] if by_model else []


def _draws_on(segment: Segment, erased: ErasedTexts, remaining: RemainingMessages) -> bool:
    own = range(segment.from_seq, segment.to_seq + 1)
    return not all(remaining.holds(erased.pieces_in(text), own) for text in _texts_by_model(segment))


def _drawing_on_erased(segments: Sequence[Segment], erased: ErasedTexts, remaining: RemainingMessages) -> list[Segment]:
    return [segment for segment in segments if _draws_on(segment, erased, remaining)]


def _rewritten_with_leaks(
    segments: Sequence[Segment], spans: Sequence[Sequence[Message]], erased: ErasedTexts, locale: str, now: datetime
) -> list[tuple[Segment, bool]]:
    return [
        (_remainder_of(one, span, locale, now), _does_id_reveal_erased(one, span, erased))
        for one, span in zip(segments, spans, strict=True)
    ]


def _remainder_of(segment: Segment, originals: Sequence[Message], locale: str, now: datetime) -> Segment:
    """The segment as code describes what remains of it."""
    remaining = redact_messages(message for message in originals if message.status != "erased")
    cut = _described_anew(segment, remaining)
    levels = {}
    for name in LEVELS:
        made = (
            extractive_level(name, remaining, cut, locale=locale, now=now) if name in (*segment.levels, "L3") else None
        )
        if made is not None:
            levels[name] = made
    return replace(segment, levels=levels, **{item.name: getattr(cut, item.name) for item in fields(cut)})


def _described_anew(segment: Segment, remaining: Sequence[Message]) -> CutSegment:
    if remaining:
        return replace(describe(remaining), from_seq=segment.from_seq, to_seq=segment.to_seq)
    return replace(cut_of(segment), topic=ERASED_RESULT, messages=0, tokens=0, identifiers=())


def _does_id_reveal_erased(segment: Segment, originals: Sequence[Message], erased: ErasedTexts) -> bool:
    remaining = "\n".join(full_text(message) for message in originals if message.status != "erased")
    return bool(erased.erased_words(f"{segment.topic} {segment.id.replace('_', ' ')}", remaining))


async def _neutral_id(uow: UnitOfWork, segment: Segment) -> str:
    taken = await uow.segments.ids_like(segment.conversation_id, [FALLBACK])
    number = segment.from_seq
    while f"{FALLBACK}_{number}" in taken:
        number += 1
    return f"{FALLBACK}_{number}"
