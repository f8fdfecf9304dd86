"""The base class of the repositories."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, literal_column, select

from app.storage.scoped_session import TenantSession


class Repository:
    """Statements of one kind of row, through the session of a unit of work."""

    def __init__(self, session: TenantSession) -> None:
        self._session = session

    def _check_tenant(self, tenant_id: UUID) -> None:
        if self._session.tenant_id not in {None, tenant_id}:
            raise ValueError("the record is of another tenant than the unit of work")

    async def _delete_at_most(self, limit: int, table: Any, which: Any, *, order: tuple[Any, ...] = ()) -> int:
        """Delete at most ``limit`` rows that meet the condition ``which``, and return how many.

        The rows are picked by their physical place (``ctid``), which needs no join.
        """
        if limit <= 0:
            return 0
        place: ColumnElement[Any] = literal_column(f"{table.__tablename__}.ctid")
        picked = select(place).select_from(table).where(which).order_by(*order).limit(limit).correlate(None)
        gone = delete(table).where(place == func.any(func.array(picked.scalar_subquery())))
        return len(await self._session.all(gone.returning(table.tenant_id)))


class LeasedRepository(Repository):
    """Statements of rows that one process holds for a while.

    A lease lasts ``lease_seconds`` without a heartbeat.
    """

    def __init__(self, session: TenantSession, lease_seconds: float) -> None:
        super().__init__(session)
        self._lease_seconds = lease_seconds
