"""The figures of statistics: sums over the rows of a conversation or a tenant, and over recent rows of all tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import (
    BigInteger,
    DateTime,
    Numeric,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased
from sqlmodel import col

from app.core.model.caches import CacheEntry, CacheMeasure
from app.core.model.continuity import Answered, Continuity
from app.core.model.conversation import Usage
from app.core.model.records import Attempt, Compaction, DetailCall, DetailCallPurpose, EntryCounts, Turn, Verification
from app.core.model.segments import Expansion, Level
from app.core.model.statistics import (
    APPLIED,
    CallPurpose,
    CallTally,
    CompactionTally,
    ContinuityMeasure,
    ExpansionTally,
    Fidelity,
    Latency,
    LevelMeasure,
    Measurements,
    PromptEffect,
    RepairTally,
)
from app.storage.repositories.base import Repository
from app.storage.repositories.compactions import as_compaction
from app.storage.repositories.mapping import REMOVED_POLICY_FIELDS, record_from_row, without
from app.storage.repositories.turns import as_turn
from app.storage.repositories.verifications import as_verification
from app.storage.tables import (
    COMPACTION_IN_FLIGHT,
    CURRENT,
    CacheEntryRow,
    CompactionRow,
    ConversationRow,
    DetailCallRow,
    ExpansionRow,
    MessageRow,
    SegmentLevelRow,
    SegmentRow,
    StateVersionRow,
    TurnRow,
    VerificationRow,
)
from app.storage.tenancy import keep_compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """A turn that has ended, with the present data of its conversation."""

    turn: Turn
    usage: Mapping[str, Any] | None
    """The usage of its reply."""
    preset: str
    preset_version: int
    policy: Mapping[str, Any]
    """The conversation's overrides of its policy."""
    context_tokens: int
    """The size of the conversation's present context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Rows of all tenants that ended recently: for metrics, which do not show whose they are."""

    compactions: list[Compaction]
    turns: list[EndedTurn]
    expansions: list[Expansion]
    details: list[DetailCall]
    """Calls for details, each at the time at which it began."""
    verifications: list[Verification] = field(default_factory=list)
    caches: list[CacheEntry] = field(default_factory=list)
    levels: Mapping[UUID, Sequence[LevelMeasure]] = field(default_factory=dict)
    """The levels of the segments that an applied compaction made, by the compaction's id."""


_ENTRY_COUNTS: Final = ("added", "kept", "superseded", "dropped", "restored_by_code", "ungrounded")
_DETAIL_CALL_PURPOSES: Final[tuple[DetailCallPurpose, ...]] = ("detail", "embedding")
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
_ATTEMPT_ADAPTER: Final = TypeAdapter(Attempt)
_compaction = CompactionRow
_TALLY_COLUMNS: Final = (
    col(_compaction.trigger),
    col(_compaction.status),
    col(_compaction.ran_in),
    col(_compaction.reason),
)
_IS_APPLIED: Final = col(_compaction.status) == APPLIED
_SEGMENT_OF_LEVEL: Final = and_(
    col(SegmentRow.tenant_id) == col(SegmentLevelRow.tenant_id),
    col(SegmentRow.conversation_id) == col(SegmentLevelRow.conversation_id),
    col(SegmentRow.id) == col(SegmentLevelRow.segment_id),
)
_HAS_TOKEN_COUNTS: Final = and_(
    _IS_APPLIED, col(_compaction.tokens_before).is_not(None), col(_compaction.tokens_after).is_not(None)
)


CONTINUITY_COUNTS: Final = ("before", "after", "contradicted")
"""The names of the counts in each kind of a continuity score."""
_CONTINUITY_ADAPTER: Final = TypeAdapter(Continuity)
MAX_ROWS: Final = 200_000
"""The most rows of a kind that are summed, the newest; this takes some seconds at most. Ids are ordered by time."""
_LOWEST_ID: Final = cast(literal("00000000-0000-0000-0000-000000000000"), Uuid)


