"""Rows of ``erasures`` and ``provider_copies``: whose conversations are being erased, what providers keep of some."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import col

from app.core.model.records import Erasure, ProviderCopy
from app.storage.repositories.base import Repository
from app.storage.repositories.leases import now
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import WANTED, ErasureRow, ProviderCopyRow


class ErasureRepository(Repository):
    """Rows of ``erasures``."""

    async def add(self, erasure: Erasure) -> None:
        """Insert. Raises ``NotFoundError`` when there is no such tenant."""
        self._check_tenant(erasure.tenant_id)
        await self._session.execute(insert(ErasureRow).values(**columns(erasure)))

    async def open(self, *, limit: int) -> list[Erasure]:
        """The erasures that are not done, over all tenants, the first one first."""
        statement = select(ErasureRow).order_by(col(ErasureRow.requested_at)).limit(limit)
        return [record_from_row(Erasure, row) for row in await self._session.all(statement)]

    async def find(self, erasure_id: UUID) -> Erasure | None:
        """One; ``None`` when it is done."""
        row = await self._session.first(select(ErasureRow).where(col(ErasureRow.id) == erasure_id))
        return None if row is None else record_from_row(Erasure, row)

    async def lock(self, erasure_id: UUID) -> Erasure | None:
        """One, unless it is done or somebody else is at it."""
        statement = select(ErasureRow).where(col(ErasureRow.id) == erasure_id).with_for_update(skip_locked=True)
        row = await self._session.first(statement)
        return None if row is None else record_from_row(Erasure, row)

    async def count(self, erasure_id: UUID, conversations: int) -> None:
        """So many more conversations were deleted."""
        done = col(ErasureRow.conversations) + conversations
        await self._session.execute(
            update(ErasureRow).where(col(ErasureRow.id) == erasure_id).values(conversations=done)
        )

    async def end(self, erasure_id: UUID) -> None:
        """Forget it, and whose it was."""
        await self._session.execute(delete(ErasureRow).where(col(ErasureRow.id) == erasure_id))


class ProviderCopyRepository(Repository):
    """Rows of ``provider_copies``."""

    async def note(self, copy: ProviderCopy) -> None:
        """A provider keeps this response."""
        self._check_tenant(copy.tenant_id)
        await self._session.execute(upsert(ProviderCopyRow).values(**columns(copy)).on_conflict_do_nothing())

    async def want_deleted(self, conversation_id: UUID) -> int:
        """Have everything deleted that providers keep of a conversation; how many responses."""
        row = ProviderCopyRow
        which = (col(row.conversation_id) == conversation_id) & col(row.delete_after).is_(None)
        statement = update(row).where(which).values(delete_after=now()).returning(col(row.response_id))
        return len(await self._session.all(statement))

    async def due(self, *, limit: int) -> list[ProviderCopy]:
        """What is to be deleted now, over all tenants, by the partial index; the longest wanted first."""
        row = ProviderCopyRow
        statement = select(row).where(text(f"provider_copies.{WANTED}"), col(row.delete_after) <= now())
        found = await self._session.all(statement.order_by(col(row.delete_after)).limit(limit))
        return [record_from_row(ProviderCopy, one) for one in found]

    async def take(self, response_id: str, *, pause: timedelta) -> ProviderCopy | None:
        """One that is to be deleted now, with one try more, kept from others for so long; else ``None``."""
        row = ProviderCopyRow
        statement = (
            update(row)
            .where(col(row.response_id) == response_id, col(row.delete_after) <= now())
            .values(tries=col(row.tries) + 1, delete_after=now() + pause)
            .returning(row)
        )
        found = await self._session.first(statement)
        return None if found is None else record_from_row(ProviderCopy, found)

    async def forget(self, response_id: str) -> None:
        """Forget a provider's copy: it is deleted there, or given up."""
        await self._session.execute(delete(ProviderCopyRow).where(col(ProviderCopyRow.response_id) == response_id))

    async def count(self) -> int:
        """How many responses providers keep."""
        return int(await self._session.first(select(func.count()).select_from(ProviderCopyRow)) or 0)
