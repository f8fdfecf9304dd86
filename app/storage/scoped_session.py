"""What repositories speak through: every statement scoped to the tenant, every error translated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import thread_time
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Executable, Result, ScalarResult, event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from app.off_loop import SLICE, SLICE_SECONDS
from app.storage import connections
from app.storage.database_errors import DATABASE_ERRORS, translated
from app.storage.row_security import SYSTEM
from app.storage.shares import ConnectionShares
from app.storage.tenancy import END_USER, TENANT, ScopedSession, end_user

_PART: Final = 10
"""Rows that are made before it is looked at how long that took."""
_holder: Final[ContextVar[TenantSession | None]] = ContextVar("connection_holder", default=None)
"""The session that took the last share in this task: a second one within it must not wait for the first."""


@event.listens_for(ScopedSession, "after_begin")
def _act_for_tenant(session: Session, _transaction: object, connection: Connection) -> None:
    """Tell the connection for whom Postgres is to look, before it begins."""
    tenant_id = session.info.get(TENANT, connections.NOBODY)
    connections.act_for(connection, SYSTEM if tenant_id is None else tenant_id)


def _execute(session: Session, statement: Executable, given: Any) -> Result[Any]:
    return session.execute(statement, given)


async def _in_parts(found: Result[Any] | ScalarResult[Any]) -> list[Any]:
    """Every row; they are made of what was read, and between slices the loop does what else there is to do."""
    rows: list[Any] = []
    began = thread_time()
    found = found.yield_per(_PART)  # else the first part makes all rows, and gives some of them
    while part := found.fetchmany(_PART):
        rows.extend(part)
        if len(part) < _PART:
            break
        if thread_time() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = thread_time()
    return rows


class TenantSession:
    """One transaction at a time, of one tenant, or of all (``None``)."""

    def __init__(self, engine: AsyncEngine, tenant_id: UUID | None, shares: ConnectionShares | None = None) -> None:
        self.tenant_id = tenant_id
        self.end_user = end_user.get() if tenant_id is not None else None
        """Whose conversations alone it sees; ``None`` = all of the tenant."""
        self._shares = shares
        self._holds_share = False
        self._each_commits = False
        self._session = AsyncSession(
            engine,
            sync_session_class=ScopedSession,
            info={TENANT: tenant_id, END_USER: self.end_user},
            expire_on_commit=False,
        )

    async def execute(
        self, statement: Executable, rows: Sequence[dict[str, Any]] | None = None, /, **given: Any
    ) -> Result[Any]:
        """Run it; with ``rows``, once for each of them, a slice in one round trip.

        ``given`` are the values of its ``bindparam``s: a statement that is built once, by name, is cheaper than one
        that is built for each execution.
        """
        await self._take_share()
        with translated():
            # Not by its own ``execute``, which makes all rows at once.
            found = await self._session.run_sync(_execute, statement, (given or None) if rows is None else rows[:SLICE])
            for first in range(SLICE, len(rows or ()), SLICE):
                found = await self._session.run_sync(_execute, statement, (rows or ())[first : first + SLICE])
        if self._each_commits:
            await self.commit()
        return found

    async def first(self, statement: Executable, /, **given: Any) -> Any:
        """The first column of the first row, or ``None``."""
        return (await self.execute(statement, **given)).scalars().first()

    async def all(self, statement: Executable, /, **given: Any) -> list[Any]:
        """The first column of every row."""
        return await _in_parts((await self.execute(statement, **given)).scalars())

    async def rows(self, statement: Executable, /, **given: Any) -> list[Any]:
        """Every row, its columns by name and in order."""
        return await _in_parts(await self.execute(statement, **given))

    async def one_moment(self) -> None:
        """Begin the transaction so that every statement of it sees the same moment."""
        await self._take_share()
        with translated():
            await self._session.connection(execution_options={"isolation_level": "REPEATABLE READ"})

    def at_once(self) -> None:
        """Make each statement its own transaction; before the first one."""
        self._each_commits = True

    async def commit(self) -> None:
        """Make it so."""
        with translated():
            await self._session.commit()
        self._give_share_back()

    async def close(self) -> None:
        """Roll back, give the connection back; also when the caller is cancelled, and whatever the server says."""
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        # A connection that cannot even roll back is thrown away by the pool; the block's own outcome stands.
        try:
            with suppress(*DATABASE_ERRORS):
                await self._session.close()
        finally:
            self._give_share_back()

    async def _take_share(self) -> None:
        """Before a connection is taken; who holds one already in the same task waits for no second share."""
        if self._shares is None or self.tenant_id is None or self._holds_share:
            return
        holder = _holder.get()
        if holder is not None and holder._holds_share:  # noqa: SLF001 - another session of the same task
            return
        await self._shares.take(self.tenant_id)
        self._holds_share = True
        _holder.set(self)

    def _give_share_back(self) -> None:
        if self._holds_share and self._shares is not None and self.tenant_id is not None:
            self._holds_share = False
            self._shares.give_back(self.tenant_id)