class StatisticsRepository(Repository):
    """Sums over rows, computed by the database, so that they are exact while others write."""

    async def measured(self, conversation_id: UUID | None = None, *, since: datetime | None = None) -> Measurements:
        """All figures of a conversation or of the whole tenant, of rows that ended at or after ``since``."""
        scope = partial(_scope, conversation_id=conversation_id, since=since)
        compactions = scope(CompactionRow, "finished_at")
        expansions = scope(ExpansionRow, "created_at")
        details = scope(DetailCallRow, "called_at")
        verifications = scope(VerificationRow, "finished_at")
        turns = scope(TurnRow, "finished_at")
        caches = scope(CacheEntryRow, "at")
        await asyncio.sleep(0)  # building the conditions for the first time takes a while
        return Measurements(
            compactions=tuple(await self._compactions(compactions)),
            calls=tuple(await self._calls(compactions, details, verifications)),
            expansions=tuple(await self._expansions(expansions)),
            in_turns=_latency(await self._rows(_in_turns, compactions)),
            expanding=_latency(await self._rows(_expanding, expansions)),
            turns=_latency(await self._rows(_turns, turns)),
            fidelity=await self._fidelity(compactions),
            continuity=await self._continuity(compactions),
            repairs=tuple(await self._repairs(compactions)),
            prompts=tuple(await self._prompts(compactions)),
            caches=await self._caches(caches),
            last_applied=await self._first(_last_applied, compactions),
        )

    async def levels(self, conversation_ids: Sequence[UUID]) -> list[LevelMeasure]:
        """The sizes of the current segments of these conversations at each level that they have."""
        return await self._levels(conversation_ids, text(f"segments.{CURRENT}"))

    async def levels_of(self, conversation_id: UUID, compaction_id: UUID) -> list[LevelMeasure]:
        """The sizes of the segments that this compaction made, at each level that they have."""
        made = select(func.unnest(col(StateVersionRow.segment_ids))).where(
            col(StateVersionRow.conversation_id) == conversation_id,
            col(StateVersionRow.compaction_id) == compaction_id,
        )
        return await self._levels([conversation_id], col(SegmentRow.id).in_(made))

    async def ended(self, since: datetime, *, limit: int) -> Ended:
        """Rows of all tenants that ended after ``since``, by indexes on time; of each kind the first ``limit``."""

        async def ended_rows(row: Any, moment: Any, *conditions: Any) -> Sequence[Any]:
            statement = select(row).where(col(moment) > since, *conditions).order_by(col(moment)).limit(limit)
            return await self._session.all(statement)

        turns = (
            select(
                TurnRow,
                col(MessageRow.usage),
                col(ConversationRow.preset),
                col(ConversationRow.preset_version),
                col(ConversationRow.policy),
                col(ConversationRow.context_tokens),
            )
            .join(ConversationRow, _turn_refers_to(TurnRow.conversation_id, ConversationRow))
            .outerjoin(MessageRow, _turn_refers_to(TurnRow.reply_id, MessageRow))
            .where(col(TurnRow.finished_at) > since)
            .order_by(col(TurnRow.finished_at))
        )
        compactions = await ended_rows(CompactionRow, _compaction.finished_at)
        details = await ended_rows(DetailCallRow, DetailCallRow.called_at, col(DetailCallRow.attempt).is_not(None))
        verifications = await ended_rows(VerificationRow, VerificationRow.finished_at)
        return Ended(
            compactions=[as_compaction(one) for one in compactions],
            levels=await self._levels_by_compaction(compactions) if compactions else {},
            turns=[
                EndedTurn(
                    turn=as_turn(turn),
                    usage=usage,
                    preset=preset,
                    preset_version=version,
                    policy=without(policy, *REMOVED_POLICY_FIELDS),
                    context_tokens=tokens,
                )
                for turn, usage, preset, version, policy, tokens in await self._session.rows(turns.limit(limit))
            ],
            details=[
                record_from_row(DetailCall, one, attempt=_ATTEMPT_ADAPTER.validate_python(one.attempt))
                for one in details
            ],
            verifications=[as_verification(one) for one in verifications],
            caches=[record_from_row(CacheEntry, one) for one in await ended_rows(CacheEntryRow, CacheEntryRow.at)],
            expansions=[
                record_from_row(Expansion, one) for one in await ended_rows(ExpansionRow, ExpansionRow.created_at)
            ],
        )

    async def in_flight(self) -> Mapping[str, int]:
        """How many compactions of all tenants are queued or running, by status; found by the partial index."""
        status = col(_compaction.status)
        statement = select(status, func.count()).select_from(CompactionRow).where(text(COMPACTION_IN_FLIGHT))
        return {name: int(count) for name, count in await self._session.rows(statement.group_by(status))}

    async def _rows(self, build: Build, scope: _Scope, *more: Any) -> list[Any]:
        return await self._session.rows(_kept(build, scope.conditions, *more), **scope.given)

    async def _first(self, build: Build, scope: _Scope) -> Any:
        return await self._session.first(_kept(build, scope.conditions), **scope.given)

    async def _compactions(self, scope: _Scope) -> list[CompactionTally]:
        return [_compaction_tally(*row) for row in await self._rows(_tallies, scope)]

    async def _repairs(self, scope: _Scope) -> list[RepairTally]:
        """Repairs by reason and by the prompt of the compaction's last call."""
        return [
            RepairTally(reason=name, prompt_version=version, count=count)
            for name, version, count in await self._rows(_repairs_by_prompt, scope)
        ]

    async def _prompts(self, scope: _Scope) -> list[PromptEffect]:
        """Counts by the prompt of a compaction's last call."""
        return [
            PromptEffect(
                prompt_version=version, compactions=int(count), fidelity=None if mean is None else round(float(mean), 4)
            )
            for version, count, mean in await self._rows(_effects_of_prompts, scope)
        ]

    async def _calls(self, compactions: _Scope, details: _Scope, verifications: _Scope) -> list[CallTally]:
        purposes: list[tuple[CallPurpose, Build, _Scope, Any]] = [
            ("compaction", _sums_over_attempts, compactions, CompactionRow),
            *((name, _sums_over_details, details, name) for name in _DETAIL_CALL_PURPOSES),
            ("verification", _sums_over_attempts, verifications, VerificationRow),
        ]
        return [
            _call_tally(purpose, *row)
            for purpose, build, scope, of in purposes
            for row in await self._rows(build, scope, of)
        ]

    async def _expansions(self, scope: _Scope) -> list[ExpansionTally]:
        names = ("count", "passages", "tokens", "used", "judged")
        return [
            ExpansionTally(way=way, **dict(zip(names, map(int, numbers), strict=True)))
            for way, *numbers in await self._rows(_sums_over_expansions, scope)
        ]

    async def _caches(self, scope: _Scope) -> CacheMeasure:
        """The figures of caches. A sum is known only if every part of it is known.

        Money that a deletion gives back counts only together with what was spent. Both disappear with the conversation
        that spent it.
        """
        found = await self._rows(_sums_over_caches, scope)
        if not found:
            return CacheMeasure()
        totals = [sum(each[place] or 0 for each in found) for place in range(3, 9)]
        spent, saved, beyond = (
            None if unknown else round(total, 8) for total, unknown in zip(totals[:3], totals[3:], strict=True)
        )
        return CacheMeasure(
            counts=tuple((each[0], int(each[1])) for each in found),
            tokens_read=sum(int(each[2]) for each in found if each[0] == "used"),
            spent_usd=spent,
            saved_usd=saved,
            beyond_usd=beyond,
        )

    async def _fidelity(self, scope: _Scope) -> Fidelity:
        ((mean, count),) = await self._rows(_mean_fidelity, scope)
        last = await self._first(_last_fidelity, scope)
        return Fidelity(last=last, mean=None if mean is None else round(mean, 4), probes=int(count))

    async def _continuity(self, scope: _Scope) -> ContinuityMeasure:
        (answered,) = await self._rows(_sums_of_continuity, scope)
        ((mean, count),) = await self._rows(_mean_tone, scope)
        last = await self._first(_last_continuity, scope)
        return ContinuityMeasure(
            last=None if last is None else _CONTINUITY_ADAPTER.validate_python(last).recall,
            answered=Answered(
                **{name: int(number or 0) for name, number in zip(CONTINUITY_COUNTS, answered, strict=True)}
            ),
            tone=None if mean is None else round(float(mean), 4),
            scored=int(count),
        )

    async def _levels(self, conversation_ids: Sequence[UUID], which: Any) -> list[LevelMeasure]:
        level = col(SegmentLevelRow.level)
        statement = (
            select(level, func.count(), func.sum(col(SegmentLevelRow.tokens)), func.sum(col(SegmentRow.tokens)))
            .join(SegmentRow, _SEGMENT_OF_LEVEL)
            .where(col(SegmentLevelRow.conversation_id).in_(conversation_ids), which)
            .group_by(level)
            .order_by(level)
        )
        return [_level_measure(*row) for row in await self._session.rows(statement)]

    async def _levels_by_compaction(self, compactions: Sequence[CompactionRow]) -> dict[UUID, list[LevelMeasure]]:
        """The levels of the segments that each of these compactions made, if it was applied."""
        made = (
            select(
                col(StateVersionRow.tenant_id).label("tenant_id"),
                col(StateVersionRow.conversation_id).label("conversation_id"),
                col(StateVersionRow.compaction_id).label("compaction_id"),
                func.unnest(col(StateVersionRow.segment_ids)).label("segment_id"),
            )
            .where(
                col(StateVersionRow.tenant_id).in_({row.tenant_id for row in compactions}),
                col(StateVersionRow.compaction_id).in_([row.id for row in compactions if row.status == APPLIED]),
            )
            .distinct()
            .subquery()
        )
        level = col(SegmentLevelRow.level)
        statement = (
            select(
                made.c.compaction_id,
                level,
                func.count(),
                func.sum(col(SegmentLevelRow.tokens)),
                func.sum(col(SegmentRow.tokens)),
            )
            .join(SegmentRow, _SEGMENT_OF_LEVEL)
            .join(
                made,
                and_(
                    made.c.tenant_id == col(SegmentRow.tenant_id),
                    made.c.conversation_id == col(SegmentRow.conversation_id),
                    made.c.segment_id == col(SegmentRow.id),
                ),
            )
            .group_by(made.c.compaction_id, level)
            .order_by(level)
        )
        found: dict[UUID, list[LevelMeasure]] = {}
        for compaction_id, *row in await self._session.rows(statement):
            found.setdefault(compaction_id, []).append(_level_measure(*row))
        return found


