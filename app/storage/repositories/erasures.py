"""The SQL of erasures of an end user or a tenant that are not done yet."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, func, insert, select, update
from sqlmodel import col

from app.core.model.records import Erasure
from app.storage.repositories.base import Repository
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import ErasureRow


class ErasureRepository(Repository):
    """Rows of ``erasures``: an end user, or a tenant, whose conversations are being deleted."""

    async def add(self, erasure: Erasure) -> None:
        """Insert. Raises ``NotFoundError`` when there is no such tenant."""
        self._check_tenant(erasure.tenant_id)
        await self._session.execute(insert(ErasureRow).values(**columns(erasure)))

    async def unfinished(self, *, limit: int) -> list[Erasure]:
        """Some of the unfinished erasures of all tenants, drawn at random.

        Erasures of tenants may wait for providers for days. Otherwise, many of them would hold up the others.
        """
        statement = select(ErasureRow).order_by(func.random()).limit(limit)
        return [record_from_row(Erasure, row) for row in await self._session.all(statement)]

    async def find(self, erasure_id: UUID) -> Erasure | None:
        """An erasure; ``None`` if it is done."""
        row = await self._session.first(select(ErasureRow).where(col(ErasureRow.id) == erasure_id))
        return None if row is None else record_from_row(Erasure, row)

    async def lock(self, erasure_id: UUID) -> Erasure | None:
        """Lock an erasure; ``None`` if it is done or another process has it."""
        statement = select(ErasureRow).where(col(ErasureRow.id) == erasure_id).with_for_update(skip_locked=True)
        row = await self._session.first(statement)
        return None if row is None else record_from_row(Erasure, row)

    async def count_deleted(self, erasure_id: UUID, conversations: int) -> None:
        """Add to the number of conversations that the erasure has deleted."""
        done = col(ErasureRow.conversations) + conversations
        await self._session.execute(
            update(ErasureRow).where(col(ErasureRow.id) == erasure_id).values(conversations=done)
        )

    async def end(self, erasure_id: UUID) -> None:
        """Delete the erasure, and with it the name of the end user."""
        await self._session.execute(delete(ErasureRow).where(col(ErasureRow.id) == erasure_id))
