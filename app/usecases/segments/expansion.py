"""Expands compacted text: lists segments, shows them at any level of detail, and makes levels on demand."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.anchors.rendering import line_of
from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    SummarizerFailedError,
    full_reason,
)
from app.core.model.records import Page
from app.core.model.redaction import redact_messages
from app.core.model.segments import (
    ANCHORS_ID,
    EARLIER_ID,
    EXTRACTIVE,
    LEVEL_BY_NAME,
    NAME_BY_LEVEL,
    RESERVED_IDS,
    Expansion,
    Level,
    LevelName,
    Marker,
    Segment,
    SegmentLevel,
)
from app.core.segments.paging import page_end, rows_within, segment_line, segment_marker
from app.core.segments.segment_ids import is_id
from app.core.text.contents import data_bytes
from app.core.text.patterns import compiled
from app.core.text.token_counts import estimate_text
from app.off_loop import off_loop
from app.storage.repositories.sizes import PAGE_BYTES, count_fitting
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import summarizer_of
from app.usecases.compaction.segmenting import cut_of, extractive_hash, extractive_level
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.history.due_anchors import defers_anchors, find_due_anchors
from app.usecases.segments.detailing import DetailService
from app.usecases.segments.ranges import segment_of_range
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

MAX_TOKENS: Final = 8_000
"""The most tokens of a page if the caller does not say how many."""
MAX_ROWS: Final = 100
"""The most messages, segments or anchors on one page."""
MAX_ANCHORS: Final = 200
"""The most anchors shown with a segment; the last ones are taken."""
RETRY_AFTER: Final = 15.0
_TRIES: Final = 5  # an erasure may come between reading and writing; then all is read again
_CHANGES_TOO_FAST: Final = "the conversation changes too fast; try again"
_NUMBER: Final = compiled("[0-9]{1,18}", re.ASCII)
_HASH_DIGITS: Final = 12  # hex digits of a text's hash in a cursor
_DEEPER: Final[dict[Level, Level]] = {"L3": "L2", "L2": "L1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """One page of what a marker stands for."""

    segment_id: str
    level: LevelName
    segment: Segment | None = None
    """The segment; ``None`` for a reserved id."""
    content: str = ""
    """This page's part of a level's text; all pages joined are the text. Empty if the page has ``messages``."""
    messages: tuple[Message, ...] = ()
    """For ``full``: the originals in order, as they were appended, without commands."""
    segments: tuple[Segment, ...] = ()
    """For the reserved id ``earlier``: the segments on this page."""
    anchors: tuple[Anchor, ...] = ()
    """The active anchors in the segment; for the reserved id ``anchors``, those on this page."""
    markers: tuple[Marker, ...] = ()
    """The markers in a list, or the marker of the next deeper level."""
    token_count: int = 0
    """The tokens of this page."""
    made_by: str = EXTRACTIVE
    next_cursor: str | None = None
    """Where the next page begins; ``None`` on the last page."""
    expansion: Expansion | None = None
    """The expansion that was recorded, or that the caller has to record."""

    @property
    def truncated(self) -> bool:
        """Whether more pages follow."""
        return self.next_cursor is not None

    @property
    def passages(self) -> int:
        """The number of messages, segments or anchors on the page; the text of a level counts as one."""
        return len(self.messages) or len(self.segments) or (len(self.anchors) if self.segment is None else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSegment:
    """A segment in a list, with its levels and its active anchors."""

    segment: Segment
    anchors: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageRequest:
    """Which page of a list or of a segment is requested."""

    max_tokens: int
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnstoredLevel:
    """A level that was made while the database took no writes."""

    level: SegmentLevel
    content_epoch: int
    """That of the conversation whose messages it was made of."""


class ExpansionService:
    """Shows segments by id, those of earlier versions included, and by reserved id (``earlier``, ``anchors``)."""

    def __init__(self, shell: Shell, details: DetailService, spending: SpendGuard) -> None:
        self._shell = shell
        self._details = details
        self._spending = spending

    async def page(self, tenant_id: UUID, conversation_id: UUID, page: Page) -> tuple[list[ListedSegment], str | None]:
        """A page of the current version's segments, by position. Raises ``NotFoundError``."""
        await self._find_due_anchors_if_possible(tenant_id, conversation_id, EARLIER_ID)
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            found, next_cursor = await uow.segments.page(conversation_id, page)
            anchors = await _anchors_of_segments(uow, found)
        listed = [ListedSegment(segment=one, anchors=own) for one, own in zip(found, anchors, strict=True)]
        return listed, next_cursor

    async def expand(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        segment_id: str,
        level: LevelName = "full",
        *,
        max_tokens: int | None = None,
        after: str | None = None,
        records: bool = True,
    ) -> Expanded:
        """One page of a segment at a level of detail. A missing level is made by code, and stored if possible.

        Args:
            tenant_id: The tenant.
            conversation_id: The conversation.
            segment_id: The id of a segment, current or not; or a reserved id, which has only one level, a list.
            level: ``full`` are the originals.
            max_tokens: The most tokens of a page. It ends with a whole message, sentence or word, and has at least one.
            after: ``next_cursor`` of the page before.
            records: Whether the expansion is recorded here; otherwise the caller records ``Expanded.expansion``.

        Raises:
            NotFoundError: There is no such conversation or segment.
            InvalidInputError: The cursor is invalid, or the text that it points into was written again.
        """
        began, shell = self._shell.clock.monotonic(), self._shell
        page_request = _PageRequest(max_tokens=max_tokens or MAX_TOKENS, after=after)
        wanted = LEVEL_BY_NAME[level]
        if segment_id == ANCHORS_ID:
            await find_due_anchors(shell, tenant_id, conversation_id)
        else:
            await self._find_due_anchors_if_possible(tenant_id, conversation_id, segment_id)
        unstored: _UnstoredLevel | None = None
        if wanted is not None and segment_id not in RESERVED_IDS:
            unstored = await ensure_level(shell, tenant_id, conversation_id, segment_id, wanted, must_be_stored=False)
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            found = await self._read_page(uow, conversation, segment_id, level, page_request, unstored)
            expanded = replace(found, expansion=self._expansion_record(conversation_id, found, began))
            if records and expanded.expansion:
                with optional_write("expansion.not_recorded", conversation_id=str(conversation_id)):
                    await uow.expansions.add([expanded.expansion])
                    await uow.commit()
        return expanded

    async def make(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        place: str | tuple[int, int],
        level: LevelName,
        *,
        idem: Idem | None = None,
    ) -> Expanded:
        """Make a level of a segment, or of any finished range, and show its first page.

        A level that would be made the same way stays unchanged.

        Args:
            tenant_id: The tenant.
            conversation_id: The conversation.
            place: The segment's id, or its first and last ``seq``.
            level: ``detailed`` is written by the summarizer if its calls cost money; other levels are made by code.
                ``full`` are the originals, so nothing is made.
            idem: A repeated request under the same key makes nothing again.

        Raises:
            NotFoundError: There is no such conversation or segment.
            NotFoldedError: The range is not finished, or too long.
            RateLimitedError: The hour's model calls are used up.
            SummarizerFailedError: The model wrote nothing usable; the earlier level stays.
        """
        shell, wanted = self._shell, LEVEL_BY_NAME[level]
        await find_due_anchors(shell, tenant_id, conversation_id)
        async with shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, shell.clock.now())
            resolved = shell.resolver(await uow.conversations.get(conversation_id))
        segment = await self._segment_at(
            tenant_id, conversation_id, (before["from_seq"], before["to_seq"]) if before else place
        )
        if not before and wanted is not None:
            await self._make_level(tenant_id, resolved, segment, wanted)
        async with shell.uow(tenant_id) as uow:
            again = await claim_key(uow, idem, shell.clock.now())
            segment = (await uow.segments.of_ranges(conversation_id, [(segment.from_seq, segment.to_seq)]))[0]
            shown = await _page_of_segment(uow, segment, level, _PageRequest(max_tokens=MAX_TOKENS, after=None))
            if not again:  # found by its range, since an id may change
                await record(uow, idem, {"from_seq": segment.from_seq, "to_seq": segment.to_seq}, 200)
                await uow.commit()
        return shown

    async def _segment_at(self, tenant_id: UUID, conversation_id: UUID, place: str | tuple[int, int]) -> Segment:
        if not isinstance(place, str):
            return await segment_of_range(self._shell, tenant_id, conversation_id, *place)
        async with self._shell.uow(tenant_id) as uow:
            return await _segment_named(uow, conversation_id, place)

    async def _make_level(self, tenant_id: UUID, resolved: Resolved, segment: Segment, level: Level) -> None:
        """Make the level by code, so that there is one in any case. Then have a metered summarizer write an L1."""
        shell, conversation_id = self._shell, segment.conversation_id
        await ensure_level(shell, tenant_id, conversation_id, segment.id, level)
        if level != "L1":
            return
        metered = summarizer_of(shell, resolved).profile.metered
        if not metered:
            return
        async with shell.uow(tenant_id) as uow:
            await self._spending.check(uow, resolved, metered=metered)
        made = await self._details.run_now(tenant_id, conversation_id, segment.id)
        if made.outcome in {"refused", "failed"}:
            detail = f"the model wrote no usable text ({full_reason(made.reason)}); what there was stays"
            raise SummarizerFailedError(detail, extra={"reason": made.reason})
        if made.outcome not in {"written", "kept"}:
            message = "the model is busy with this conversation: the text is written as soon as it is free"
            raise ConflictError(message, retry_after=RETRY_AFTER)

    async def _find_due_anchors_if_possible(self, tenant_id: UUID, conversation_id: UUID, segment_id: str) -> None:
        # In a long history this takes minutes: do not wait for it where there is no segment to show.
        async with self._shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            if segment_id != EARLIER_ID:
                await _segment_named(uow, conversation_id, segment_id)
            elif defers_anchors(conversation):
                return
        # While the database takes no writes, segments have the anchors that were found when they were made: anchors can
        # only be due in messages after them.
        with optional_write("anchors.not_found_now", conversation_id=str(conversation_id)):
            await find_due_anchors(self._shell, tenant_id, conversation_id)

    async def _read_page(
        self,
        uow: UnitOfWork,
        conversation: Conversation,
        segment_id: str,
        level: LevelName,
        page_request: _PageRequest,
        unstored: _UnstoredLevel | None,
    ) -> Expanded:
        if segment_id == EARLIER_ID:
            levels = self._shell.resolver(conversation).policy.levels
            return await _earlier_segments(uow, conversation, levels[0] if levels else "L3", page_request)
        if segment_id == ANCHORS_ID:
            return await _anchors_by_position(uow, conversation, page_request)
        segment = await _segment_named(uow, conversation.id, segment_id)
        if unstored is not None:
            if unstored.content_epoch != conversation.content_epoch:
                raise ConflictError(_CHANGES_TOO_FAST)
            segment = replace(segment, levels={**segment.levels, unstored.level.level: unstored.level})
        return await _page_of_segment(uow, segment, level, page_request)

    def _expansion_record(self, conversation_id: UUID, found: Expanded, began: float) -> Expansion:
        return Expansion(
            id=self._shell.new_id(),
            conversation_id=conversation_id,
            way="explicit",
            level=found.level,
            segment_id=found.segment_id,
            passages=found.passages,
            tokens=found.token_count,
            duration_ms=round((self._shell.clock.monotonic() - began) * 1_000),
            created_at=self._shell.clock.now(),
        )


