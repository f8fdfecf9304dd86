"""The table ``compactions``: its rows are the queue of compactions, and record what they did.

Only one row of a conversation may be open: the conversation's *slot*. (Transactions lock the conversation itself, by
``ConversationRepository.lock``.)

Leases are in database time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import and_, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlmodel import col

from app.core.model.continuity import Continuity
from app.core.model.conversation import Usage
from app.core.model.errors import NotFoundError
from app.core.model.records import MAX_CLAIMS, Attempt, Compaction, EntryCounts, FoldRequest, Page, RanIn
from app.storage.repositories.base import LeasedRepository
from app.storage.repositories.conditions import not_deleted
from app.storage.repositories.cursor import BY_ID, cut_page, select_page
from app.storage.repositories.database_time import lease_end, now
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import COMPACTION_IN_FLIGHT, QUEUED, RUNNING, CompactionRow

_JSON_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "request": TypeAdapter(FoldRequest),
    "attempts": TypeAdapter(tuple[Attempt, ...]),
    "continuity": TypeAdapter(Continuity | None),
    "entries": TypeAdapter(EntryCounts),
    "usage": TypeAdapter(Usage),
}
_NO_LEASE = {"lease_token": None, "lease_until": None, "owner": None}
_id = col(CompactionRow.id)
# Literal SQL, not parameters: only then can the planner be sure that the partial indexes apply.
_RUNNING = text(RUNNING)
_QUEUED = text(QUEUED)


class CompactionRepository(LeasedRepository):
    """Rows of ``compactions``. Leases are in database time."""

    async def claim(self, compaction: Compaction) -> Compaction | None:
        """Insert the row; ``None`` if the conversation already has a queued or running one (a partial unique index).

        A row inserted as ``running`` gets a lease, ``claims = 1``, and the time of its start.
        """
        self._check_tenant(compaction.tenant_id)
        values = _as_stored(columns(compaction))
        if compaction.status == "running":
            values |= {
                "claims": 1,
                "lease_until": lease_end(self._lease_seconds),
                "started_at": now(),
            }
        else:
            values |= {"queued_at": now()}
        statement = (
            insert(CompactionRow)
            .values(**values)
            .on_conflict_do_nothing(
                index_elements=["tenant_id", "conversation_id"], index_where=text(COMPACTION_IN_FLIGHT)
            )
            .returning(CompactionRow)
        )
        return await self._one_or_none(statement)

    async def get(self, compaction_id: UUID) -> Compaction:
        """One row. Raises ``NotFoundError``."""
        return await self._one(select(CompactionRow).where(_id == compaction_id, not_deleted(CompactionRow)))

    async def in_flight(self, conversation_id: UUID) -> Compaction | None:
        """The queued or running row."""
        return await self._one_or_none(
            select(CompactionRow).where(
                col(CompactionRow.conversation_id) == conversation_id, text(COMPACTION_IN_FLIGHT)
            )
        )

    async def page(
        self,
        page: Page,
        *,
        conversation_id: UUID | None = None,
        status: str | None = None,
        scored: bool = False,
    ) -> tuple[list[Compaction], str | None]:
        """A page of compactions, by default the newest first; ``scored``: only those with a continuity score."""
        statement = select(CompactionRow).where(not_deleted(CompactionRow))
        if conversation_id is not None:
            statement = statement.where(col(CompactionRow.conversation_id) == conversation_id)
        if status is not None:
            statement = statement.where(col(CompactionRow.status) == status)
        if scored:
            statement = statement.where(col(CompactionRow.continuity).is_not(None))
        found = await self._all(select_page(statement, page, (_id,), BY_ID))
        return cut_page(found, page.limit, lambda compaction: (compaction.id,))

    async def between(self, conversation_id: UUID, since: UUID | None, until: UUID | None) -> list[Compaction]:
        """The compactions between two ids, in order; ``None`` = without a limit on that side."""
        bounds = [*([_id > since] if since else ()), *([_id < until] if until else ())]
        of = col(CompactionRow.conversation_id) == conversation_id
        return await self._all(select(CompactionRow).where(of, *bounds).order_by(_id))

    async def durations(self, conversation_id: UUID, *, limit: int) -> list[float]:
        """The seconds that its newest applied compactions took, with the wait for a worker, the newest first."""
        row = CompactionRow
        waited = func.coalesce(func.extract("epoch", col(row.started_at) - col(row.queued_at)), 0)
        took = col(row.duration_ms) / 1_000 + func.greatest(waited, 0)
        statement = select(took).where(col(row.conversation_id) == conversation_id, col(row.status) == "applied")
        found = await self._session.all(statement.where(took.is_not(None)).order_by(_id.desc()).limit(limit))
        return [float(one) for one in found]

    async def focused(self, conversation_id: UUID) -> list[Compaction]:
        """The compactions with a ``focus``."""
        focus = col(CompactionRow.request).op("->>")("focus")
        of = col(CompactionRow.conversation_id) == conversation_id
        return await self._all(select(CompactionRow).where(of, focus.is_not(None)).order_by(_id))

    async def take(self, compaction_id: UUID, *, lease_token: UUID, ran_in: RanIn, owner: str) -> Compaction | None:
        """Take a row that is ``queued``, or ``running`` with an expired lease: it runs with this lease, ``claims + 1``.

        A row that was claimed ``MAX_CLAIMS`` times is not taken: the sweeper ends it. Otherwise a row whose processes
        crash would be taken again and again, since the broker delivers its message again after each crash.
        """
        return await self._one_or_none(
            update(CompactionRow)
            .where(_id == compaction_id, _can_be_taken())
            .values(
                status="running",
                ran_in=ran_in,
                lease_token=lease_token,
                lease_until=lease_end(self._lease_seconds),
                owner=owner,
                claims=col(CompactionRow.claims) + 1,
                started_at=func.coalesce(col(CompactionRow.started_at), now()),
            )
            .returning(CompactionRow)
        )

    async def takeable(self, compaction_id: UUID) -> bool:
        """Whether ``take`` would succeed now, read without a lock, for processes that poll."""
        statement = select(CompactionRow).where(_id == compaction_id, _can_be_taken())
        return await self._one_or_none(statement) is not None

    async def heartbeat(self, compaction_id: UUID, lease_token: UUID) -> bool:
        """Prolong the lease, even an expired one; false if the row was taken over or has ended."""
        statement = (
            update(CompactionRow)
            .where(_held_by(compaction_id, lease_token))
            .values(lease_until=lease_end(self._lease_seconds))
        )
        return await self._session.first(statement.returning(_id)) is not None

    async def update(self, compaction_id: UUID, lease_token: UUID, **changes: Any) -> Compaction | None:
        """Set fields of a row while its lease is held; a status that ends the row ends the lease.

        ``None`` if the lease is lost.
        """
        statement = update(CompactionRow).where(_held_by(compaction_id, lease_token)).values(**_values_to_set(changes))
        return await self._one_or_none(statement.returning(CompactionRow))

    async def update_locked(self, compaction_id: UUID, **changes: Any) -> Compaction:
        """Set fields of a row that this transaction has locked, whichever process has its lease.

        Raises ``NotFoundError``.
        """
        statement = update(CompactionRow).where(_id == compaction_id).values(**_values_to_set(changes))
        return await self._one(statement.returning(CompactionRow))

    async def end(self, compaction_id: UUID, **changes: Any) -> Compaction:
        """``update_locked`` for the end of a row: it also sets how long the work took, by the database's clock.

        The process that ends a row may be another than the one that claimed it, with another clock.
        """
        began = func.coalesce(col(CompactionRow.started_at), col(CompactionRow.queued_at), now())
        milliseconds = func.round(func.extract("epoch", now() - began) * 1_000)
        return await self.update_locked(compaction_id, duration_ms=func.greatest(milliseconds, 0), **changes)

    async def requeue(self, compaction_id: UUID, lease_token: UUID, *, count: bool) -> bool:
        """Queue the row again and end its lease; with ``count=False`` its last claim is not counted."""
        statement = update(CompactionRow).where(_held_by(compaction_id, lease_token)).values(**_as_queued(count=count))
        return await self._session.first(statement.returning(_id)) is not None

    async def release_owner(self, owner: str) -> int:
        """Queue all rows of an ending process (SIGTERM) again, and do not count its claims; return how many."""
        statement = update(CompactionRow).where(_RUNNING, col(CompactionRow.owner) == owner)
        return len(await self._session.all(statement.values(**_as_queued(count=False)).returning(_id)))

    async def mark_sent(self, compaction_ids: Sequence[UUID]) -> None:
        """Note that these compactions were sent to the broker just now."""
        await self._session.execute(update(CompactionRow).where(_id.in_(compaction_ids)).values(sent_at=now()))

    async def expired(self, *, limit: int) -> list[Compaction]:
        """Running rows of all tenants with an expired lease, the longest expired first. They are not locked."""
        statement = select(CompactionRow).where(_has_expired_lease()).order_by(col(CompactionRow.lease_until))
        return await self._all(statement.limit(limit))

    async def unsent(self, *, older_than: timedelta, limit: int) -> list[Compaction]:
        """Queued rows of all tenants that were last queued or sent longer ago than ``older_than``; they are locked.

        Rows that another process has locked are left out. A row that was queued again is due at once.
        """
        touched = func.greatest(col(CompactionRow.queued_at), col(CompactionRow.sent_at))
        statement = select(CompactionRow).where(_QUEUED, or_(touched.is_(None), touched < now() - older_than))
        return await self._all(statement.order_by(_id).limit(limit).with_for_update(skip_locked=True))

    async def next_in_turn(self, hinted: UUID) -> UUID | None:
        """The queued row whose turn it is, of all tenants; ``None`` if none is queued.

        It belongs to a tenant that has the fewest running; of several such tenants, chance decides. Of its rows it is
        the hinted one, or else the oldest.
        """
        tenant = col(CompactionRow.tenant_id)
        queued = select(tenant, _id).ext(distinct_on(tenant)).where(_QUEUED, not_deleted(CompactionRow))
        oldest = queued.order_by(tenant, (_id == hinted).desc(), _id).subquery()
        running = select(tenant, func.count().label("count")).where(_RUNNING).group_by(tenant).subquery()
        statement = select(oldest.c.id).outerjoin(running, running.c.tenant_id == oldest.c.tenant_id)
        in_turn = statement.order_by(func.coalesce(running.c.count, 0), func.random()).limit(1)
        found: UUID | None = await self._session.first(in_turn)
        return found

    async def _one_or_none(self, statement: Any) -> Compaction | None:
        row = await self._session.first(statement)
        return None if row is None else as_compaction(row)

    async def _one(self, statement: Any) -> Compaction:
        found = await self._one_or_none(statement)
        if found is None:
            raise NotFoundError("No such compaction.")
        return found

    async def _all(self, statement: Any) -> list[Compaction]:
        return [as_compaction(row) for row in await self._session.all(statement)]


def _has_expired_lease() -> Any:
    return and_(_RUNNING, col(CompactionRow.lease_until) < now())


def _can_be_taken() -> Any:
    return or_(_QUEUED, and_(_has_expired_lease(), col(CompactionRow.claims) < MAX_CLAIMS))


def _held_by(compaction_id: UUID, lease_token: UUID) -> Any:
    return and_(_id == compaction_id, _RUNNING, col(CompactionRow.lease_token) == lease_token)


def _as_queued(*, count: bool) -> dict[str, Any]:
    values: dict[str, Any] = {"status": "queued", "queued_at": None, "sent_at": None, **_NO_LEASE}
    return values if count else values | {"claims": func.greatest(col(CompactionRow.claims) - 1, 0)}


def _as_stored(changes: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _JSON_ADAPTERS[name].dump_python(item, mode="json") if name in _JSON_ADAPTERS else item
        for name, item in changes.items()
    }


def _values_to_set(changes: dict[str, Any]) -> dict[str, Any]:
    ends = changes.get("status", "running") != "running"
    # A row that no longer runs holds no lease.
    return _as_stored(changes) | (_NO_LEASE if ends else {})


def as_compaction(row: CompactionRow) -> Compaction:
    """The record of a row."""
    read = {name: adapter.validate_python(getattr(row, name)) for name, adapter in _JSON_ADAPTERS.items()}
    return record_from_row(Compaction, row, **read)
