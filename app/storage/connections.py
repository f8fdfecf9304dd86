"""A database connection that sends ``BEGIN`` with the role and the tenant it acts for, in one round trip."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy import PoolProxiedConnection, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage import row_security
from app.storage.database_errors import is_of_no_use

NOBODY: Final = ""
"""The tenant of a transaction that no session has begun: it sees no row."""
_BEGINS: Final = "BEGIN"
_COMMITS: Final = "COMMIT;"
_ROLLED_BACK: Final = "ROLLBACK"
"""What the server says to a ``COMMIT`` after a statement that failed: no error."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TenantConnection(asyncpg.Connection):  # type: ignore[misc]  # it comes without types
    """A connection of one pool. What ``BEGIN`` sets ends with the transaction, so a pooler between loses nothing."""

    limits = ""
    """Settings of every transaction that the server does not know from the connection's start."""
    role: str | None = None
    """Whoever acts, when it is not the user that signed in."""
    opening = ""
    """What goes out with the next ``BEGIN``."""
    first = ""
    """A statement that goes out with it too."""
    last = ""
    """Statements that go out with the next ``COMMIT``."""
    told = ""
    """What the server said of the last statement that went out with a ``BEGIN``."""

    def act_for(self, tenant_id: UUID | str) -> None:
        """Set the tenant for all transactions of a connection, until it goes back into the pool."""
        self.opening = row_security.opening(self.role, tenant_id)
        self.first = self.last = ""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - the driver's
        """A driver's transaction begins and ends here."""
        if query.startswith(_BEGINS):
            first, self.first = self.first, ""
            self.told = await self._execute_or_terminate(f"{query}{self.limits}{self.opening}{first}", timeout)
            return self.told
        if query == _COMMITS and self.last:
            last, self.last = self.last, ""
            return await self._execute_or_terminate(f"{last}{query}", timeout)
        done: str = await super().execute(query, *args, timeout=timeout)
        if query == _COMMITS and done == _ROLLED_BACK:
            raise asyncpg.InFailedSQLTransactionError("a statement had failed before: nothing was committed")
        return done

    async def _execute_or_terminate(self, query: str, timeout: float | None) -> str:  # noqa: ASYNC109 - the driver's
        try:
            done: str = await super().execute(query, timeout=timeout)
        except BaseException:
            # It may stand in a transaction that is begun for nobody, or failed: no one must get it after us.
            self.terminate()
            raise
        return done

    async def run_alone(self, query: str) -> str:
        """One statement without parameters, with whom and for whom before it: one message, and one transaction."""
        done: str = await super().execute(f"{self.limits}{self.opening} {query}")
        return done


def listen(engine: AsyncEngine, role: str | None, limits: str) -> None:
    """Have each new connection find out whether it may act as the role, and each one that is taken act for nobody.

    One that is of no use any more is thrown away.
    """
    warned = False

    def look(connection: Any, _record: object) -> None:
        nonlocal warned
        driver: TenantConnection = connection.driver_connection
        driver.limits = limits
        driver.role, is_protected = connection.run_async(lambda made: standing(made, role))
        if not is_protected and not warned:
            warned = True
            _log.warning("database.no_row_security", role=role, advice=ADVICE)

    def take(connection: Any, _record: object, _proxy: object) -> None:
        connection.driver_connection.act_for(NOBODY)

    def drop(context: ExceptionContext) -> None:
        if is_of_no_use(context.original_exception):
            context.is_disconnect = True
            context.invalidate_pool_on_disconnect = False  # the others are well

    event.listen(engine.sync_engine, "handle_error", drop)
    event.listen(engine.sync_engine, "connect", look)
    event.listen(engine.sync_engine, "checkout", take)


ADVICE: Final = "Run `throughline migrate` as the owner of the tables; docs/running.md says more."


async def standing(connection: Any, role: str | None) -> tuple[str | None, bool]:
    """The role if it can be acted as, and whether Postgres then looks at tenants."""
    # A transaction, for a pooler may give each statement another server.
    async with connection.transaction():
        found = await connection.fetchrow(row_security.STANDING, role)
    if role and found["may_act"]:
        return role, found["is_protected"]
    return None, found["is_protected_already"]


def act_for(connection: PoolProxiedConnection, tenant_id: UUID | str) -> None:
    """Have a connection that is about to begin a transaction act for a tenant."""
    driver = connection.driver_connection
    if isinstance(driver, TenantConnection):
        driver.act_for(tenant_id)