async def _page_of_segment(uow: UnitOfWork, segment: Segment, level: LevelName, page_request: _PageRequest) -> Expanded:
    wanted = LEVEL_BY_NAME[level]
    page = (
        await _page_of_originals(uow, segment, page_request)
        if wanted is None
        else _page_of_level(segment, wanted, page_request)
    )
    (anchors,) = await _anchors_of_segments(uow, [segment])
    return replace(page, anchors=anchors)


async def _segment_named(uow: UnitOfWork, conversation_id: UUID, segment_id: str) -> Segment:
    if not is_id(segment_id):
        raise NotFoundError("No such segment.")
    return await uow.segments.get(conversation_id, segment_id)


async def ensure_level(
    shell: Shell,
    tenant_id: UUID,
    conversation_id: UUID,
    segment_id: str,
    level: Level,
    *,
    must_be_stored: bool = True,
) -> _UnstoredLevel | None:
    """Make this level of a segment by code if it is missing, or if code would write it differently now.

    A level that a model wrote stays. Raises ``NotFoundError``.

    Returns:
        The level, if it could not be stored because the database takes no writes, and need not be; else ``None``.
    """
    for _ in range(_TRIES):
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            segment = await _segment_named(uow, conversation_id, segment_id)
            stored = segment.levels.get(level)
            if stored is not None and stored.made_by != EXTRACTIVE:
                return None
            originals = await uow.messages.between(conversation_id, segment.from_seq, segment.to_seq)
        async with shell.work_records.record_work(tenant_id, conversation_id, "expansion"):
            made = await off_loop(_level_by_code, segment, originals, level, conversation.locale, shell.clock.now())
        if made is None or (stored is not None and stored.content_hash == made.content_hash):
            return None
        with nullcontext() if must_be_stored else optional_write("level.not_stored", segment_id=segment_id):
            if await put_level(shell, tenant_id, conversation, segment, made):
                return None
            continue
        return _UnstoredLevel(level=made, content_epoch=conversation.content_epoch)
    raise ConflictError(_CHANGES_TOO_FAST)


