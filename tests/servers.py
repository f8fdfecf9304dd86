"""Helpers of the tests that use real servers: ports, statements, migrations, addresses."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.storage.tables import TenantScoped

Result = TypeVar("Result")

ROOT = Path(__file__).resolve().parent.parent


_PORTS = range(20_000, 32_000)
"""Ports below those that the kernel gives to clients and to servers that ask for any, so that nobody takes one."""
_OFFERED = itertools.count(os.getpid() * 101)


def unused_port() -> int:
    """A port on which nothing listens, and which other processes of tests are unlikely to be offered soon."""
    for number in itertools.islice(_OFFERED, len(_PORTS)):
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port is in use")


def migrate(database_url: str, revision: str = "head") -> None:
    """Run the real migrations as a process, as they run in production."""
    argv = [sys.executable, "-m", "alembic", "upgrade", revision]
    env = {**os.environ, "DATABASE_URL": database_url}
    done = subprocess.run(argv, cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def execute_sql(database_url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows of one statement outside any transaction, in a thread: a test may have a running loop."""

    async def run() -> list[tuple[Any, ...]]:
        engine = create_async_engine(database_url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            result = await connection.execute(text(statement))
            found = [tuple(row) for row in result] if result.returns_rows else []
        await engine.dispose()
        return found

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()


def as_owner(engine: AsyncEngine) -> AsyncEngine:
    """Let connections that are used without a session see every row; sessions say for whom they act."""

    def take(connection: Any, _record: object, _proxy: object) -> None:
        connection.driver_connection.acting_sql = ""

    event.listen(engine.sync_engine, "checkout", take)
    return engine


class SharedDatabase:
    """A database that tests use one after the other, with a connection of its own that empties it between them."""

    def __init__(self, url: str) -> None:
        self.url = url
        tables = reversed(TenantScoped.metadata.sorted_tables)  # rows that refer to others first
        self._statement = "; ".join(str(table.delete()) for table in tables)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="database", daemon=True)
        self._thread.start()
        self._connection = self._wait(self._connect())

    def empty(self) -> None:
        """Delete every row."""
        self._wait(self._connection.execute(self._statement))

    def close(self) -> None:
        """Close the connection."""
        self._wait(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _connect(self) -> asyncpg.Connection:
        address = make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
        # If a transaction was left open, an error names it, instead of making every later test wait.
        return await asyncpg.connect(address, server_settings={"lock_timeout": "10s"})

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


def redis_database(url: str, number: int) -> str:
    """Point a Redis address at another logical database."""
    parsed = make_url(url)
    if parsed.drivername == "unix":
        return url.partition("?")[0] + f"?db={number}"
    return parsed.set(database=str(number)).render_as_string(hide_password=False)


def with_database(url: str, name: str) -> str:
    parsed: URL = make_url(url).set(drivername="postgresql+asyncpg", database=name)
    return parsed.render_as_string(hide_password=False)


def with_role(url: str, role: str) -> str:
    """The address for a service that acts as another role."""
    return make_url(url).update_query_dict({"role": role}).render_as_string(hide_password=False)


def with_user(url: str, name: str) -> str:
    """The address for another user of the server, who needs no password."""
    return make_url(url).set(username=name).render_as_string(hide_password=False)
