"""Reads the audit log: who did what."""

from __future__ import annotations

from uuid import UUID

from app.core.model.records import AuditEntry, Page
from app.usecases.shared.shell import Service


class AuditService(Service):
    """The audit log of a tenant. The services that change things write it (``shared.caller.audit``)."""

    async def page(self, tenant_id: UUID, page: Page) -> tuple[list[AuditEntry], str | None]:
        """A page of entries in the order in which they happened, and the cursor of the next page."""
        async with self._shell.uow(tenant_id) as uow:
            return await uow.audit.page(page)
