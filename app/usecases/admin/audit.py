"""Reads the audit log: who did what."""

from __future__ import annotations

from uuid import UUID

from app.core.model.records import AuditEntry, Page
from app.usecases.shared.shell import Service


class AuditService(Service):
    """The record of a tenant; it is written where things are done (``shared.caller.audit``)."""

    async def page(self, tenant_id: UUID, page: Page) -> tuple[list[AuditEntry], str | None]:
        """Entries in the order in which it happened; and the next cursor."""
        async with self._shell.uow(tenant_id) as uow:
            return await uow.audit.page(page)
