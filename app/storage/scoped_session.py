"""What repositories speak through: every statement scoped to the tenant, every error translated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import thread_time
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Executable, Result, ScalarResult, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.orm import Session
from sqlalchemy.util import greenlet_spawn

from app.off_loop import SLICE, SLICE_SECONDS
from app.storage import connections, tenancy
from app.storage.compiled import CompiledStatement, compiled_for
from app.storage.database_errors import DATABASE_ERRORS, has_lost_protocol, translated
from app.storage.row_security import SYSTEM
from app.storage.shares import ConnectionShares
from app.storage.tenancy import END_USER, TENANT, TENANT_VALUE, USER_VALUE, ScopedSession, end_user

_PART: Final = 10
"""Rows that are made before it is looked at how long that took."""
_holder: Final[ContextVar[TenantSession | None]] = ContextVar("connection_holder", default=None)
"""The session that took the last share in this task: a second one within it must not wait for the first."""


@event.listens_for(ScopedSession, "after_begin")
def _act_for_tenant(session: Session, _transaction: object, connection: Connection) -> None:
    """Tell the connection for whom Postgres is to look, before it begins."""
    tenant_id = session.info.get(TENANT, connections.NOBODY)
    connections.act_for(connection, SYSTEM if tenant_id is None else tenant_id)


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


async def _made(make: Callable[[Any], Any], records: Iterable[Any]) -> list[Any]:
    """A row of each record of the driver; between slices the loop does what else there is to do."""
    rows: list[Any] = []
    began = thread_time()
    for number, record in enumerate(records, 1):
        rows.append(make(record))
        if number % SLICE == 0 and thread_time() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = thread_time()
    return rows


class TenantSession:
    """One transaction at a time, of one tenant, or of all (``None``).

    It is begun with the first statement. A statement of ``tenancy.built_once`` goes to the driver as the text that is
    kept of it; all others are the ORM's.
    """

    def __init__(self, engine: AsyncEngine, tenant_id: UUID | None, shares: ConnectionShares | None = None) -> None:
        self.tenant_id = tenant_id
        self.end_user = end_user.get() if tenant_id is not None else None
        """Whose conversations alone it sees; ``None`` = all of the tenant."""
        self._shares = shares
        self._holds_share = False
        self._each_commits = False
        self._engine = engine.sync_engine
        self._connection: Connection | None = None
        self._has_run = False
        """Whether a statement ran through SQLAlchemy, which sends ``BEGIN`` with the first one."""
        self._session: ScopedSession | None = None

    async def execute(
        self, statement: Executable, rows: Sequence[dict[str, Any]] | None = None, /, **given: Any
    ) -> Result[Any]:
        """Run it by the ORM; with ``rows``, once for each of them, a slice in one round trip.

        ``given`` are the values of its ``bindparam``s.
        """
        await self._take_share()
        with translated():
            found = await greenlet_spawn(self._execute, statement, (given or None) if rows is None else rows[:SLICE])
            for first in range(SLICE, len(rows or ()), SLICE):
                found = await greenlet_spawn(self._execute, statement, (rows or ())[first : first + SLICE])
        if self._each_commits:
            await self.commit()
        return found

    async def write(self, statement: Executable, rows: Sequence[dict[str, Any]] | None = None, /, **given: Any) -> None:
        """Run one of ``built_once``, by names; with ``rows``, once for each of them, a slice in one round trip."""
        if rows is None:
            await self._fetched(statement, given)
            return
        for first in range(0, len(rows), SLICE):
            await self._write_slice(statement, rows[first : first + SLICE])

    async def alone(self, statement: Executable, /, **given: Any) -> int:
        """Run one of ``built_once`` as a transaction of its own, in one round trip; how many rows it reads or changes.

        Its values can only be ids, spans of time and words of our own. Before any other statement.
        """
        compiled = self._compiled(statement)
        text = compiled.spelled(self._values(compiled, given))
        await self._take_share()
        with translated():
            await greenlet_spawn(self._take)
            done = await self._driven("run_alone", text, (), text)
        return int(done.rpartition(" ")[2])

    async def first(self, statement: Executable, /, **given: Any) -> Any:
        """The first column of the first row, or ``None``."""
        if not tenancy.is_built_once(statement):
            return (await self.execute(statement, **given)).scalars().first()
        compiled, records = await self._fetched(statement, given)
        return compiled.scalar(records[0]) if records else None

    async def all(self, statement: Executable, /, **given: Any) -> list[Any]:
        """The first column of every row."""
        if not tenancy.is_built_once(statement):
            return await _in_parts((await self.execute(statement, **given)).scalars())
        compiled, records = await self._fetched(statement, given)
        return await _made(compiled.scalar, records)

    async def rows(self, statement: Executable, /, **given: Any) -> list[Any]:
        """Every row, its columns by name and in order."""
        if not tenancy.is_built_once(statement):
            return await _in_parts(await self.execute(statement, **given))
        compiled, records = await self._fetched(statement, given)
        return await _made(compiled.row, records)

    async def one_moment(self) -> None:
        """Begin the transaction so that every statement of it sees the same moment."""
        await self._take_share()
        with translated():
            await greenlet_spawn(self._begin, isolation_level="REPEATABLE READ")

    def at_once(self) -> None:
        """Make each statement its own transaction; before the first one."""
        self._each_commits = True

    async def commit(self) -> None:
        """Make it so."""
        if self._connection is not None:
            with translated():
                await greenlet_spawn(self._commit, self._connection)
        self._give_share_back()

    async def close(self) -> None:
        """Roll back, give the connection back; also when the caller is cancelled, and whatever the server says."""
        if self._connection is None:
            self._give_share_back()
        else:
            await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        # A connection that cannot even roll back is thrown away by the pool; the block's own outcome stands.
        try:
            with suppress(*DATABASE_ERRORS):
                await greenlet_spawn(self._release)
        finally:
            self._give_share_back()

    async def _fetched(
        self, statement: Executable, given: Mapping[str, Any]
    ) -> tuple[CompiledStatement, Sequence[Any]]:
        """What the driver reads; the first statement of a transaction goes through SQLAlchemy, which begins it."""
        compiled = self._compiled(statement)
        values = tuple(self._values(compiled, given))
        await self._take_share()
        with translated():
            if self._each_commits:
                records = await greenlet_spawn(self._run_at_once, compiled.text, values)
            elif not self._has_run:
                records = await greenlet_spawn(self._run_first, compiled.text, values)
            else:
                records = await self._driven("fetch", compiled.text, values, compiled.text, *values)
        if self._each_commits:
            self._give_share_back()
        return compiled, records

    async def _write_slice(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        if len(rows) == 1:
            await self._fetched(statement, rows[0])
            return
        compiled = self._compiled(statement)
        values = [tuple(self._values(compiled, row)) for row in rows]
        await self._take_share()
        with translated():
            if not self._has_run:
                await greenlet_spawn(self._run_first, compiled.text, values)
            else:
                await self._driven("executemany", compiled.text, values, compiled.text, values)

    def _compiled(self, statement: Executable) -> CompiledStatement:
        return compiled_for(statement, self._engine.dialect, tenancy.kind_of(self.tenant_id, self.end_user))

    def _values(self, compiled: CompiledStatement, given: Mapping[str, Any]) -> list[Any]:
        return compiled.arguments({**given, TENANT_VALUE: self.tenant_id, USER_VALUE: self.end_user})

    async def _driven(self, call: str, text: str, told: Any, *given: Any) -> Any:
        """By the driver, in the transaction that is begun; who listens to statements hears of this one too."""
        connection = self._connection
        assert connection is not None  # noqa: S101 - for the type checker
        driver: Any = connection.connection.driver_connection
        connection.dispatch.before_cursor_execute(connection, None, text, told, None, call == "executemany")
        try:
            return await getattr(driver, call)(*given)
        except DATABASE_ERRORS as error:
            if driver.is_closed() or has_lost_protocol(error):
                connection.invalidate(error)
            raise

    # --- within a greenlet

    def _take(self) -> Connection:
        self._connection = connection = self._engine.connect()
        connections.act_for(connection, SYSTEM if self.tenant_id is None else self.tenant_id)
        return connection

    def _begin(self, **options: Any) -> Connection:
        connection = self._take()
        if options:
            connection.execution_options(**options)
        connection.begin()
        return connection

    def _execute(self, statement: Executable, given: Any) -> Result[Any]:
        connection = self._connection or self._begin()
        if self._session is None:
            info = {TENANT: self.tenant_id, END_USER: self.end_user}
            self._session = ScopedSession(connection, info=info, expire_on_commit=False)
        found = self._session.execute(statement, given)
        self._has_run = True
        return found

    def _run_first(self, text: str, values: Any) -> Sequence[Any]:
        found = (self._connection or self._begin()).exec_driver_sql(text, values)
        self._has_run = True
        return found.fetchall() if found.returns_rows else ()

    def _run_at_once(self, text: str, values: Any) -> Sequence[Any]:
        records = self._run_first(text, values)
        assert self._connection is not None  # noqa: S101 - for the type checker
        self._commit(self._connection)
        return records

    def _commit(self, connection: Connection) -> None:
        transaction = connection.get_transaction()
        if transaction is not None:
            transaction.commit()
        self._release()

    def _release(self) -> None:
        connection, session = self._connection, self._session
        self._connection = self._session = None
        self._has_run = False
        if session is not None:
            session.close()
        if connection is None:
            return
        try:
            connection.close()
        except DATABASE_ERRORS as error:
            connection.invalidate(error)
            connection.close()
            raise

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
