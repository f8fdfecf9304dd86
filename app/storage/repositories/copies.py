"""The SQL of copies at providers (files, responses): which have to be deleted there, and which process does so."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from sqlalchemy import and_, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.files import ProviderFile
from app.core.model.records import ProviderCopy
from app.storage.repositories.base import Repository
from app.storage.repositories.database_time import now
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import DELETION_WANTED, ProviderCopyRow, ProviderFileRow

Copy = TypeVar("Copy", ProviderCopy, ProviderFile)


class CopyRepository(Repository, Generic[Copy]):
    """Copies of one kind, each identified by the columns of ``key`` in that order."""

    row: ClassVar[type[ProviderCopyRow | ProviderFileRow]]
    record: ClassVar[type[Any]]
    key: ClassVar[tuple[str, ...]]

    async def due(self, *, limit: int) -> list[Copy]:
        """Copies of all tenants that have to be deleted now, the longest due first. Read by the partial index."""
        after = col(self.row.delete_after)
        statement = select(self.row).where(text(f"{self.row.__tablename__}.{DELETION_WANTED}"), after <= now())
        found = await self._session.all(statement.order_by(after).limit(limit))
        return [record_from_row(self.record, one) for one in found]

    async def take(self, *key: str, pause: timedelta) -> Copy | None:
        """Claim a due copy: count one more try, and make it due again after the pause. ``None`` if it is not due."""
        statement = (
            update(self.row)
            .where(self._is_copy(key), col(self.row.delete_after) <= now())
            .values(tries=col(self.row.tries) + 1, delete_after=now() + pause)
            .returning(self.row)
        )
        found = await self._session.first(statement)
        return None if found is None else record_from_row(self.record, found)

    async def forget(self, *key: str) -> None:
        """Delete the row of a copy that the provider has deleted or that is given up."""
        await self._session.execute(delete(self.row).where(self._is_copy(key)))

    async def count(self) -> int:
        """How many copies providers keep."""
        return int(await self._session.first(select(func.count()).select_from(self.row)) or 0)

    def _is_copy(self, key: Sequence[str]) -> Any:
        named = zip(self.key, key, strict=True)
        return and_(*(col(getattr(self.row, name)) == value for name, value in named))


class ProviderCopyRepository(CopyRepository[ProviderCopy]):
    """Rows of ``provider_copies``."""

    row = ProviderCopyRow
    record = ProviderCopy
    key = ("response_id",)

    async def note(self, copy: ProviderCopy) -> None:
        """Record that a provider keeps this response."""
        self._check_tenant(copy.tenant_id)
        await self._session.execute(insert(ProviderCopyRow).values(**columns(copy)).on_conflict_do_nothing())

    async def mark_for_deletion(self, conversation_id: UUID) -> int:
        """Make all responses that providers keep of a conversation due for deletion, and return how many there are."""
        row = ProviderCopyRow
        which = (col(row.conversation_id) == conversation_id) & col(row.delete_after).is_(None)
        statement = update(row).where(which).values(delete_after=now()).returning(col(row.response_id))
        return len(await self._session.all(statement))
