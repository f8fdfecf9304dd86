"""The SQL of segments and their levels: inserted, looked up by id and by place, made current or not."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Integer,
    Text,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import array, insert
from sqlalchemy.orm import aliased
from sqlmodel import col

from app.core.model.errors import NotFoundError
from app.core.model.records import Page
from app.core.model.segments import EXTRACTIVE, LEVELS, Level, Segment, SegmentLevel, ServableSegment
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_NUMBER, cut_page, select_page
from app.storage.repositories.database_time import is_over, times_from_now
from app.storage.repositories.mapping import columns, record_from_row, record_maker, without
from app.storage.tables import CURRENT, WANTS_DETAIL, ExpansionRow, SegmentLevelRow, SegmentRow, StateVersionRow
from app.storage.tenancy import keep_compiled

_SERVED: Final[tuple[Level, ...]] = ("L2", "L3")
_UNCHANGED_BY_ERASURE: Final = frozenset(
    {"id", "conversation_id", "from_seq", "to_seq", "is_current", "created_at", "levels"}
)
"""The columns that erasure does not change."""
_NUMBER_SUFFIX: Final = "_[0-9]+$"
_BIGINTS: Final = ARRAY(BigInteger)
_TEXTS: Final = ARRAY(Text)
_LEVEL_FIELDS: Final = tuple(item.name for item in fields(SegmentLevel))
_LEVEL_COLUMNS: Final[tuple[Any, ...]] = tuple(
    col(getattr(SegmentLevelRow, name)).label(f"level_{name}") for name in _LEVEL_FIELDS
)
_LEVEL_INDEX: Final = _LEVEL_FIELDS.index("level")
_make_level, _make_servable = record_maker(SegmentLevel), record_maker(ServableSegment)
_id = col(SegmentRow.id)
_from = col(SegmentRow.from_seq)
_to = col(SegmentRow.to_seq)
# Literal SQL, not parameters: only then can the planner be sure that the partial indexes apply.
_CURRENT = text(f"segments.{CURRENT}")
_WANTS_DETAIL = text(WANTS_DETAIL)


def _servables(picked: Any, levels: Collection[Level]) -> Any:
    """Selects the columns of ``ServableSegment`` for the picked segments, the texts as pairs of level and text."""
    row, level = SegmentRow, SegmentLevelRow
    pairs = func.array_agg(array([col(level.level), col(level.text)]), type_=ARRAY(Text, dimensions=2))
    texts = select(pairs).where(
        col(level.tenant_id) == col(row.tenant_id),
        col(level.conversation_id) == col(row.conversation_id),
        col(level.segment_id) == _id,
        col(level.level) == any_(literal(list(levels), _TEXTS)),
    )
    identifiers = func.cardinality(col(row.identifiers), type_=Integer)
    own = (_id, _from, _to, col(row.topic), col(row.messages), col(row.tokens), identifiers)
    return picked.with_only_columns(*own, texts.scalar_subquery())


def _with_levels(picked: Any, levels: Collection[Level]) -> Any:
    level, rows = SegmentLevelRow, picked.cte("picked")
    of_segment = and_(
        col(level.tenant_id) == rows.c.tenant_id,
        col(level.conversation_id) == rows.c.conversation_id,
        col(level.segment_id) == rows.c.id,
        col(level.level) == any_(literal(list(levels), _TEXTS)),
    )
    statement = select(rows, *_LEVEL_COLUMNS).outerjoin_from(rows, level, of_segment)
    return statement.order_by(rows.c.from_seq, rows.c.to_seq, col(level.level))


_SEGMENTS = select(SegmentRow).where(col(SegmentRow.conversation_id) == bindparam("conversation_id"))
_BY_ID = _with_levels(_SEGMENTS.where(_id == bindparam("segment_id")), LEVELS)
_RANGES = select(*(func.unnest(bindparam(name, type_=_BIGINTS)) for name in ("firsts", "lasts")))
_BY_RANGES = _with_levels(_SEGMENTS.where(tuple_(_from, _to).in_(_RANGES)), LEVELS)
_NEWEST = _SEGMENTS.where(_CURRENT).order_by(_from.desc()).limit(bindparam("limit", type_=BigInteger))
_SERVED_NEWEST = _servables(_NEWEST, _SERVED)
_WHOLE_NEWEST = _servables(_NEWEST, LEVELS)
_AMONG_NEWEST = _SEGMENTS.where(_id == any_(bindparam("ids", type_=_TEXTS))).where(
    _id.in_(_NEWEST.with_only_columns(_id))
)
_SERVED_AMONG_NEWEST = _servables(_AMONG_NEWEST.order_by(_from.desc()), _SERVED)
_COUNT = _SEGMENTS.where(_CURRENT).with_only_columns(func.count())
_WANTED_SEQS = func.unnest(bindparam("seqs", type_=_BIGINTS)).table_valued("seq", name="wanted").render_derived()
_SEGMENT_BEGUN = _NEWEST.where(_from <= _WANTED_SEQS.c.seq).limit(1).with_only_columns(_id, _to).lateral()
_COVERING = select(_WANTED_SEQS.c.seq, _SEGMENT_BEGUN.c.id).join_from(
    _WANTED_SEQS, _SEGMENT_BEGUN, _SEGMENT_BEGUN.c.to_seq >= _WANTED_SEQS.c.seq
)
keep_compiled(_BY_ID, _BY_RANGES, _SERVED_NEWEST, _WHOLE_NEWEST, _SERVED_AMONG_NEWEST, _COUNT, _COVERING)


class SegmentRepository(Repository):
    """Rows of ``segments`` and ``segment_levels``.

    Every segment ever made stays; ``is_current`` marks the present ones.
    """

    async def add(self, segments: Sequence[Segment]) -> None:
        """Insert segments with their levels, in two round trips.

        The caller has checked that the ranges are new (``of_ranges``) and the ids free. Raises ``NotFoundError`` if the
        conversation does not exist, ``ConflictError`` if an id or a range exists already.
        """
        if not segments:
            return
        rows = [without(columns(segment), "levels") for segment in segments]
        await self._session.execute(insert(SegmentRow), rows)
        levels = [_level_columns(segment, level) for segment in segments for level in segment.levels.values()]
        if levels:
            await self._session.execute(insert(SegmentLevelRow), levels)

    async def get(self, conversation_id: UUID, segment_id: str) -> Segment:
        """A segment, current or not, with its levels. Raises ``NotFoundError``."""
        found = await self._read_segments(_BY_ID, conversation_id=conversation_id, segment_id=segment_id)
        if not found:
            raise NotFoundError("No such segment.")
        return found[0]

    async def of_ranges(self, conversation_id: UUID, ranges: Sequence[tuple[int, int]]) -> list[Segment]:
        """The segments with exactly one of these ranges (first, last), current or not, with levels, by ``from_seq``."""
        if not ranges:
            return []
        firsts, lasts = (list(seqs) for seqs in zip(*ranges, strict=True))
        return await self._read_segments(_BY_RANGES, conversation_id=conversation_id, firsts=firsts, lasts=lasts)

    async def ids_like(self, conversation_id: UUID, stems: Sequence[str]) -> frozenset[str]:
        """The ids in use that equal one of ``stems``, or one of them with a number after it (``auth``, ``auth_2``)."""
        wanted = any_(literal(list(stems), _TEXTS))
        alike = or_(_id == wanted, func.regexp_replace(_id, _NUMBER_SUFFIX, "") == wanted)
        return frozenset(await self._session.all(select(_id).where(_of_conversation(conversation_id), alike)))

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[Segment], str | None]:
        """A page of the current version's segments, by ``from_seq``, with levels."""
        statement = select(SegmentRow).where(_of_conversation(conversation_id), _CURRENT)
        found = await self._with_all_levels(select_page(statement, page, (_from,), BY_NUMBER))
        in_order = found if page.order == "asc" else found[::-1]
        return cut_page(in_order, page.limit, lambda segment: (segment.from_seq,))

    async def newest(self, conversation_id: UUID, *, limit: int, whole: bool = False) -> list[ServableSegment]:
        """The newest current segments, by ``from_seq``, with levels L2 and L3, or all if ``whole``."""
        found = _WHOLE_NEWEST if whole else _SERVED_NEWEST
        return await self._read_servables(found, conversation_id=conversation_id, limit=limit)

    async def among_newest(self, conversation_id: UUID, ids: Sequence[str], *, limit: int) -> list[ServableSegment]:
        """Those of these segments that are among the ``limit`` newest current ones, with L2 and L3, by ``from_seq``."""
        given = {"conversation_id": conversation_id, "ids": list(ids), "limit": limit}
        return await self._read_servables(_SERVED_AMONG_NEWEST, **given)

    async def count(self, conversation_id: UUID) -> int:
        """How many segments are current."""
        return int(await self._session.first(_COUNT, conversation_id=conversation_id))

    async def covering(self, conversation_id: UUID, seqs: Sequence[int]) -> dict[int, str]:
        """For each of these messages, the id of the current segment that contains it, by ``seq``."""
        found = await self._session.records(_COVERING, conversation_id=conversation_id, seqs=sorted(set(seqs)))
        return {row[0]: row[1] for row in found}

    async def touching(self, conversation_id: UUID, seqs: Sequence[int]) -> list[Segment]:
        """Every segment ever made that contains any of these messages, with levels."""
        if not seqs:
            return []
        near = select(SegmentRow).where(_of_conversation(conversation_id), _from <= max(seqs), _to >= min(seqs))
        ordered = sorted(seqs)
        return [segment for segment in await self._with_all_levels(near) if _contains_any(segment, ordered)]

    async def named(self, conversation_id: UUID, segment_ids: Sequence[str]) -> list[Segment]:
        """The segments with these ids, current or not, with levels, by ``from_seq``."""
        these = _id == any_(literal(list(segment_ids), _TEXTS))
        return (
            await self._with_all_levels(select(SegmentRow).where(_of_conversation(conversation_id), these))
            if segment_ids
            else []
        )

    async def described_by_model(self, conversation_id: UUID, segment_ids: Sequence[str]) -> list[Segment]:
        """Those of these segments with a level written by a model, current or not, with levels, by ``from_seq``."""
        level = SegmentLevelRow
        described = select(col(level.segment_id)).where(
            col(level.conversation_id) == conversation_id, col(level.made_by) != EXTRACTIVE
        )
        these = _id == any_(literal(list(segment_ids), _TEXTS))
        picked = select(SegmentRow).where(_of_conversation(conversation_id), these, _id.in_(described))
        return await self._with_all_levels(picked) if segment_ids else []

    async def put_levels(self, conversation_id: UUID, segment_id: str, levels: Sequence[SegmentLevel]) -> None:
        """Insert or replace these levels. Raises ``NotFoundError`` without the segment."""
        if not levels:
            return
        key = {"conversation_id": conversation_id, "segment_id": segment_id}
        statement = insert(SegmentLevelRow)
        replaced = {name: statement.excluded[name] for name in _LEVEL_FIELDS if name != "level"}
        statement = statement.on_conflict_do_update(constraint="pk_segment_levels", set_=replaced)
        await self._session.execute(statement, [key | columns(level) for level in levels])

    async def rewrite(self, segment: Segment) -> None:
        """Store a segment's topic, counts, identifiers and levels again; other levels are deleted.

        For erasures, and for texts of a model that a message contradicts.
        """
        values = {name: item for name, item in columns(segment).items() if name not in _UNCHANGED_BY_ERASURE}
        await self._update_segment(segment.conversation_id, segment.id, values)
        await self._session.execute(delete(SegmentLevelRow).where(*_levels_of(segment.conversation_id, segment.id)))
        await self.put_levels(segment.conversation_id, segment.id, list(segment.levels.values()))

    async def rename(self, conversation_id: UUID, segment_id: str, new_id: str) -> None:
        """Give a segment another id, everywhere (levels, versions, expansions); the old id is no longer stored.

        For erasures only.
        """
        levels = await self._session.all(
            delete(SegmentLevelRow).where(*_levels_of(conversation_id, segment_id)).returning(SegmentLevelRow)
        )
        kept = [record_from_row(SegmentLevel, row) for row in levels]
        await self._update_segment(conversation_id, segment_id, {"id": new_id})
        await self.put_levels(conversation_id, new_id, kept)
        ids = col(StateVersionRow.segment_ids)
        await self._session.execute(
            update(StateVersionRow)
            .where(col(StateVersionRow.conversation_id) == conversation_id, literal(segment_id) == any_(ids))
            .values(segment_ids=func.array_replace(ids, segment_id, new_id, type_=_TEXTS))
        )
        expanded = (col(ExpansionRow.conversation_id) == conversation_id, col(ExpansionRow.segment_id) == segment_id)
        await self._session.execute(update(ExpansionRow).where(*expanded).values(segment_id=new_id))

    async def update(self, conversation_id: UUID, segment_id: str, **changes: Any) -> None:
        """Set ``wants_detail``, ``detail_tries``, ``detail_after`` (a time, or a time span from now on)."""
        await self._update_segment(conversation_id, segment_id, times_from_now(changes))

    async def make_current(self, conversation_id: UUID, version: int) -> None:
        """Recompute ``is_current`` from the chain of parents of that version; unchanged rows are not written.

        For restores.
        """
        ids = await self._session.all(_ids_of_chain(conversation_id, version))
        counts = _id == any_(literal(sorted({*ids}), _TEXTS))
        await self._session.execute(
            update(SegmentRow)
            .where(_of_conversation(conversation_id), col(SegmentRow.is_current) != counts)
            .values(is_current=~col(SegmentRow.is_current))
        )

    async def set_current(self, conversation_id: UUID, segment_ids: Sequence[str]) -> None:
        """Make these segments current in addition to the others."""
        these = _id == any_(literal(list(segment_ids), _TEXTS))
        await self._session.execute(
            update(SegmentRow)
            .where(_of_conversation(conversation_id), these, ~col(SegmentRow.is_current))
            .values(is_current=True)
        )

    async def wanting_detail(self, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID, str]]:
        """Tenant, conversation and id of current segments that want an L1 and whose ``detail_after`` is over.

        The oldest come first, over all tenants for the sweeper, by the partial index. Times are those of the database.
        """
        row, after = SegmentRow, col(SegmentRow.detail_after)
        statement = select(col(row.tenant_id), col(row.conversation_id), _id)
        if conversation_id is not None:
            statement = statement.where(_of_conversation(conversation_id))
        due = statement.where(_WANTS_DETAIL, is_over(after))
        lines = await self._session.rows(due.order_by(after.nulls_first(), col(row.created_at), _from).limit(limit))
        return [(line.tenant_id, line.conversation_id, line.id) for line in lines]

    async def _update_segment(self, conversation_id: UUID, segment_id: str, values: dict[str, Any]) -> None:
        here = (_of_conversation(conversation_id), _id == segment_id)
        await self._session.execute(update(SegmentRow).where(*here).values(**values))

    async def _with_all_levels(self, picked: Any) -> list[Segment]:
        # One statement, so that segments and levels are of the same moment.
        return await self._read_segments(_with_levels(picked, LEVELS))

    async def _read_servables(self, statement: Any, /, **given: Any) -> list[ServableSegment]:
        """Segments in order of ``from_seq``, from a statement that gives the newest first."""
        records = await self._session.records(statement, **given)
        return [_make_servable((*own, dict(pairs or ()))) for *own, pairs in reversed(records)]

    async def _read_segments(self, statement: Any, /, **given: Any) -> list[Segment]:
        lines = await self._session.rows(statement, **given)
        return await off_loop(_segments_of_lines, lines, size=BYTES_PER_ITEM * len(lines))


