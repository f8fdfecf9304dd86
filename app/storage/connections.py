"""A database connection that sends ``BEGIN`` with the role and the tenant that it acts for, in one round trip."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy import PoolProxiedConnection, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage import row_security
from app.storage.database_errors import has_lost_protocol, is_of_read_only_server

NO_TENANT: Final = ""
"""The tenant of a transaction that no session has begun; it sees no row."""
FRESH_SECONDS: Final = 5.0
"""For this long a connection is kept although its server takes no writes: another would lead to the same server."""
_BEGIN: Final = "BEGIN"
_COMMIT: Final = "COMMIT;"
_ROLLED_BACK: Final = "ROLLBACK"
"""The answer of the server to a ``COMMIT`` after a failed statement, which is not an error."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TenantConnection(asyncpg.Connection):  # type: ignore[misc]  # it comes without types
    """A connection of one pool.

    All settings made with ``BEGIN`` end with the transaction, so a pooler loses none of them.
    """

    settings_sql = ""
    """``SET`` statements for every transaction, for servers that did not get them with the connection."""
    role: str | None = None
    """The role that acts, if it is not the user that signed in."""
    acting_sql = ""
    """Statements that set the role and the tenant; they are sent with every ``BEGIN``."""
    after_begin = ""
    """A statement that is sent with the next ``BEGIN``, after the others."""
    before_commit = ""
    """Statements that are sent with the next ``COMMIT``, before it."""
    begin_status = ""
    """The server's answer to the last statement that was sent with a ``BEGIN``."""
    made_at = 0.0
    """When it was made, in monotonic seconds."""

    def is_useless_after(self, error: BaseException) -> bool:
        """Whether the connection has to be made again: the driver lost track of it, or its server takes no writes.

        After a failover a new connection may lead to a server that does.
        """
        if is_of_read_only_server(error):
            return monotonic() - self.made_at >= FRESH_SECONDS
        return has_lost_protocol(error)

    def act_for(self, tenant_id: UUID | str) -> None:
        """Set the tenant for all transactions of a connection, until it goes back into the pool."""
        self.acting_sql = row_security.acting_sql(self.role, tenant_id)
        self.after_begin = self.before_commit = ""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - the driver's
        """Execute a query; ``BEGIN`` and ``COMMIT`` are sent with the statements that belong to them."""
        if query.startswith(_BEGIN):
            after_begin, self.after_begin = self.after_begin, ""
            self.begin_status = await self._execute_or_terminate(
                f"{query}{self.settings_sql}{self.acting_sql}{after_begin}", timeout
            )
            return self.begin_status
        if query == _COMMIT and self.before_commit:
            before_commit, self.before_commit = self.before_commit, ""
            return await self._execute_or_terminate(f"{before_commit}{query}", timeout)
        done: str = await super().execute(query, *args, timeout=timeout)
        if query == _COMMIT and done == _ROLLED_BACK:
            raise asyncpg.InFailedSQLTransactionError("a statement had failed before: nothing was committed")
        return done

    async def _execute_or_terminate(self, query: str, timeout: float | None) -> str:  # noqa: ASYNC109 - the driver's
        try:
            done: str = await super().execute(query, timeout=timeout)
        except BaseException:
            # The transaction may have failed, or act for nobody: the connection must not be used again.
            self.terminate()
            raise
        return done

    async def run_alone(self, query: str) -> str:
        """Send one statement without parameters, after the role and the tenant, as one message and one transaction."""
        done: str = await super().execute(f"{self.settings_sql}{self.acting_sql} {query}")
        return done


def prepare_connections(engine: AsyncEngine, role: str | None, settings_sql: str) -> None:
    """Find out whether each new connection may act as the role; let one that leaves the pool act for no tenant.

    A connection that has become useless is thrown away.
    """
    warned = False

    def detect_role(connection: Any, _record: object) -> None:
        nonlocal warned
        driver: TenantConnection = connection.driver_connection
        driver.settings_sql, driver.made_at = settings_sql, monotonic()
        driver.role, is_protected = connection.run_async(lambda made: role_status(made, role))
        if not is_protected and not warned:
            warned = True
            _log.warning("database.no_row_security", role=role, advice=ADVICE)

    def reset_tenant(connection: Any, _record: object, _proxy: object) -> None:
        connection.driver_connection.act_for(NO_TENANT)

    def discard_useless(context: ExceptionContext) -> None:
        made = context.connection
        driver = None if made is None or made.invalidated else made.connection.driver_connection
        error = context.original_exception
        if driver.is_useless_after(error) if isinstance(driver, TenantConnection) else has_lost_protocol(error):
            context.is_disconnect = True
            context.invalidate_pool_on_disconnect = False  # the other connections still work

    event.listen(engine.sync_engine, "handle_error", discard_useless)
    event.listen(engine.sync_engine, "connect", detect_role)
    event.listen(engine.sync_engine, "checkout", reset_tenant)


ADVICE: Final = "Run `throughline migrate` as the owner of the tables; docs/running.md says more."


async def role_status(connection: Any, role: str | None) -> tuple[str | None, bool]:
    """The role, if the connection may act as it; and whether Postgres then applies row-level security."""
    # In a transaction, since a pooler may send each statement to another server.
    async with connection.transaction():
        found = await connection.fetchrow(row_security.ROLE_STATUS, role)
    if role and found["may_act"]:
        return role, found["is_protected"]
    return None, found["is_protected_already"]


def act_for(connection: PoolProxiedConnection, tenant_id: UUID | str) -> None:
    """Have a connection that is about to begin a transaction act for a tenant."""
    driver = connection.driver_connection
    if isinstance(driver, TenantConnection):
        driver.act_for(tenant_id)
