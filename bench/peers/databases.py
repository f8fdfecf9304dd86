"""A database for each peer, on one server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
from sqlalchemy.engine import make_url

from tests.servers import with_database

Result = TypeVar("Result")


class Database:
    """A new, empty database."""

    def __init__(self, server_url: str, name: str) -> None:
        self._server = _plain(server_url)
        self.name = name
        self.url = with_database(server_url, name)
        self._run(self._server, lambda connection: connection.execute(f'CREATE DATABASE "{name}"'))

    def size(self) -> int:
        """Bytes of the files of its tables and indexes."""
        found = self.run(lambda connection: connection.fetchval("SELECT pg_database_size(current_database())"))
        return int(found)

    def settle(self) -> None:
        """Do now what the database does by itself after a while."""
        self.run(lambda connection: connection.execute("VACUUM ANALYZE"))

    def run(self, work: Callable[[Any], Awaitable[Result]]) -> Result:
        """Do the work with a separate connection; return its result."""
        return self._run(_plain(self.url), work)

    @staticmethod
    def _run(address: str, work: Callable[[Any], Awaitable[Result]]) -> Result:
        async def connected() -> Result:
            connection = await asyncpg.connect(address)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(connected())


def _plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