@dataclass(frozen=True, slots=True)
class _Scope:
    """The conditions that choose the rows of a table: whose they are, and since when."""

    conditions: tuple[Any, ...]
    given: Mapping[str, Any]
    """The values of their ``bindparam``s."""


def _scope(table: Any, ended: str, *, conversation_id: UUID | None, since: datetime | None) -> _Scope:
    given = {"of_conversation": conversation_id, "since": since}
    known = {name: item for name, item in given.items() if item is not None}
    return _Scope(_conditions_of(table, ended, *(name in known for name in given)), known)


@cache
def _conditions_of(table: Any, ended: str, is_one_conversation: bool, has_since: bool) -> tuple[Any, ...]:  # noqa: FBT001 - a cache's key
    # Cached, since building the conditions takes longer than everything else that is done at once.
    older = aliased(table)
    conditions = [table.conversation_id == bindparam("of_conversation", type_=Uuid)] if is_one_conversation else []
    whose = [older.conversation_id == bindparam("of_conversation", type_=Uuid)] if is_one_conversation else []
    newest = select(older.id).where(*whose).order_by(older.id.desc()).offset(MAX_ROWS - 1).limit(1).scalar_subquery()
    conditions = [*conditions, table.id >= func.coalesce(newest, _LOWEST_ID)]
    at = getattr(table, ended)
    if has_since:
        conditions.append(or_(at.is_(None), at >= bindparam("since", type_=DateTime(timezone=True))))
    return tuple(conditions)


