"""The base class of the repositories."""

from __future__ import annotations

from uuid import UUID

from app.storage.scoped_session import TenantSession


class Repository:
    """Statements of one kind of row, through the session of a unit of work."""

    def __init__(self, session: TenantSession) -> None:
        self._session = session

    def _check_tenant(self, tenant_id: UUID) -> None:
        if self._session.tenant_id not in {None, tenant_id}:
            raise ValueError("the record is of another tenant than the unit of work")


class LeasedRepository(Repository):
    """Statements of rows that one process holds for a while.

    A lease lasts ``lease_seconds`` without a heartbeat.
    """

    def __init__(self, session: TenantSession, lease_seconds: float) -> None:
        super().__init__(session)
        self._lease_seconds = lease_seconds
