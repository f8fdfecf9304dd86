"""The SQL of the audit log. Rows are written in the transaction of the action that they record, and never changed."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import insert, select
from sqlmodel import col

from app.core.model.records import AuditEntry, Page
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_ID, cut_page, select_page
from app.storage.repositories.database_time import transaction_start
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import AuditRow

_id = col(AuditRow.id)


class AuditRepository(Repository):
    """Rows of ``audit``."""

    async def add(self, entry: AuditEntry) -> None:
        """Insert. Raises ``NotFoundError`` when there is no such tenant."""
        self._check_tenant(entry.tenant_id)
        await self._session.execute(insert(AuditRow).values(**columns(entry, data=dict(entry.data))))

    async def page(self, page: Page) -> tuple[list[AuditEntry], str | None]:
        """A page of entries in the order in which they were made; and the next cursor."""
        rows = await self._session.all(select_page(select(AuditRow), page, (_id,), BY_ID))
        return cut_page([record_from_row(AuditEntry, row) for row in rows], page.limit, lambda entry: (entry.id,))

    async def forget_older_than(self, age: timedelta, *, limit: int) -> int:
        """Delete older rows, at most ``limit``, and return how many."""
        return await self._delete_at_most(limit, AuditRow, col(AuditRow.occurred_at) < transaction_start() - age)
