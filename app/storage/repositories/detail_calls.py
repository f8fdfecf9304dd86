"""Rows of ``detail_calls``: model calls for L1s and for vectors, in numbers. Times are the database's."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import func, insert, select, text, update
from sqlmodel import col

from app.core.model.records import Attempt, DetailCall
from app.storage.repositories.base import Repository
from app.storage.repositories.mapping import columns
from app.storage.tables import UNENDED, DetailCallRow

_ATTEMPT: TypeAdapter[Attempt | None] = TypeAdapter(Attempt | None)
# A word, not a parameter: only so can the planner be sure that the partial index holds it.
IS_UNENDED = text(UNENDED)
"""Of a call: it has not ended."""
FOR_L1S = col(DetailCallRow.purpose) == "detail"
"""Of a call: it is for an L1, not for a vector."""


class DetailCallRepository(Repository):
    """Rows of ``detail_calls``: model calls outside of compactions, for the spend guard and the measures."""

    async def begin(self, call: DetailCall) -> None:
        """Insert. Raises ``NotFoundError`` without the conversation."""
        row = columns(call, attempt=_ATTEMPT.dump_python(call.attempt, mode="json"))
        await self._session.execute(insert(DetailCallRow), [row])

    async def end(self, call_id: UUID, attempt: Attempt) -> None:
        """How it went."""
        told = _ATTEMPT.dump_python(attempt, mode="json")
        await self._session.execute(update(DetailCallRow).where(col(DetailCallRow.id) == call_id).values(attempt=told))

    async def running(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """Calls for L1s begun within that time that have not ended, of a conversation or of all that are seen."""
        row = DetailCallRow
        recent = col(row.called_at) > func.transaction_timestamp() - span
        statement = select(func.count()).select_from(row).where(IS_UNENDED, recent, FOR_L1S)
        if conversation_id is not None:
            statement = statement.where(col(row.conversation_id) == conversation_id)
        return int(await self._session.first(statement))