async def put_level(shell: Shell, tenant_id: UUID, read: Conversation, segment: Segment, level: SegmentLevel) -> bool:
    """Store a level. Returns false if a message was erased since the conversation was ``read``."""
    async with shell.uow(tenant_id) as uow:
        present = await uow.conversations.lock(read.id)
        if present.content_epoch != read.content_epoch:
            return False
        await uow.segments.put_levels(read.id, segment.id, [level])
        await uow.commit()
    return True


def _level_by_code(
    segment: Segment, originals: Sequence[Message], level: Level, locale: str, now: datetime
) -> SegmentLevel | None:
    shown = redact_messages(originals)
    stored = segment.levels.get(level)
    # Writing a level costs more than hashing its sources.
    if stored is not None and stored.content_hash == extractive_hash(level, shown):
        return stored
    return extractive_level(level, shown, cut_of(segment), locale=locale, now=now)


async def _page_of_originals(uow: UnitOfWork, segment: Segment, page_request: _PageRequest) -> Expanded:
    """A page of whole messages. A message that alone exceeds the limit is a page of its own."""
    last = _seq_in(page_request.after, segment) if page_request.after else segment.from_seq - 1
    stored: list[Message] = []
    while not stored and last < segment.to_seq:  # commands alone make no page
        start = last
        outline = await uow.messages.outline(segment.conversation_id, after_seq=start, limit=MAX_ROWS)
        inside = [item for item in outline if item.seq <= segment.to_seq]
        shown = inside[: rows_within([item.token_count for item in inside], page_request.max_tokens)]
        last = shown[-1].seq if shown else segment.to_seq
        stored = await uow.messages.between(segment.conversation_id, start + 1, last, superseded=True)
    messages = await uow.messages.with_reasoning(stored)
    sizes = [len(message.reasoning.encode()) + sum(map(data_bytes, message.parts)) for message in messages]
    if (count := max(count_fitting(sizes, PAGE_BYTES), 1)) < len(messages):
        messages = messages[:count]
        last = messages[-1].seq
    return Expanded(
        segment_id=segment.id,
        level="full",
        segment=segment,
        messages=tuple(await uow.contents.with_data(messages)),
        token_count=sum(message.token_count for message in messages),
        next_cursor=None if last >= segment.to_seq else str(last),
    )


