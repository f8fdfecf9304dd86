"""Engines of tests: all engines of a process share the statements that SQLAlchemy compiled, as in a service.

Each module, and each service within a process, has an engine of its own; to compile the same few hundred statements for
each of them took a fifteenth of the suite.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest import mock

from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from app.storage import database


def share_compiled_statements() -> None:
    """Share compiled statements from now on; the dialect keeps them, so all dialects of one class count as the same."""
    cache: dict[Any, Any] = {}
    mock.patch.object(PGDialect_asyncpg, "__eq__", lambda self, other: type(self) is type(other)).start()
    mock.patch.object(PGDialect_asyncpg, "__hash__", lambda self: hash(type(self))).start()
    shared = partial(create_async_engine, execution_options={"compiled_cache": cache})
    mock.patch.object(database, "create_async_engine", shared).start()
