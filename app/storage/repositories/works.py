"""The SQL of ``works`` (which process works on which conversation) and ``crashes``. Leases are in database time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Interval, Uuid, any_, bindparam, case, delete, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from app.core.model.records import CrashCount, Work
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import columns, new_parameters, new_values, record_from_row
from app.storage.tables import CrashRow, WorkRow
from app.storage.tenancy import keep_compiled

_row = WorkRow
_crash = CrashRow


def _of_conversation(conversation_id: Any) -> Any:
    return col(_crash.conversation_id) == conversation_id


_BEGUN = (
    insert(WorkRow)
    .values(lease_until=now() + bindparam("lease", type_=Interval()), **new_parameters(Work))
    .cte("begun")
)
_BEGIN = select(CrashRow).where(_of_conversation(bindparam("of"))).add_cte(_BEGUN)
_END = delete(WorkRow).where(col(_row.id) == any_(bindparam("ids", type_=ARRAY(Uuid))))
_RENEW = (
    update(WorkRow)
    .where(col(_row.id) == bindparam("of"))
    .values(lease_until=now() + bindparam("lease", type_=Interval()))
)
keep_compiled(_BEGIN, _END, _RENEW)


class WorkRepository(Repository):
    """Rows of ``works`` and ``crashes``: what processes work on, and how often one ended during that work."""

    async def begin(self, work: Work, *, seconds: float) -> CrashCount | None:
        """Insert a record with a lease, commit at once, and return the crashes of the conversation so far.

        All work on a text waits for this, so it is one statement and one round trip.
        """
        self._check_tenant(work.tenant_id)
        given = new_values(columns(work)) | {"of": work.conversation_id, "lease": timedelta(seconds=seconds)}
        if not await self._session.run_alone(_BEGIN, **given):
            return None
        return await self.crashes(work.conversation_id)

    async def renew(self, work_id: UUID, *, seconds: float) -> None:
        """Prolong the lease; committed at once, in one round trip, since every process does it every few seconds."""
        await self._session.run_alone(_RENEW, of=work_id, lease=timedelta(seconds=seconds))

    async def end(self, work_ids: Collection[UUID]) -> None:
        """Delete the records; committed at once."""
        await self._session.run_alone(_END, ids=list(work_ids))

    async def abandoned(self, *, limit: int) -> list[Work]:
        """The records whose lease is over; they are not locked."""
        statement = select(WorkRow).where(col(_row.lease_until) < now()).order_by(col(_row.lease_until)).limit(limit)
        return [record_from_row(Work, row) for row in await self._session.all(statement)]

    async def end_all_like(self, work: Work, *, within: timedelta) -> bool:
        """Delete all records of this process on that conversation, and those of processes that ended with it.

        These are the records whose leases end at most ``within`` later. Returns whether there were any.
        """
        self._check_tenant(work.tenant_id)
        own_end = select(col(_row.lease_until)).where(col(_row.id) == work.id).scalar_subquery()
        statement = delete(WorkRow).where(
            col(_row.tenant_id) == work.tenant_id,
            col(_row.conversation_id) == work.conversation_id,
            or_(col(_row.process) == work.process, col(_row.lease_until) <= own_end + within),
        )
        return bool(await self._session.all(statement.returning(col(_row.id))))

    async def crashes(self, conversation_id: UUID) -> CrashCount | None:
        """The crashes of a conversation; ``None`` if no process ended during work on it."""
        return _crashes(await self._session.first(select(CrashRow).where(_of_conversation(conversation_id))))

    async def count_crash(self, work: Work, *, most: int) -> CrashCount:
        """Count one more crash; at ``most`` crashes the conversation is set aside.

        Raises ``NotFoundError`` if it does not exist.
        """
        self._check_tenant(work.tenant_id)
        key = {"tenant_id": work.tenant_id, "conversation_id": work.conversation_id}
        first = now() if most <= 1 else None
        more = col(_crash.count) + 1
        statement = (
            upsert(CrashRow)
            .values(**key, count=1, kind=work.kind, set_aside_at=first)
            .on_conflict_do_update(
                index_elements=list(key),
                set_={
                    "count": more,
                    "kind": work.kind,
                    "set_aside_at": case(
                        (col(_crash.set_aside_at).is_not(None), col(_crash.set_aside_at)), (more >= most, now())
                    ),
                },
            )
            .returning(CrashRow)
        )
        counted = _crashes(await self._session.first(statement))
        assert counted is not None  # noqa: S101 - for the type checker: an upsert returns its row
        return counted

    async def forget_crashes(self, conversation_id: UUID, *, kind: str | None = None) -> CrashCount | None:
        """Reset the count; with ``kind`` only if the last crash was of it and the conversation is not set aside."""
        statement = delete(CrashRow).where(_of_conversation(conversation_id))
        if kind is not None:
            statement = statement.where(col(_crash.kind) == kind, col(_crash.set_aside_at).is_(None))
        return _crashes(await self._session.first(statement.returning(CrashRow)))


def _crashes(row: CrashRow | None) -> CrashCount | None:
    return None if row is None else record_from_row(CrashCount, row)
