"""The SQL of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Integer, bindparam, func, insert, select, update
from sqlmodel import col

from app.core.model.conversation import Conversation
from app.core.model.errors import NotFoundError
from app.core.model.records import Event
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import transaction_start
from app.storage.repositories.mapping import columns, new_parameters, new_values, record_from_row
from app.storage.scoped_session import TenantSession
from app.storage.tables import ConversationRow, EventRow
from app.storage.tenancy import keep_compiled

_NUMBERS = (
    update(ConversationRow)
    .where(col(ConversationRow.id) == bindparam("conversation_id"), col(ConversationRow.deleted_at).is_(None))
    .values(last_event=col(ConversationRow.last_event) + bindparam("count"))
    .returning(col(ConversationRow.tenant_id), col(ConversationRow.last_event))
)
_AFTER = (
    select(EventRow)
    .where(col(EventRow.conversation_id) == bindparam("conversation_id"), col(EventRow.number) > bindparam("number"))
    .order_by(col(EventRow.number))
    .limit(bindparam("limit", type_=Integer))
)
_INSERT = insert(EventRow).values(new_parameters(Event, also=("tenant_id",)))
keep_compiled(_NUMBERS, _AFTER, _INSERT)


class EventRepository(Repository):
    """Rows of ``events``."""

    def __init__(self, session: TenantSession, added: list[Event]) -> None:
        super().__init__(session)
        self._added = added

    async def add(self, conversation_id: UUID, type_: str, data: Mapping[str, Any], at: datetime) -> Event:
        """Take the next number from the conversation's row and insert the event.

        The unit of work collects it for publishing.
        """
        (event,) = await self.add_many(conversation_id, [(type_, data)], at)
        return event

    async def add_many(
        self, conversation_id: UUID, items: Sequence[tuple[str, Mapping[str, Any]]], at: datetime
    ) -> list[Event]:
        """Take the next numbers from the conversation row and insert. Raises ``NotFoundError``.

        The row stays locked until the commit, so that numbers appear in the order of commits, without gaps.
        """
        if not items:
            return []
        tenant_id, last = await self._tenant_and_last_number(conversation_id, len(items))
        return await self._insert(tenant_id, conversation_id, last, items, at)

    async def add_next(
        self, conversation: Conversation, items: Sequence[tuple[str, Mapping[str, Any]]], at: datetime
    ) -> list[Event]:
        """Insert events of a *locked* conversation, together with a change of its row that sets its ``last_event``.

        Their numbers follow that of its newest event, which is in the row as it was read or was added since.
        """
        self._check_tenant(conversation.tenant_id)
        added = (event.number for event in self._added if event.conversation_id == conversation.id)
        last = max((conversation.last_event, *added)) + len(items)
        return await self._insert(conversation.tenant_id, conversation.id, last, items, at)

    async def _insert(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        last: int,
        items: Sequence[tuple[str, Mapping[str, Any]]],
        at: datetime,
    ) -> list[Event]:
        events = [
            Event(conversation_id=conversation_id, number=number, type=type_, data=dict(data), occurred_at=at)
            for number, (type_, data) in enumerate(items, last - len(items) + 1)
        ]
        await self._session.write(_INSERT, [new_values(columns(event, tenant_id=tenant_id)) for event in events])
        self._added.extend(events)
        return events

    async def _tenant_and_last_number(self, conversation_id: UUID, count: int) -> tuple[UUID, int]:
        rows = await self._session.rows(_NUMBERS, conversation_id=conversation_id, count=count)
        if not rows:
            raise NotFoundError("No such conversation.")
        ((tenant_id, last),) = rows
        return tenant_id, last

    async def after(self, conversation_id: UUID, number: int, *, limit: int) -> list[Event]:
        """Events after that number, in order."""
        rows = await self._session.all(_AFTER, conversation_id=conversation_id, number=number, limit=limit)
        return [record_from_row(Event, row) for row in rows]

    async def count_and_first(self, conversation_id: UUID, after: int, through: int) -> tuple[int, int | None]:
        """How many events after one number and up to another are kept, and the number of the first of them."""
        number = col(EventRow.number)
        these = (col(EventRow.conversation_id) == conversation_id, number > after, number <= through)
        ((count, first),) = await self._session.rows(select(func.count(), func.min(number)).where(*these))
        return count, first

    async def forget_older_than(self, age: timedelta, *, limit: int) -> int:
        """Delete older rows, at most ``limit``, and return how many."""
        return await self._delete_at_most(limit, EventRow, col(EventRow.occurred_at) < transaction_start() - age)
