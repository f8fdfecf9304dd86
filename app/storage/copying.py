"""The SQL of backups and restores: the order of the tables, one snapshot of all, and a checksum of the messages."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

from app.storage.archive import BackupError, History
from app.storage.database import make_patient_engine
from app.storage.database_errors import translated

SELECT_REVISION: Final = "SELECT version_num FROM alembic_version"
_SCHEMA: Final = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
"""The SQL of the id (oid) of the schema in use."""
_HAS_SCHEMA: Final = f"SELECT 1 FROM pg_class WHERE relname = 'alembic_version' AND relnamespace = {_SCHEMA}"  # noqa: S608
_OF_SERVICE_TABLES: Final = f"""
    FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] AND a.attname = 'tenant_id'
    WHERE c.relkind = 'r' AND c.relnamespace = {_SCHEMA}
"""
"""Selects the service's tables: those whose primary key begins with the tenant."""
# The content of an unlogged table (works) is useless after its processes have ended.
_TABLES: Final = f"SELECT c.relname::text {_OF_SERVICE_TABLES} AND c.relpersistence = 'p' ORDER BY 1"
_TABLES_AND_FUNCTIONS: Final = f"""
    SELECT 'TABLE ' || c.oid::regclass {_OF_SERVICE_TABLES}
    UNION SELECT 'FUNCTION ' || tgfoid::regprocedure FROM pg_trigger
    WHERE NOT tgisinternal AND tgrelid IN (SELECT c.oid {_OF_SERVICE_TABLES})
    UNION SELECT 'TABLE alembic_version'
"""  # noqa: S608 - the same
_FOREIGN_KEYS: Final = f"""
    SELECT DISTINCT parent.relname::text AS parent, child.relname::text AS child FROM pg_constraint k
    JOIN pg_class parent ON parent.oid = k.confrelid JOIN pg_class child ON child.oid = k.conrelid
    WHERE k.contype = 'f' AND k.confrelid <> k.conrelid AND child.relnamespace = {_SCHEMA}
"""  # noqa: S608 - the same
_COLUMNS: Final = f"""
    SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relname = $1 AND c.relnamespace = {_SCHEMA} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum
"""  # noqa: S608 - the same
# With these settings each row has the same text on every server, the time limits of the role do not apply, and a role
# that row security would restrict gets an error instead of only some rows.
_SETTINGS: Final = """
    SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres';
    SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1;
    SET LOCAL row_security = off;
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '10s'
"""
_MESSAGES: Final = """
    SELECT tenant_id, conversation_id, seq, id, role, content, parts FROM messages
    ORDER BY tenant_id, conversation_id, seq
"""


_POSTGRES_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, SQLAlchemyError)


@asynccontextmanager
async def driver_connection(database_url: str) -> AsyncIterator[Any]:
    """A connection of the driver (asyncpg), since SQLAlchemy has no COPY.

    Raises:
        DependencyUnavailableError: The database is away, or a table stayed locked for ten seconds.
    """
    engine = make_patient_engine(database_url)
    try:
        with translated():
            connection = await engine.connect()
        try:
            yield (await connection.get_raw_connection()).driver_connection
        except _POSTGRES_ERRORS:  # an OSError comes from the file
            with translated():
                raise
        finally:
            await connection.invalidate()
            await connection.close()
    finally:
        await engine.dispose()


@asynccontextmanager
async def copy_transaction(connection: Any, *, isolation: str, readonly: bool = False) -> AsyncIterator[None]:
    """A transaction for COPY, with settings that make a row's text the same on every server.

    Raises ``BackupError`` if the role does not own the tables.
    """
    async with connection.transaction(isolation=isolation, readonly=readonly):
        await connection.execute(_SETTINGS)
        try:
            yield
        except asyncpg.InsufficientPrivilegeError as error:
            raise BackupError(f"This needs the owner of the tables, as `throughline migrate` does: {error}.") from None


async def revision_of(connection: Any) -> str | None:
    """The revision of the service's schema; ``None`` if the database does not have it."""
    if await connection.fetchval(_HAS_SCHEMA) is None:
        return None
    found: str | None = await connection.fetchval(SELECT_REVISION)
    return found


async def tables_of(connection: Any) -> tuple[str, ...]:
    """The names of the tables to back up, each after the tables that it refers to."""
    remaining = [row[0] for row in await connection.fetch(_TABLES)]
    pairs = [(row["parent"], row["child"]) for row in await connection.fetch(_FOREIGN_KEYS)]
    ordered: list[str] = []
    while remaining:
        ready = [name for name in remaining if all(parent in ordered for parent, child in pairs if child == name)]
        if not ready:
            raise BackupError(f"Tables refer to each other in a circle: {', '.join(remaining)}.")
        ordered += ready
        remaining = [name for name in remaining if name not in ready]
    return tuple(ordered)


async def drop_tables(connection: Any) -> None:
    """Drop the service's tables and the functions of their triggers, as before the first migration."""
    for (name,) in await connection.fetch(_TABLES_AND_FUNCTIONS):
        await connection.execute(f"DROP {name} CASCADE")


async def columns_of(connection: Any, table: str) -> tuple[str, ...]:
    """The columns of a table, in order."""
    return tuple(row[0] for row in await connection.fetch(_COLUMNS, table))


async def count_rows(connection: Any, table: str) -> int:
    """The number of a table's rows."""
    found: int = await connection.fetchval(f"SELECT count(*) FROM {quoted_name(table)}")  # noqa: S608 - of the catalogue
    return found


async def history_of(connection: Any) -> History:
    """The numbers of conversations and messages, and a checksum of all messages.

    The messages are read in the order of their index, since sorting would write all of them to the disk once more.
    """
    await connection.execute("SET LOCAL enable_sort = off")
    digest, messages = hashlib.sha256(), 0

    async def hash_and_count(data: bytes) -> None:
        nonlocal messages
        digest.update(data)
        messages += data.count(b"\n")

    await connection.copy_from_query(_MESSAGES, output=hash_and_count, format="text")
    conversations = await count_rows(connection, "conversations")
    return History(conversations=conversations, messages=messages, sha256=digest.hexdigest())


def quoted_name(name: str) -> str:
    """The name of a table as it is written in a statement."""
    return '"' + name.replace('"', '""') + '"'


COPY_ERRORS: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.SyntaxOrAccessError,
    asyncpg.DiskFullError,
)
"""What PostgreSQL raises for rows that do not fit into their table or onto the disk."""