Build = Callable[..., Any]
"""Builds a statement for the rows that the conditions of a scope choose, its first argument."""


@cache
def _kept(build: Build, conditions: tuple[Any, ...], *more: Any) -> Any:
    # Building a statement takes longer than executing it. The conditions are the same objects for every scope alike.
    statement = build(conditions, *more)
    keep_compiled(statement)
    return statement


def _tallies(conditions: Sequence[Any]) -> Any:
    statement = select(
        *_TALLY_COLUMNS,
        func.count(),
        func.sum(col(_compaction.messages_covered)),
        func.sum(col(_compaction.tokens_before)).filter(_HAS_TOKEN_COUNTS),
        func.sum(col(_compaction.tokens_after)).filter(_HAS_TOKEN_COUNTS),
        *(func.sum(_number_in_json(col(_compaction.entries), name, BigInteger)) for name in _ENTRY_COUNTS),
    )
    return statement.where(*conditions).group_by(*_TALLY_COLUMNS)


def _repairs_by_prompt(conditions: Sequence[Any]) -> Any:
    repairs = col(StateVersionRow.repairs)
    each = func.jsonb_array_elements(repairs).column_valued("repair", joins_implicitly=True)
    reason = cast(each, JSONB).op("->>")("reason")
    return (
        select(reason, _prompt_of_last_call(), func.count())
        .select_from(StateVersionRow)
        .join(
            CompactionRow,
            and_(
                col(StateVersionRow.tenant_id) == col(_compaction.tenant_id),
                col(StateVersionRow.compaction_id) == col(_compaction.id),
            ),
        )
        .where(*conditions)
        .group_by(text("1"), text("2"))
    )