def _page_of_level(segment: Segment, level: Level, page_request: _PageRequest) -> Expanded:
    """A page of a stored level; empty if the level has no text any more."""
    stored = segment.levels.get(level)
    text = stored.text if stored else ""
    start = _offset_in(page_request.after, stored) if page_request.after else 0
    end = page_end(text, start, page_request.max_tokens)
    return Expanded(
        segment_id=segment.id,
        level=NAME_BY_LEVEL[level],
        segment=segment,
        content=text[start:end],
        markers=deeper_markers(segment, level),
        token_count=estimate_text(text[start:end]),
        made_by=stored.made_by if stored else EXTRACTIVE,
        next_cursor=f"{end}.{_hash_of_text(stored)}" if stored and end < len(text) else None,
    )


async def _earlier_segments(
    uow: UnitOfWork, conversation: Conversation, level: Level, page_request: _PageRequest
) -> Expanded:
    """All covered segments of the current version, oldest first, each on a line with its marker."""
    page = Page(limit=MAX_ROWS, after=page_request.after, order="asc")
    found, next_cursor = await uow.segments.page(conversation.id, page)
    lines = [segment_line(segment, level, conversation.locale) for segment in found]
    count = rows_within([estimate_text(line) + 1 for line in lines], page_request.max_tokens)
    if count < len(found):
        found, next_cursor = await uow.segments.page(conversation.id, replace(page, limit=count))
    return _expanded_list(
        EARLIER_ID,
        lines[:count],
        next_cursor,
        segments=tuple(found),
        markers=tuple(segment_marker(segment, level) for segment in found),
    )


