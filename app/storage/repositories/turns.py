"""The table ``turns``: a turn begins, is kept alive by heartbeats, and ends or is found dead.

Leases are in database time.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Interval, and_, bindparam, exists, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased, defer
from sqlmodel import col

from app.core.model.errors import NotFoundError, TurnLostError
from app.core.model.records import Turn
from app.storage.repositories.base import LeasedRepository
from app.storage.repositories.conditions import not_deleted
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import as_dict, columns, new_parameters, new_values, record_from_row
from app.storage.tables import RUNNING, TurnRow
from app.storage.tenancy import keep_compiled

LEASE_EXPIRED = TurnLostError.code
"""The ``error_code`` of a turn whose process has died."""

_id = col(TurnRow.id)
_LIST_FIELDS = ("warnings", "recalled")
# Literal SQL, not a parameter: only then can the planner be sure that the partial indexes apply.
_IS_RUNNING = text(RUNNING)

_IN_CONVERSATION = col(TurnRow.conversation_id) == bindparam("of")
_IS_TURN = _id == bindparam("turn_id")
_NEW_LEASE: dict[str, Any] = {"lease_until": now() + bindparam("lease", type_=Interval())}
_IS_EXPIRED = and_(_IS_RUNNING, col(TurnRow.lease_until) < now())
_FAILED_VALUES: dict[str, Any] = {
    "status": "failed",
    "error_code": LEASE_EXPIRED,
    "stream_key": None,
    "finished_at": now(),
}
_WITHOUT_REQUEST: Any = select(TurnRow).options(defer(col(TurnRow.request), raiseload=True))  # type: ignore[arg-type]
_START = (
    insert(TurnRow)
    .values(new_parameters(Turn) | _NEW_LEASE)
    .on_conflict_do_nothing(index_elements=["tenant_id", "conversation_id"], index_where=text(RUNNING))
    .returning(TurnRow)
)
_NEWEST = select(TurnRow).where(_IN_CONVERSATION).order_by(_id.desc()).limit(1)
_RUNNING_TURN = select(TurnRow).where(_IN_CONVERSATION, _IS_RUNNING, col(TurnRow.lease_until) >= now())
_OTHER_TURN = aliased(TurnRow)
_IS_ANSWERED = exists().where(
    col(_OTHER_TURN.conversation_id) == bindparam("of"),
    col(_OTHER_TURN.message_id) == col(TurnRow.message_id),
    col(_OTHER_TURN.reply_id).is_not(None),
)
_MAX_UNANSWERED_TURNS = 100
_UNANSWERED = (
    select(col(TurnRow.input_from_seq), col(TurnRow.begun_at_seq))
    .where(_IN_CONVERSATION, col(TurnRow.status) == "failed", col(TurnRow.input_from_seq).is_not(None), ~_IS_ANSWERED)
    .order_by(_id.desc())
    .limit(_MAX_UNANSWERED_TURNS)
)
_HEARTBEAT = update(TurnRow).where(_IS_TURN, _IS_RUNNING).values(_NEW_LEASE).returning(TurnRow)
_FAIL_EXPIRED = update(TurnRow).where(_IN_CONVERSATION, _IS_EXPIRED).values(_FAILED_VALUES).returning(TurnRow)
keep_compiled(_START, _NEWEST, _UNANSWERED, _RUNNING_TURN, _HEARTBEAT, _FAIL_EXPIRED)


@lru_cache(maxsize=64)
def _update_of_running(names: tuple[str, ...]) -> Any:
    statement = update(TurnRow).where(_IS_TURN, _IS_RUNNING).values(new_parameters(also=names)).returning(TurnRow)
    keep_compiled(statement)
    return statement


class TurnRepository(LeasedRepository):
    """Rows of ``turns``."""

    async def start(self, turn: Turn) -> Turn | None:
        """Insert a turn with a new lease, in database time; ``None`` if one runs, or a dead one was not ended yet."""
        self._check_tenant(turn.tenant_id)
        lists = {name: list(getattr(turn, name)) for name in _LIST_FIELDS}
        values = new_values(columns(turn, **lists, request=as_dict(turn.request)))
        return await self._one_or_none(_START, lease=self._lease, **values)

    async def get(self, turn_id: UUID) -> Turn:
        """One row. Raises ``NotFoundError``."""
        return await self._one(select(TurnRow).where(_id == turn_id, not_deleted(TurnRow)))

    async def newest(self, conversation_id: UUID) -> Turn | None:
        """The turn that began last, running or ended."""
        return await self._one_or_none(_NEWEST, of=conversation_id)

    async def replied_by(self, conversation_id: UUID, message_ids: Collection[UUID]) -> Turn | None:
        """The newest turn whose reply is one of these messages."""
        found = select(TurnRow).where(_of_conversation(conversation_id), col(TurnRow.reply_id).in_(message_ids))
        return await self._one_or_none(found.order_by(_id.desc()).limit(1))

    async def died_with(self, conversation_id: UUID, message_ids: Collection[UUID]) -> bool:
        """Whether a turn that answered one of these messages ended without a reply."""
        died = select(_id).where(
            _of_conversation(conversation_id), col(TurnRow.message_id).in_(message_ids), col(TurnRow.reply_id).is_(None)
        )
        return bool(await self._session.all(died.limit(1)))

    async def unanswered(self, conversation_id: UUID) -> frozenset[int]:
        """The ``seq`` of each message that one of the newest failed turns added and that no other turn answered."""
        rows = await self._session.rows(_UNANSWERED, of=conversation_id)
        return frozenset(seq for first, last in rows for seq in range(first, last + 1))

    async def running(self, conversation_id: UUID) -> Turn | None:
        """The running turn with a live lease."""
        return await self._one_or_none(_RUNNING_TURN, of=conversation_id)

    async def between(self, conversation_id: UUID, since: UUID | None, until: UUID | None) -> list[Turn]:
        """The turns that began after one id and before another, in order; ``None`` = without a limit on that side.

        They are read without the stored requests of other APIs' clients, each of which may be megabytes.
        """
        bounds = [*([_id > since] if since else ()), *([_id < until] if until else ())]
        statement = _WITHOUT_REQUEST.where(_of_conversation(conversation_id), *bounds).order_by(_id)
        return [as_turn(row, request=None) for row in await self._session.all(statement)]

    async def newest_ids(self, conversation_id: UUID, *, limit: int) -> list[UUID]:
        """The ids of the turns that began last, newest first."""
        return await self._session.all(
            select(_id).where(_of_conversation(conversation_id)).order_by(_id.desc()).limit(limit)
        )

    async def note_follower(self, turn_id: UUID) -> None:
        """Note on a running turn's row that somebody follows it in another process than its own."""
        await self._session.execute(update(TurnRow).where(_id == turn_id, _IS_RUNNING).values(followed_at=now()))

    async def forget_request(self, turn_id: UUID) -> None:
        """Remove ``request`` from the row: the request of a client of another API."""
        await self._session.execute(update(TurnRow).where(_id == turn_id).values(request=None))

    async def forget_requests_of(self, conversation_id: UUID, reply_ids: Collection[UUID]) -> None:
        """Remove ``request`` from the rows of these replies' turns: the response of an erased reply cannot be found."""
        has_request = (col(TurnRow.reply_id).in_(reply_ids), col(TurnRow.request).is_not(None))
        await self._session.execute(
            update(TurnRow).where(_of_conversation(conversation_id), *has_request).values(request=None)
        )

    async def heartbeat(self, turn_id: UUID) -> Turn | None:
        """Prolong the lease and read the row; ``None`` when it is no longer running."""
        return await self._one_or_none(_HEARTBEAT, turn_id=turn_id, lease=self._lease)

    async def end(self, turn_id: UUID, **changes: Any) -> Turn | None:
        """Set an ending status and other fields of a running turn; ``None`` if it has already ended."""
        values = (
            changes | {"stream_key": None} | {name: list(changes[name]) for name in _LIST_FIELDS if name in changes}
        )
        return await self._one_or_none(_update_of_running(tuple(values)), turn_id=turn_id, **new_values(values))

    async def request_interrupt(self, conversation_id: UUID, turn_id: UUID | None = None) -> Turn | None:
        """Ask the running turn to stop; its process sees that when it next reads the row.

        ``None`` if no turn runs, or another one than ``turn_id``.
        """
        statement = update(TurnRow).where(_of_conversation(conversation_id), _IS_RUNNING)
        if turn_id is not None:
            statement = statement.where(_id == turn_id)
        return await self._one_or_none(statement.values(interrupt_requested=True).returning(TurnRow))

    async def expired(self, *, limit: int) -> list[Turn]:
        """Running turns of all tenants whose lease has expired, the longest expired first. They are not locked."""
        statement = select(TurnRow).where(_IS_EXPIRED).order_by(col(TurnRow.lease_until)).limit(limit)
        return [as_turn(row) for row in await self._session.all(statement)]

    async def fail_expired(self, turn_id: UUID) -> Turn | None:
        """End this turn as failed if it runs and its lease expired; else ``None``."""
        statement = update(TurnRow).where(_id == turn_id, _IS_EXPIRED).values(_FAILED_VALUES)
        return await self._one_or_none(statement.returning(TurnRow))

    async def fail_expired_in_conversation(self, conversation_id: UUID) -> Turn | None:
        """End the conversation's turn as failed if one runs and its lease expired; else ``None``."""
        return await self._one_or_none(_FAIL_EXPIRED, of=conversation_id)

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=self._lease_seconds)

    async def _one_or_none(self, statement: Any, /, **given: Any) -> Turn | None:
        row = await self._session.first(statement, **given)
        return None if row is None else as_turn(row)

    async def _one(self, statement: Any) -> Turn:
        found = await self._one_or_none(statement)
        if found is None:
            raise NotFoundError("No such turn.")
        return found


def _of_conversation(conversation_id: UUID) -> Any:
    return col(TurnRow.conversation_id) == conversation_id


def as_turn(row: TurnRow, **left_out: Any) -> Turn:
    """The record of a row; ``left_out`` are values for the columns that were not read."""
    return record_from_row(Turn, row, **{name: tuple(getattr(row, name)) for name in _LIST_FIELDS}, **left_out)
