"""The SQL of ``detail_calls``: model calls for L1 texts and for vectors, without their contents.

Their times come from the clocks of the processes that made them. A time that is far ahead was noted by a wrong clock,
and is ignored: otherwise its call would count for years.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import and_, func, insert, select, text, update
from sqlmodel import col

from app.core.model.records import Attempt, DetailCall
from app.core.model.usage_limits import HOUR
from app.storage.repositories.base import Repository
from app.storage.repositories.mapping import columns
from app.storage.tables import NOT_ENDED, DetailCallRow

_ATTEMPT: TypeAdapter[Attempt | None] = TypeAdapter(Attempt | None)
# Literal SQL, not a parameter: only then does the planner use the partial index.
IS_UNENDED = text(NOT_ENDED)
"""The condition that a call has not ended."""
FOR_L1S = col(DetailCallRow.purpose) == "detail"
"""The condition that a call is for an L1 text, not for a vector."""


class DetailCallRepository(Repository):
    """Rows of ``detail_calls``: model calls outside of compactions, for spending limits and statistics."""

    async def begin(self, call: DetailCall) -> None:
        """Insert a call that begins. Raises ``NotFoundError`` without the conversation."""
        row = columns(call, attempt=_ATTEMPT.dump_python(call.attempt, mode="json"))
        await self._session.execute(insert(DetailCallRow), [row])

    async def end(self, call_id: UUID, attempt: Attempt) -> None:
        """Record how a call ended."""
        stored = _ATTEMPT.dump_python(attempt, mode="json")
        await self._session.execute(
            update(DetailCallRow).where(col(DetailCallRow.id) == call_id).values(attempt=stored)
        )

    async def running(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """How many calls for L1 texts that began within ``span`` still run, in a conversation or in the whole scope."""
        row, present = DetailCallRow, func.transaction_timestamp()
        recent = and_(col(row.called_at) > present - span, col(row.called_at) <= present + HOUR)
        statement = select(func.count()).select_from(row).where(IS_UNENDED, recent, FOR_L1S)
        if conversation_id is not None:
            statement = statement.where(col(row.conversation_id) == conversation_id)
        return int(await self._session.first(statement))
