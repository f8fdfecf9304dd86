"""What was spent on models in the last hour, by minute: recorded for chats, computed from rows for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Float,
    Integer,
    Interval,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.conversation import Usage
from app.core.model.records import DetailCallPurpose
from app.core.model.usage_limits import HOUR, MinuteSpending, SpendingPurpose
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now
from app.storage.repositories.detail_calls import FOR_L1S, IS_UNENDED
from app.storage.repositories.verifications import IS_RUNNING
from app.storage.tables import ChatSpendingRow, CompactionRow, DetailCallRow, VerificationRow
from app.storage.tenancy import keep_compiled

_row = ChatSpendingRow
_TRANSACTION_START: Final = func.transaction_timestamp()
"""An index cannot be searched for the clock's time, since it changes during the statement."""
OF_DELETED: Final[Mapping[SpendingPurpose, UUID]] = {
    "compaction": UUID(int=1),
    "verification": UUID(int=2),
    "embedding": UUID(int=3),
}
"""The key ids, which no key has, of what was spent on conversations that are deleted, by purpose."""
_COUNTED_TOGETHER: Final[tuple[SpendingPurpose, ...]] = ("compaction", "verification")
KEPT_FOR: Final = timedelta(hours=3)
"""How long rows are kept; only the last hour is read."""
_LATEST_VALID: Final = _TRANSACTION_START + HOUR
"""Rows later than this were written by a process whose clock was wrong. They would count for years, so they are
ignored.
"""
_CALLS_MADE_AT: Final[Mapping[Any, Any]] = {
    CompactionRow: CompactionRow.finished_at,
    VerificationRow: VerificationRow.asked_at,
}
"""By table, the column with the time at which the calls in a row's ``attempts`` count as made."""


class SpendingRepository(Repository):
    """Rows of ``chat_spending``, and the calls recorded by compactions and verifications."""

    async def add_chat(self, tenant_id: UUID, key_id: UUID, used: Usage) -> None:
        """Count one call of the chat model. Raises ``NotFoundError`` when there is no such tenant."""
        await self._add(tenant_id, key_id, None, 1, used.input_tokens + used.output_tokens, used.cost_usd or 0.0)

    async def add_of_deleted(self, tenant_id: UUID, purpose: SpendingPurpose, calls: int, used: Usage) -> None:
        """Count calls for a conversation that was deleted while they were made.

        Raises ``NotFoundError`` when there is no such tenant.
        """
        tokens = used.input_tokens + used.output_tokens
        await self._add(tenant_id, OF_DELETED[purpose], None, calls, tokens, used.cost_usd or 0.0)

    async def keep_of_deleted(self, tenant_id: UUID, conversation_ids: Sequence[UUID]) -> None:
        """Keep counting what was spent in the last hour on *locked* conversations, which this transaction deletes.

        Otherwise a tenant could exceed its limits by deleting conversations. The calls are removed from the rows of
        the conversations, which may be there for some time. Call it once in a transaction: the rows that it writes are
        locked in one order, so that no two deletions deadlock.
        """
        self._check_tenant(tenant_id)
        for purpose, key_id in OF_DELETED.items():
            spent = await self._spent_on_rows(purpose, conversation_ids)
            for one in sorted(spent, key=lambda one: one.minute):
                await self._add(tenant_id, key_id, one.minute, one.calls, one.tokens, one.usd)
        for table, at in _CALLS_MADE_AT.items():
            own = table.conversation_id.in_(conversation_ids) & _between(col(at), _TRANSACTION_START - HOUR)
            await self._session.execute(update(table).where(own).values(attempts=[]))
        row = DetailCallRow
        recent = _between(col(row.called_at), _TRANSACTION_START - HOUR)
        await self._session.execute(delete(row).where(col(row.conversation_id).in_(conversation_ids), recent))

    async def _add(
        self, tenant_id: UUID, key_id: UUID, minute: datetime | None, calls: int, tokens: int, usd: float
    ) -> None:
        self._check_tenant(tenant_id)
        new = insert(ChatSpendingRow).values(
            tenant_id=tenant_id,
            key_id=key_id,
            minute=minute or func.date_trunc("minute", _TRANSACTION_START),
            calls=calls,
            tokens=tokens,
            cost_usd=usd,
        )
        added = {name: getattr(_row, name) + getattr(new.excluded, name) for name in ("calls", "tokens", "cost_usd")}
        await self._session.execute(
            new.on_conflict_do_update(index_elements=["tenant_id", "minute", "key_id"], set_=added)
        )

    async def by_minute(self, purpose: SpendingPurpose, *, key_id: UUID | None = None) -> list[MinuteSpending]:
        """What was spent for this purpose in the last hour, by minute; for chats only by one key, if it is given."""
        if purpose == "chat":
            return await self._spent_on_chats(key_id)
        deleted = await self._spent_on_chats(OF_DELETED[purpose])
        return sorted([*await self._spent_on_rows(purpose), *deleted], key=lambda one: one.minute)

    async def _spent_on_rows(
        self, purpose: SpendingPurpose, conversation_ids: Sequence[UUID] | None = None
    ) -> list[MinuteSpending]:
        """What the rows of compactions, verifications and other calls say, of these conversations or of all."""
        found: list[MinuteSpending] = []
        for table, statement in _METERED_BY_MINUTE[purpose]():
            of = col(table.conversation_id)
            own = statement if conversation_ids is None else statement.where(of.in_(conversation_ids))
            found += await self._spent_by_minute(own)
        return found

    async def metered_calls(self, span: timedelta, conversation_id: UUID) -> tuple[int, int]:
        """The number of calls that cost money within that time: a conversation's, and the whole tenant's.

        Calls of compactions, for L1s and for verdicts are counted together, in database time. A call for an L1 or a
        verdict that has not ended counts; compactions that run count with the calls that they have made.
        """
        ((calls, of_tenant),) = await self._session.rows(_METERED_CALLS, span=span, conversation_id=conversation_id)
        return int(calls), int(of_tenant)

    async def forget_old(self, *, limit: int) -> int:
        """Delete old rows, at most ``limit``, and return how many."""
        return await self._delete_at_most(limit, _row, col(_row.minute) < now() - KEPT_FOR)

    async def _spent_on_chats(self, key_id: UUID | None) -> list[MinuteSpending]:
        minute = col(_row.minute)
        sums = (func.sum(col(_row.calls)), func.sum(col(_row.tokens)), func.sum(col(_row.cost_usd)))
        statement = select(minute, *sums).where(minute > _TRANSACTION_START - HOUR).group_by(minute).order_by(minute)
        if key_id is not None:
            statement = statement.where(col(_row.key_id) == key_id)
        else:
            statement = statement.where(col(_row.key_id).not_in(OF_DELETED.values()))
        return await self._spent_by_minute(statement)

    async def _spent_by_minute(self, statement: Any) -> list[MinuteSpending]:
        return [
            MinuteSpending(minute=minute, calls=int(calls), tokens=int(tokens or 0), usd=float(usd or 0))
            for minute, calls, tokens, usd in await self._session.rows(statement)
        ]