def _segments_of_lines(lines: Iterable[Any]) -> list[Segment]:
    firsts: dict[tuple[UUID, str], Any] = {}
    levels: defaultdict[tuple[UUID, str], dict[Level, SegmentLevel]] = defaultdict(dict)
    for line in lines:
        key = (line.tenant_id, line.id)
        firsts.setdefault(key, line)
        level = line[-len(_LEVEL_FIELDS) :]
        if level[_LEVEL_INDEX] is not None:
            levels[key][level[_LEVEL_INDEX]] = _make_level(level)
    return [_segment(line, levels[key]) for key, line in firsts.items()]


def _ids_of_chain(conversation_id: UUID, version: int) -> Any:
    """Ids of the segments of a version and of all versions before it that it builds on."""
    row, parent = StateVersionRow, aliased(StateVersionRow)
    chain = (
        select(col(row.tenant_id), col(row.parent_version), col(row.segment_ids))
        .where(col(row.conversation_id) == conversation_id, col(row.version) == version)
        .cte("chain", recursive=True)
    )
    before = (
        select(col(parent.tenant_id), col(parent.parent_version), col(parent.segment_ids))
        .where(col(parent.conversation_id) == conversation_id, col(parent.version) == chain.c.parent_version)
        .where(col(parent.tenant_id) == chain.c.tenant_id)
    )
    return select(func.unnest(chain.union_all(before).c.segment_ids))


def _of_conversation(conversation_id: UUID) -> Any:
    return col(SegmentRow.conversation_id) == conversation_id


def _levels_of(conversation_id: UUID, segment_id: str) -> tuple[Any, ...]:
    level = SegmentLevelRow
    return col(level.conversation_id) == conversation_id, col(level.segment_id) == segment_id


def _level_columns(segment: Segment, level: SegmentLevel) -> dict[str, Any]:
    return {"conversation_id": segment.conversation_id, "segment_id": segment.id, **columns(level)}


def _segment(row: Any, levels: Mapping[Level, SegmentLevel] | None = None) -> Segment:
    return record_from_row(Segment, row, identifiers=tuple(row.identifiers), levels=dict(levels or {}))


def _contains_any(segment: Segment | SegmentRow, ordered: Sequence[int]) -> bool:
    place = bisect_left(ordered, segment.from_seq)
    return place < len(ordered) and ordered[place] <= segment.to_seq