def _effects_of_prompts(conditions: Sequence[Any]) -> Any:
    statement = select(_prompt_of_last_call(), func.count(), func.avg(col(_compaction.fidelity)))
    return statement.where(_IS_APPLIED, *conditions).group_by(text("1")).order_by(text("1"))


def _prompt_of_last_call() -> Any:
    return col(_compaction.attempts).op("->")(-1).op("->>")("prompt_version")


def _sums_over_attempts(conditions: Sequence[Any], table: Any) -> Any:
    each = func.jsonb_array_elements(table.attempts).column_valued("attempt", joins_implicitly=True)
    return _sums_by_outcome(each).select_from(table).where(*conditions)


def _sums_over_details(conditions: Sequence[Any], purpose: DetailCallPurpose) -> Any:
    attempt = col(DetailCallRow.attempt)
    return _sums_by_outcome(attempt).where(attempt.is_not(None), col(DetailCallRow.purpose) == purpose, *conditions)


def _sums_over_expansions(conditions: Sequence[Any]) -> Any:
    way, used = col(ExpansionRow.way), col(ExpansionRow.used)
    sums = (func.sum(col(ExpansionRow.passages)), func.sum(col(ExpansionRow.tokens)))
    statement = select(way, func.count(), *sums, func.count().filter(used.is_(True)), func.count(used))
    return statement.where(*conditions).group_by(way).order_by(way)


def _sums_over_caches(conditions: Sequence[Any]) -> Any:
    row, making = CacheEntryRow, aliased(CacheEntryRow)
    made = select(col(making.cache_id)).where(col(making.action) == "made")
    counts = or_(col(row.spent_usd).is_(None), col(row.spent_usd) >= 0, col(row.cache_id).in_(made))
    spent_usd = case((counts, col(row.spent_usd)), else_=0.0)
    money = (spent_usd, col(row.saved_usd), col(row.beyond_usd))
    known = (func.count().filter(one.is_(None)) for one in money)
    sums = (func.sum(one) for one in money)
    statement = select(col(row.action), func.count(), func.sum(col(row.tokens)), *sums, *known)
    return statement.where(*conditions).group_by(col(row.action)).order_by(col(row.action))


def _in_turns(conditions: Sequence[Any]) -> Any:
    return _latencies(col(_compaction.duration_ms)).where(col(_compaction.ran_in) == "turn", *conditions)


def _expanding(conditions: Sequence[Any]) -> Any:
    return _latencies(col(ExpansionRow.duration_ms)).where(*conditions)


def _turns(conditions: Sequence[Any]) -> Any:
    duration = func.extract("epoch", col(TurnRow.finished_at) - col(TurnRow.started_at)) * 1_000
    return _latencies(duration).where(col(TurnRow.finished_at).is_not(None), *conditions)