def _metered_calls() -> Any:
    """Counts the metered calls of the last ``span``: those of ``conversation_id``, and all."""
    since = _TRANSACTION_START - bindparam("span", type_=Interval())
    of_compactions = select(
        col(CompactionRow.conversation_id).label("conversation_id"),
        _count_of_metered(CompactionRow.attempts).label("calls"),
    ).where(or_(col(CompactionRow.finished_at).is_(None), _between(col(CompactionRow.finished_at), since)))
    for_l1s: Any = select(col(DetailCallRow.conversation_id), literal_column("1")).where(
        _between(col(DetailCallRow.called_at), since),
        FOR_L1S,
        or_(IS_UNENDED, literal_column("attempt -> 'metered' = 'true'::jsonb")),
    )
    for_verdicts = select(
        col(VerificationRow.conversation_id),
        _count_of_metered(VerificationRow.attempts) + case((IS_RUNNING, 1), else_=0),
    ).where(_between(col(VerificationRow.asked_at), since))
    of_deleted = select(null(), cast(col(_row.calls), Integer)).where(
        _between(col(_row.minute), since),
        or_(*(col(_row.key_id) == OF_DELETED[purpose] for purpose in _COUNTED_TOGETHER)),
    )
    found = union_all(of_compactions, for_l1s, for_verdicts, of_deleted).subquery()
    is_own = found.c.conversation_id == bindparam("conversation_id")
    own, all_calls = func.sum(found.c.calls).filter(is_own), func.sum(found.c.calls)
    return select(func.coalesce(own, 0), func.coalesce(all_calls, 0))


@cache
def _metered_by_minute(table: Any) -> Any:
    at = col(_CALLS_MADE_AT[table])
    attempt = func.jsonb_array_elements(table.attempts).column_valued("attempt", joins_implicitly=True)
    minute = func.date_trunc("minute", func.coalesce(at, _TRANSACTION_START)).label("minute")
    statement = select(minute, func.count(), *_tokens_and_dollars(attempt)).select_from(table)
    recent = or_(at.is_(None), _between(at, _TRANSACTION_START - HOUR))
    return statement.where(recent, attempt.op("->>")("metered") == "true").group_by(minute).order_by(minute)


@cache
def _detail_calls_by_minute(purpose: DetailCallPurpose) -> Any:
    row = DetailCallRow
    minute = func.date_trunc("minute", col(row.called_at)).label("minute")
    attempt: Any = col(row.attempt)
    statement = select(minute, func.count(), *_tokens_and_dollars(attempt)).where(
        _between(col(row.called_at), _TRANSACTION_START - HOUR),
        col(row.purpose) == purpose,
        attempt.op("->>")("metered") == "true",
    )
    return statement.group_by(minute).order_by(minute)


def _between(moment: Any, since: Any) -> Any:
    return and_(moment > since, moment <= _LATEST_VALID)


def _count_of_metered(attempts: Any) -> Any:
    return func.jsonb_array_length(
        func.jsonb_path_query_array(col(attempts), literal_column("'$[*] ? (@.metered == true)'::jsonpath"))
    )


def _tokens_and_dollars(attempt: Any) -> tuple[Any, Any]:
    usage = attempt.op("->")("usage")
    tokens = sum(
        (func.coalesce(cast(usage.op("->>")(name), BigInteger), 0) for name in ("input_tokens", "output_tokens")),
        start=cast(0, BigInteger),
    )
    return func.sum(tokens), func.sum(cast(usage.op("->>")("cost_usd"), Float))


_METERED_BY_MINUTE: Final[Mapping[SpendingPurpose, Callable[[], Sequence[tuple[Any, Any]]]]] = {
    "compaction": lambda: (
        (CompactionRow, _metered_by_minute(CompactionRow)),
        (DetailCallRow, _detail_calls_by_minute("detail")),
    ),
    "verification": lambda: ((VerificationRow, _metered_by_minute(VerificationRow)),),
    "embedding": lambda: ((DetailCallRow, _detail_calls_by_minute("embedding")),),
}
"""The tables that record calls for a purpose, with the statements that sum them up by minute."""
_METERED_CALLS: Final = _metered_calls()
keep_compiled(_METERED_CALLS)
