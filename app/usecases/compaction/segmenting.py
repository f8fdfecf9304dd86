"""The segments of a chunk: cut before the model is asked, and stored with the state version that covers them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.fieldwise import from_same_fields
from app.core.model.policies.policy import CompactionPolicy, SegmentBy
from app.core.model.redaction import redact
from app.core.model.segments import (
    EXTRACTIVE,
    LEVELS,
    CutSegment,
    Level,
    Segment,
    SegmentDigest,
    SegmentLevel,
)
from app.core.segments.describing import describe
from app.core.segments.extractive import level_text, with_values
from app.core.segments.hashing import content_hash
from app.core.segments.segment_ids import ids_for, stem_of
from app.core.segments.segmentation import split_into_segments
from app.core.summarizer.prompts import SUMMARY_VERSION
from app.core.text.escaping import clean
from app.core.text.token_counts import estimate_text
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork

CODE_VERSION: Final = "extractive-2"
"""A part of the content hash of each level. If this changes, every level that code wrote is written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A segment with its texts, before it has an id."""

    cut: CutSegment
    levels: Mapping[Level, SegmentLevel]


def cut_span(span: Sequence[Message], how: SegmentBy, *, from_seq: int, to_seq: int) -> tuple[CutSegment, ...]:
    """Cut a span into segments. ``how`` says where.

    Every ``seq`` belongs to exactly one segment, also that of a command or an erased message.
    """
    cuts = [describe(messages) for messages in split_into_segments(_without_commands_and_erased(span), how)]
    starts = [from_seq, *(cut.from_seq for cut in cuts[1:])]
    ends = [*(start - 1 for start in starts[1:]), to_seq]
    return (
        tuple(replace(cut, from_seq=start, to_seq=end) for cut, start, end in zip(cuts, starts, ends, strict=True))
        if cuts
        else ()
    )


async def new_segments(
    cuts: Sequence[CutSegment],
    span: Sequence[Message],
    policy: CompactionPolicy,
    *,
    digests: Sequence[SegmentDigest],
    model: str,
    locale: str,
    now: datetime,
) -> tuple[NewSegment, ...]:
    """Each segment with the levels that the policy asks for: the model's texts, and where there is none, code's.

    Args:
        cuts: The segments of the span.
        span: The messages, without their secrets.
        policy: Without ``levels`` only the L3 is written, by code, for retrieval.
        digests: What the model wrote, checked; ``number`` counts the segments from 1.
        model: The model's name.
        locale: The conversation's language.
        now: When the levels were made.
    """
    by_number = {digest.number: digest for digest in digests} if policy.levels else {}
    wanted = tuple(level for level in LEVELS if level == "L3" or level in policy.levels)

    def work() -> tuple[NewSegment, ...]:
        spoken = _without_commands_and_erased(span)
        return tuple(
            _new_segment(
                cut, _messages_of(spoken, cut), wanted, by_number.get(number), model=model, locale=locale, now=now
            )
            for number, cut in enumerate(cuts, start=1)
        )

    return await off_loop(work)


async def store_segments(
    uow: UnitOfWork,
    conversation_id: UUID,
    segments: Sequence[NewSegment],
    *,
    wants_detail: bool,
    now: datetime,
) -> tuple[str, ...]:
    """Store the segments of a new state version. A segment that has the same range already keeps its id and levels.

    Call it in the transaction that writes the version, with the conversation locked, before the layout is made.

    Returns:
        The segments' ids, in order.
    """
    ranges = [(one.cut.from_seq, one.cut.to_seq) for one in segments]
    known = {(one.from_seq, one.to_seq): one for one in await uow.segments.of_ranges(conversation_id, ranges)}
    fresh = [one for one, place in zip(segments, ranges, strict=True) if place not in known]
    topics = [one.cut.topic for one in fresh]
    taken = await uow.segments.ids_like(conversation_id, sorted({stem_of(topic) for topic in topics}))
    made = [
        _stored_segment(one, id_, conversation_id, wants_detail=wants_detail, now=now)
        for one, id_ in zip(fresh, ids_for(topics, taken), strict=True)
    ]
    await uow.segments.add(made)
    await _make_current_again(uow, conversation_id, segments, known, wants_detail=wants_detail)
    ids = {place: segment.id for place, segment in known.items()}
    ids |= {(segment.from_seq, segment.to_seq): segment.id for segment in made}
    return tuple(ids[place] for place in ranges)


def extractive_level(
    level: Level, messages: Sequence[Message], cut: CutSegment, *, locale: str, now: datetime
) -> SegmentLevel | None:
    """A level written by code from messages without secrets; ``None`` if no text is left in them.

    The caller has to redact the messages.
    """
    spoken = _without_commands_and_erased(messages)
    text = level_text(level, spoken, cut, locale=locale) if spoken else ""
    if not text:
        return None
    return _level(level, text, EXTRACTIVE, content_hash(spoken, level, EXTRACTIVE, CODE_VERSION), now)


def extractive_hash(level: Level, messages: Sequence[Message]) -> str:
    """The content hash that a level would have if code wrote it now."""
    return content_hash(_without_commands_and_erased(messages), level, EXTRACTIVE, CODE_VERSION)


def cut_of(segment: Segment) -> CutSegment:
    """The range, topic and sizes of a stored segment, without its levels."""
    return from_same_fields(CutSegment, segment)


async def _make_current_again(
    uow: UnitOfWork,
    conversation_id: UUID,
    segments: Sequence[NewSegment],
    known: Mapping[tuple[int, int], Segment],
    *,
    wants_detail: bool,
) -> None:
    """Make stored segments that have the same ranges current again, and store their missing levels."""
    await uow.segments.set_current(conversation_id, [segment.id for segment in known.values()])
    for one in segments:
        segment = known.get((one.cut.from_seq, one.cut.to_seq))
        if segment is None:
            continue
        missing = [level for name, level in one.levels.items() if name not in segment.levels]
        await uow.segments.put_levels(conversation_id, segment.id, missing)
        detail = segment.levels.get("L1")
        if wants_detail and (detail is None or detail.made_by == EXTRACTIVE):
            await uow.segments.update(conversation_id, segment.id, wants_detail=True)


def _stored_segment(new: NewSegment, id_: str, conversation_id: UUID, *, wants_detail: bool, now: datetime) -> Segment:
    segment = new.cut.stored_as(id_, conversation_id, created_at=now)
    return replace(segment, levels=new.levels, wants_detail=wants_detail)


def _new_segment(
    cut: CutSegment,
    messages: Sequence[Message],
    wanted: Collection[Level],
    digest: SegmentDigest | None,
    *,
    model: str,
    locale: str,
    now: datetime,
) -> NewSegment:
    written = _levels_of_digest(digest, cut) if digest else {}
    topic = " ".join(_redacted_and_clean(digest.topic).split()) if digest else ""
    named = replace(cut, topic=topic or cut.topic)
    levels: dict[Level, SegmentLevel] = {}
    for level in wanted:
        text = written.get(level, "")
        if text:
            key = content_hash(messages, level, model, SUMMARY_VERSION)
            levels[level] = _level(level, text, model, key, now)
        elif by_code := extractive_level(level, messages, named, locale=locale, now=now):
            levels[level] = by_code
    return NewSegment(cut=named, levels=levels)


def _levels_of_digest(digest: SegmentDigest, cut: CutSegment) -> Mapping[Level, str]:
    tags = _redacted_and_clean(", ".join(digest.tags)).strip()
    return {"L2": _redacted_and_clean(digest.brief).strip(), "L3": with_values(tags, cut) if tags else ""}


def _redacted_and_clean(text: str) -> str:
    return clean(redact(text))


def _level(level: Level, text: str, made_by: str, key: str, now: datetime) -> SegmentLevel:
    return SegmentLevel(
        level=level, text=text, tokens=estimate_text(text), made_by=made_by, content_hash=key, created_at=now
    )


def _messages_of(span: Sequence[Message], cut: CutSegment) -> list[Message]:
    first = bisect_left(span, cut.from_seq, key=lambda message: message.seq)
    return list(span[first : bisect_right(span, cut.to_seq, key=lambda message: message.seq)])


def _without_commands_and_erased(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.is_part_of_talk]
