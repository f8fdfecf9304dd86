"""What repositories speak through: every statement scoped to the tenant, every error translated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from sqlalchemy import Executable, Result
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from app.storage.database_errors import DATABASE_ERRORS, translated
from app.storage.tenancy import TENANT, ScopedSession


class TenantSession:
    """One transaction at a time, of one tenant, or of all (``None``)."""

    def __init__(self, engine: AsyncEngine, tenant_id: UUID | None) -> None:
        self.tenant_id = tenant_id
        self._session = AsyncSession(
            engine, sync_session_class=ScopedSession, info={TENANT: tenant_id}, expire_on_commit=False
        )

    async def execute(self, statement: Executable, rows: Sequence[dict[str, Any]] | None = None) -> Result[Any]:
        """Run it; with ``rows``, once for each of them in one round trip."""
        with translated():
            return await self._session.execute(statement, rows)

    async def first(self, statement: Executable) -> Any:
        """The first column of the first row, or ``None``."""
        return (await self.execute(statement)).scalars().first()

    async def all(self, statement: Executable) -> list[Any]:
        """The first column of every row."""
        return list((await self.execute(statement)).scalars().all())

    async def rows(self, statement: Executable) -> list[Any]:
        """Every row, its columns by name and in order."""
        return list((await self.execute(statement)).all())

    async def one_moment(self) -> None:
        """Begin the transaction so that every statement of it sees the same moment."""
        with translated():
            await self._session.connection(execution_options={"isolation_level": "REPEATABLE READ"})

    async def at_once(self) -> None:
        """Make each statement its own transaction, of one round trip; before the first one."""
        with translated():
            await self._session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})

    async def commit(self) -> None:
        """Make it so."""
        with translated():
            await self._session.commit()

    async def close(self) -> None:
        """Roll back, give the connection back; also when the caller is cancelled, and whatever the server says."""
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        # A connection that cannot even roll back is thrown away by the pool; the block's own outcome stands.
        with suppress(*DATABASE_ERRORS):
            await self._session.close()