def _latencies(milliseconds: Any) -> Any:
    at = [func.percentile_cont(share).within_group(milliseconds) for share in (0.5, 0.95)]
    return select(func.count(milliseconds), func.sum(milliseconds), *at)


def _latency(rows: Sequence[Any]) -> Latency:
    ((count, total, median, late),) = rows
    if not count:
        return Latency()
    return Latency(
        count=int(count),
        total_ms=round(total),
        p50_ms=round(float(median), 1),
        p95_ms=round(float(late), 1),
    )


def _last_applied(conditions: Sequence[Any]) -> Any:
    return _last(col(_compaction.id), conditions)


def _mean_fidelity(conditions: Sequence[Any]) -> Any:
    number = col(_compaction.fidelity)
    return select(func.avg(number), func.count()).where(_IS_APPLIED, number.is_not(None), *conditions)


def _last_fidelity(conditions: Sequence[Any]) -> Any:
    return _last(col(_compaction.fidelity), conditions)


def _sums_of_continuity(conditions: Sequence[Any]) -> Any:
    score = col(_compaction.continuity)
    each = func.jsonb_each(score.op("->")("kinds")).table_valued("key", "value", joins_implicitly=True)
    counts = (func.sum(_number_in_json(cast(each.c.value, JSONB), name, BigInteger)) for name in CONTINUITY_COUNTS)
    return select(*counts).select_from(CompactionRow).where(_IS_APPLIED, score.is_not(None), *conditions)


def _mean_tone(conditions: Sequence[Any]) -> Any:
    score = col(_compaction.continuity)
    tone = func.avg(_number_in_json(score, "tone", Numeric))
    return select(tone, func.count()).where(_IS_APPLIED, score.is_not(None), *conditions)


def _last_continuity(conditions: Sequence[Any]) -> Any:
    return _last(col(_compaction.continuity), conditions)


def _last(column: Any, conditions: Sequence[Any]) -> Any:
    """The newest value of a column of compactions that took effect."""
    newest_first = col(_compaction.id).desc()
    return select(column).where(_IS_APPLIED, column.is_not(None), *conditions).order_by(newest_first).limit(1)


def _turn_refers_to(id_: Any, table: Any) -> Any:
    # The tenant is compared too, since the key begins with it.
    return and_(col(TurnRow.tenant_id) == table.tenant_id, col(id_) == table.id)


def _number_in_json(json: Any, name: str, kind: Any) -> Any:
    return cast(json.op("->>")(name), kind)


def _sums_by_outcome(attempt: Any) -> Any:
    usage = attempt.op("->")("usage")
    tokens = [func.sum(_number_in_json(usage, name, BigInteger)) for name in _TOKENS]
    names = [attempt.op("->>")(name) for name in ("outcome", "reason", "prompt_version")]
    statement = select(*names, func.count(), *tokens, func.sum(_number_in_json(usage, "cost_usd", Numeric)))
    return statement.group_by(text("1"), text("2"), text("3"))


def _compaction_tally(trigger: str, status: str, ran_in: str, reason: str | None, *numbers: Any) -> CompactionTally:
    count, messages, before, after, *entries = (int(number or 0) for number in numbers)
    return CompactionTally(
        trigger=trigger,
        status=status,
        ran_in=ran_in,
        reason=reason,
        count=count,
        messages=messages,
        tokens_before=before,
        tokens_after=after,
        entries=EntryCounts(**dict(zip(_ENTRY_COUNTS, entries, strict=True))),
    )


def _call_tally(
    purpose: CallPurpose, outcome: str, reason: str | None, version: str | None, count: int, *used: Any
) -> CallTally:
    *tokens, cost = used
    usage = Usage(
        **{name: int(number or 0) for name, number in zip(_TOKENS, tokens, strict=True)},
        cost_usd=None if cost is None else float(cost),
    )
    return CallTally(
        purpose=purpose, outcome=outcome, reason=reason, count=int(count), usage=usage, prompt_version=version
    )


def _level_measure(level: Level, count: int, tokens: Any, originals: Any) -> LevelMeasure:
    return LevelMeasure(level=level, segments=int(count), tokens=int(tokens), original_tokens=int(originals))
