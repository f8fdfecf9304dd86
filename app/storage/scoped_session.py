"""The session of the repositories: it restricts every statement to the tenant and translates every error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import thread_time
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg
from sqlalchemy import Connection, Executable, PoolProxiedConnection, QueuePool, Result, ScalarResult, event
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.orm import Session
from sqlalchemy.util import greenlet_spawn

from app.off_loop import SLICE, SLICE_SECONDS
from app.storage import connections, tenancy
from app.storage.compiled import CompiledStatement, can_be_literals, compiled_for, joined_sql
from app.storage.connection_shares import ConnectionShares
from app.storage.database_errors import DATABASE_ERRORS, translated
from app.storage.pending_writes import MAX_JOINED_WRITES, PendingWrites
from app.storage.row_security import SYSTEM
from app.storage.tenancy import END_USER, TENANT, TENANT_VALUE, USER_VALUE, ScopedSession, end_user

_ROWS_PER_CHECK: Final = 10
"""How many rows are built before the elapsed time is checked: a row may have hundreds of parts."""
_holder: Final[ContextVar[TenantSession | None]] = ContextVar("connection_holder", default=None)
"""The session that last took a share in this task. A second session of the task must not wait for that share."""


@event.listens_for(ScopedSession, "after_begin")
def _act_for_tenant(session: Session, _transaction: object, connection: Connection) -> None:
    tenant_id = session.info.get(TENANT, connections.NO_TENANT)
    connections.act_for(connection.connection, SYSTEM if tenant_id is None else tenant_id)


async def _fetch_in_slices(found: Result[Any] | ScalarResult[Any]) -> list[Any]:
    """Fetch every row of a result of the ORM. Between slices of rows, other tasks of the event loop may run."""
    rows: list[Any] = []
    began = thread_time()
    found = found.yield_per(_ROWS_PER_CHECK)  # otherwise the first part would make all rows and return some of them
    while part := found.fetchmany(_ROWS_PER_CHECK):
        rows.extend(part)
        if len(part) < _ROWS_PER_CHECK:
            break
        if thread_time() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = thread_time()
    return rows


async def _rows_in_slices(make: Callable[[Any], Any], records: Iterable[Any]) -> list[Any]:
    rows: list[Any] = []
    began = thread_time()
    for number, record in enumerate(records, 1):
        rows.append(make(record))
        if number % _ROWS_PER_CHECK == 0 and thread_time() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = thread_time()
    return rows


def _rows_in_status(status: str) -> int:
    # The server says, for example, ``INSERT 0 1``.
    return int(status.rpartition(" ")[2])


def _return_connection(connection: Connection | PoolProxiedConnection, session: ScopedSession | None) -> None:
    if session is not None:
        session.close()
    try:
        connection.close()
    except DATABASE_ERRORS as error:
        connection.invalidate(error)
        connection.close()
        raise


class TenantSession:
    """A session with one transaction at a time, of one tenant or of all (``None``).

    A transaction begins with its first statement. A statement of ``tenancy.keep_compiled`` goes to the driver as its
    kept text; all others go through the ORM. Writes whose results are not needed wait for the next statement or the
    commit, and are sent together in one message before it.
    """

    def __init__(self, engine: AsyncEngine, tenant_id: UUID | None, shares: ConnectionShares | None = None) -> None:
        self.tenant_id = tenant_id
        self.end_user = end_user.get() if tenant_id is not None else None
        """The end user to whose conversations the session is restricted; ``None`` = all of the tenant."""
        self._shares = shares
        self._holds_share = False
        self._each_commits = False
        self._engine = engine.sync_engine
        self._lent: PoolProxiedConnection | None = None
        """The connection that the pool lent, from the first statement on."""
        self._connection: Connection | None = None
        """SQLAlchemy's connection around it, if one is needed: for the ORM, and to open a new one."""
        self._pooled: Any = None
        """SQLAlchemy's adapter of the driver's connection."""
        self._session: ScopedSession | None = None
        self._pending = PendingWrites()

    async def execute(
        self, statement: Executable, rows: Sequence[dict[str, Any]] | None = None, /, **given: Any
    ) -> Result[Any]:
        """Run a statement through the ORM; with ``rows`` once for each of them, many in one round trip.

        ``given`` are the values of its ``bindparam``s.
        """
        await self._take_share_once()
        with translated():
            await self._write_waiting()
            found = await greenlet_spawn(self._execute, statement, (given or None) if rows is None else rows[:SLICE])
            for first in range(SLICE, len(rows or ()), SLICE):
                found = await greenlet_spawn(self._execute, statement, (rows or ())[first : first + SLICE])
        if self._each_commits:
            await self.commit()
        return found

    async def write(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        """Run a kept statement once for each row, many in one round trip, now or before the next read or commit.

        So a later statement, or the commit, may raise its errors.
        """
        if not rows:
            return
        compiled = self._compiled(statement)
        with translated():
            if not self._pending.fits(len(rows)) or not self._pending.can_join(compiled):
                await self._write_waiting()
            if len(rows) <= MAX_JOINED_WRITES:
                self._pending.add(compiled, [self._arguments(compiled, row) for row in rows])
            else:
                await self._write_slices(compiled, rows)
        if self._each_commits:
            await self.commit()

    async def change(self, statement: Executable, /, **given: Any) -> Any:
        """Run a kept statement that changes rows, after the waiting writes; return the first value of the first row."""
        compiled = self._compiled(statement)
        with translated():
            if not self._pending.can_join(compiled):
                await self._write_waiting()
            records = await self._run_together([*self._pending.take(), (compiled, self._arguments(compiled, given))])
        if self._each_commits:
            await self.commit()
        return compiled.scalar(records[0]) if records else None

    async def begin_with(self, statement: Executable, /, **given: Any) -> int:
        """Run a kept statement that writes, and return the number of rows.

        If it is the first statement of the transaction, it is sent together with ``BEGIN``.
        """
        compiled = self._compiled(statement)
        values = self._arguments(compiled, given)
        if self._lent is not None or self._pending or not can_be_literals(values):
            return len((await self._compiled_and_records(statement, given))[1])
        with translated():
            await self._begin_transaction(compiled.text_with_values(values) + ";")
        return _rows_in_status(self._pooled.driver_connection.begin_status)

    async def run_alone(self, statement: Executable, /, **given: Any) -> int:
        """Run a kept statement as a transaction of its own, in one round trip; return how many rows it touches.

        Its values are written into the text (``CompiledStatement.text_with_values``). Call it before any other
        statement.
        """
        compiled = self._compiled(statement)
        text = compiled.text_with_values(self._arguments(compiled, given))
        await self._take_share_once()
        with translated():
            await self._take_connection()
            self._notify_listeners(text)
            done = await self._last_answer_or_discard(self._pooled.driver_connection.run_alone(text))
            await self._release()
        self._give_share_back()
        return _rows_in_status(done)

    async def first(self, statement: Executable, /, **given: Any) -> Any:
        """The first column of the first row, or ``None``."""
        if not tenancy.is_kept_compiled(statement):
            return (await self.execute(statement, **given)).scalars().first()
        compiled, records = await self._compiled_and_records(statement, given)
        return compiled.scalar(records[0]) if records else None

    async def all(self, statement: Executable, /, **given: Any) -> list[Any]:
        """The first column of every row."""
        if not tenancy.is_kept_compiled(statement):
            return await _fetch_in_slices((await self.execute(statement, **given)).scalars())
        compiled, records = await self._compiled_and_records(statement, given)
        return await _rows_in_slices(compiled.scalar, records)

    async def rows(self, statement: Executable, /, **given: Any) -> list[Any]:
        """Every row, its columns by name and in order."""
        if not tenancy.is_kept_compiled(statement):
            return await _fetch_in_slices(await self.execute(statement, **given))
        compiled, records = await self._compiled_and_records(statement, given)
        return await _rows_in_slices(compiled.row, records)

    async def records(self, statement: Executable, /, **given: Any) -> Sequence[Sequence[Any]]:
        """Every row of a kept statement as a plain sequence of values, which is the fastest way to read many rows.

        Raises ``ValueError`` if a column needs a conversion that the driver does not make.
        """
        compiled, records = await self._compiled_and_records(statement, given)
        if not compiled.is_plain:
            raise ValueError(f"a column has a type that the driver does not read: use rows() for {compiled.text}")
        return records

    async def use_snapshot(self) -> None:
        """Begin the transaction so that every statement of it sees the same snapshot."""
        await self._take_share_once()
        with translated():
            await greenlet_spawn(self._begun_connection, isolation_level="REPEATABLE READ")

    def autocommit(self) -> None:
        """Make each statement its own transaction. Call it before the first one."""
        self._each_commits = True

    async def commit(self) -> None:
        """Commit the transaction."""
        if self._lent is not None or self._pending:
            with translated():
                await self._write_with_commit()
                await self._end_transaction("commit")
                await self._release()
        self._give_share_back()

    def forget_values(self) -> None:
        """Drop the statements that SQLAlchemy has compiled: each keeps the values with which it was first sent."""
        self._engine.clear_compiled_cache()

    async def close(self) -> None:
        """Roll back and give the connection back, even if the caller is cancelled, and whatever the server answers."""
        self._pending.take()
        if self._lent is None:
            self._give_share_back()
        elif self._transaction is None:
            await self._close()
        else:
            await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        # The pool throws away a connection that cannot even roll back; the outcome of the block stays as it is.
        try:
            with suppress(*DATABASE_ERRORS):
                await self._release()
        finally:
            self._give_share_back()

    async def _compiled_and_records(
        self, statement: Executable, given: Mapping[str, Any]
    ) -> tuple[CompiledStatement, Sequence[Any]]:
        compiled = self._compiled(statement)
        values = self._arguments(compiled, given)
        with translated():
            await self._write_waiting()
            records = await self._run_together([(compiled, values)])
        if self._each_commits:
            await self.commit()
        return compiled, records

    # --- waiting writes

    async def _write_waiting(self) -> None:
        if self._pending:
            await self._run_together(self._pending.take())

    async def _write_with_commit(self) -> None:
        text = self._pending.text_with_values()
        if text is None:
            await self._write_waiting()
            return
        self._pending.take()
        await self._begin_transaction()
        self._notify_listeners(text)
        self._pooled.driver_connection.before_commit = text

    async def _write_slices(self, compiled: CompiledStatement, rows: Sequence[dict[str, Any]]) -> None:
        await self._begin_transaction()
        for first in range(0, len(rows), SLICE):
            some = [self._arguments(compiled, row) for row in rows[first : first + SLICE]]
            self._notify_listeners(compiled.text, some, is_many=True)
            await self._answer_or_discard(self._pooled.driver_connection.executemany(compiled.text, some))

    async def _run_together(self, parts: Sequence[tuple[CompiledStatement, Sequence[Any]]]) -> Sequence[Any]:
        text = joined_sql(tuple(compiled for compiled, _ in parts))
        values = [value for _, values in parts for value in values]
        await self._begin_transaction()
        self._notify_listeners(text, values)
        records: Sequence[Any] = await self._answer_or_discard(self._pooled.driver_connection.fetch(text, *values))
        return records

    def _compiled(self, statement: Executable) -> CompiledStatement:
        return compiled_for(statement, self._engine.dialect, tenancy.kind_of(self.tenant_id, self.end_user))

    def _arguments(self, compiled: CompiledStatement, given: Mapping[str, Any]) -> list[Any]:
        return compiled.arguments({**given, TENANT_VALUE: self.tenant_id, USER_VALUE: self.end_user})

    # --- statements sent by the driver

    @property
    def _transaction(self) -> Any:
        # The driver's transaction, kept where the adapter keeps its own, so that statements of both run within it.
        return self._pooled._transaction  # noqa: SLF001

    @_transaction.setter
    def _transaction(self, transaction: Any) -> None:
        self._pooled._transaction = transaction  # noqa: SLF001

    async def _begin_transaction(self, first: str = "") -> None:
        """Begin the transaction, unless an earlier statement did; ``first`` is sent with it."""
        if self._lent is None:
            await self._take_share_once()
            await self._take_connection()
        if self._transaction is None:
            if first:
                self._notify_listeners(first)
                self._pooled.driver_connection.after_begin = first
            transaction = self._pooled.driver_connection.transaction(isolation=self._pooled.isolation_level)
            await self._answer_or_discard(transaction.start())
            self._transaction = transaction

    def _notify_listeners(self, text: str, values: Sequence[Any] = (), *, is_many: bool = False) -> None:
        listeners: Any = self._engine.dispatch.before_cursor_execute
        if listeners:
            listeners(self._connection, None, text, values if is_many else tuple(values), None, is_many)

    async def _answer_or_discard(self, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        except DATABASE_ERRORS as error:
            driver = self._pooled.driver_connection
            if driver.is_closed() or driver.is_useless_after(error):
                self._discard_connection(error)
            raise

    async def _end_transaction(self, how: Literal["commit", "rollback"]) -> None:
        transaction = self._transaction
        if transaction is not None:
            self._transaction = None
            await self._last_answer_or_discard(getattr(transaction, how)())

    async def _last_answer_or_discard(self, answer: Awaitable[Any]) -> Any:
        """The answer to the last command of a transaction; the connection is discarded unless the server answered."""
        try:
            return await self._answer_or_discard(answer)
        except BaseException as error:
            # If no answer came, the connection is closed, since no rollback can make it usable again.
            if not isinstance(error, asyncpg.PostgresError):
                self._discard_connection(error)
            raise

    def _discard_connection(self, error: BaseException) -> None:
        connection = self._connection or self._lent
        if connection is not None:
            connection.invalidate(error)

    async def _release(self) -> None:
        """Give the connection back; uncommitted changes are rolled back."""
        connection, session = self._connection or self._lent, self._session
        if connection is None:
            return
        try:
            await self._end_transaction("rollback")
        finally:
            self._lent = self._connection = self._session = None
            if session is None and self._can_return_at_once():
                _return_connection(connection, None)
            else:
                await greenlet_spawn(_return_connection, connection, session)

    async def _take_connection(self) -> None:
        # SQLAlchemy can only wait within greenlets, which are expensive; a connection that lies in the pool needs none.
        pool = self._engine.pool
        if isinstance(pool, QueuePool) and pool.checkedin():
            with suppress(MissingGreenlet):  # the pooled connection was closed or too old
                self._hold_connection(self._engine.raw_connection())
                return
        await greenlet_spawn(self._connection_made_if_missing)

    def _hold_connection(self, lent: PoolProxiedConnection) -> None:
        self._lent = lent
        self._pooled = lent.dbapi_connection
        connections.act_for(lent, SYSTEM if self.tenant_id is None else self.tenant_id)

    def _can_return_at_once(self) -> bool:
        """Whether the pool can take the connection back without waiting, so that no greenlet is needed."""
        pool = self._engine.pool
        fits = isinstance(pool, QueuePool) and pool.overflow() <= 0
        return fits and self._transaction is None and not self._pooled.driver_connection.is_closed()

    # --- within a greenlet, since SQLAlchemy may have to wait

    def _connection_made_if_missing(self) -> Connection:
        if self._connection is None and self._lent is not None:
            self._connection = Connection(self._engine, self._lent)
        elif self._connection is None:
            self._connection = self._engine.connect()
            self._hold_connection(self._connection.connection)
        return self._connection

    def _begun_connection(self, **options: Any) -> Connection:
        connection = self._connection_made_if_missing()
        if options:
            connection.execution_options(**options)
        if not connection.in_transaction():
            connection.begin()  # nothing is sent yet, but from now on a lost connection is not replaced silently
        return connection

    def _execute(self, statement: Executable, given: Any) -> Result[Any]:
        if self._session is None:
            info = {TENANT: self.tenant_id, END_USER: self.end_user}
            self._session = ScopedSession(self._begun_connection(), info=info, expire_on_commit=False)
        return self._session.execute(statement, given)

    async def _take_share_once(self) -> None:
        if self._shares is None or self.tenant_id is None or self._holds_share:
            return
        # A session does not wait for a second share if one of the same task already holds one.
        holder = _holder.get()
        if holder is not None and holder._holds_share:  # noqa: SLF001 - another session of the same task
            return
        await self._shares.take(self.tenant_id)
        self._holds_share = True
        _holder.set(self)

    def _give_share_back(self) -> None:
        if self._holds_share and self._shares is not None and self.tenant_id is not None:
            self._holds_share = False
            self._shares.release(self.tenant_id)