async def _anchors_by_position(uow: UnitOfWork, conversation: Conversation, page_request: _PageRequest) -> Expanded:
    page = Page(limit=MAX_ROWS, after=page_request.after, order="asc")
    found, next_cursor = await uow.anchors.page(conversation.id, page, status="active", as_said=True)
    lines = [line_of(anchor) for anchor in found]
    count = rows_within([estimate_text(line) + 1 for line in lines], page_request.max_tokens)
    if count < len(found):
        found, next_cursor = await uow.anchors.page(conversation.id, replace(page, limit=count), status="active")
    return _expanded_list(ANCHORS_ID, lines[:count], next_cursor, anchors=tuple(found))


def _expanded_list(
    segment_id: str,
    lines: Sequence[str],
    next_cursor: str | None,
    *,
    segments: tuple[Segment, ...] = (),
    anchors: tuple[Anchor, ...] = (),
    markers: tuple[Marker, ...] = (),
) -> Expanded:
    content = "\n".join(lines)
    return Expanded(
        segment_id=segment_id,
        level="tags",
        content=content,
        segments=segments,
        anchors=anchors,
        markers=markers,
        token_count=estimate_text(content),
        next_cursor=next_cursor,
    )


async def _anchors_of_segments(uow: UnitOfWork, segments: Sequence[Segment]) -> list[tuple[Anchor, ...]]:
    """The last active anchors of each of these segments of a conversation, read together."""
    if not segments:
        return []
    first, last = min(one.from_seq for one in segments), max(one.to_seq for one in segments)
    id_, limit = segments[0].conversation_id, MAX_ANCHORS * len(segments)
    read = await uow.anchors.active_since(id_, first, through_seq=last, limit=limit)
    seqs, shown = [anchor.seq for anchor in read], list[tuple[Anchor, ...]]()
    for one in segments:
        start, end = bisect_left(seqs, one.from_seq), bisect_right(seqs, one.to_seq)
        own = read[max(start, end - MAX_ANCHORS) : end]
        if len(read) == limit and len(own) < MAX_ANCHORS and one.from_seq <= seqs[0]:  # later segments have more
            own = await uow.anchors.active_since(id_, one.from_seq, through_seq=one.to_seq, limit=MAX_ANCHORS)
        shown.append(tuple(own))
    return shown


def deeper_markers(segment: Segment, level: Level) -> tuple[Marker, ...]:
    """The marker of the next deeper level; none for L1, since the originals below it have the same id."""
    deeper = _DEEPER.get(level)
    return (segment_marker(segment, deeper),) if deeper else ()


def _seq_in(cursor: str, segment: Segment) -> int:
    if not _NUMBER.fullmatch(cursor) or not segment.from_seq <= int(cursor) < segment.to_seq:
        raise _bad_cursor()
    return int(cursor)


def _offset_in(cursor: str, stored: SegmentLevel | None) -> int:
    offset, _, key = cursor.partition(".")
    if not _NUMBER.fullmatch(offset) or not key:
        raise _bad_cursor()
    if stored is None or key != _hash_of_text(stored) or int(offset) >= len(stored.text):
        raise InvalidInputError.of(
            "after", "this level was written anew since the page before; begin again without after"
        )
    return int(offset)


def _hash_of_text(stored: SegmentLevel) -> str:
    # The hash is of the text itself, since a model may write another text for the same messages.
    return hashlib.sha256(stored.text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def _bad_cursor() -> InvalidInputError:
    return InvalidInputError.of("after", "not a cursor of this segment; use next_cursor of a page before")
