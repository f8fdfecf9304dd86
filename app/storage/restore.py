"""Restores a backup into an empty database: all of it, or nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from app.storage import copying
from app.storage.archive import ArchiveReader, BackupError, Manifest, TableContent
from app.storage.backup import Progress
from app.storage.database import SESSION_SETTINGS
from app.storage.migrations import run_migrations
from app.storage.schema_fit import known_revisions

_OTHER_CONNECTIONS: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
"""
_PLAIN_INDEXES: Final = """
    SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
    LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid
    WHERE c.relname = ANY($1) AND k.oid IS NULL AND i.indpred IS NULL AND i.indexprs IS NULL
"""
"""Finds indexes of plain columns. PostgreSQL does not print an expression as it was given, so others are left out."""
_INDEX_MEMORY: Final = "256MB"
_DISCONNECT_SECONDS: Final = 2.0
_FILLED_WITHOUT_USE: Final = frozenset({"tenants"})
"""Tables that may have rows although the service was never used, since only looking at it makes them."""


def restore(database_url: str, archive: ArchiveReader, progress: Progress) -> None:
    """Load a verified backup into an empty database, and migrate it to the newest schema. Blocks.

    First the schema is made as it was in the backup. All rows are loaded in one transaction, which is committed only if
    the checksum of the messages is that of the backup. A database with the schema and no rows counts as empty.

    Raises:
        BackupError: The database is not empty or in use, or the backup is of a later version or does not fit.
        DependencyUnavailableError: The database is away.
    """
    manifest = archive.manifest
    _, known = known_revisions()
    if manifest.revision not in known:
        raise BackupError(
            f"The backup was made by a later version of Throughline ({manifest.throughline}, schema "
            f"{manifest.revision}): restore it with that version."
        )
    revision = asyncio.run(_revision_of_empty(database_url))
    if revision is not None and revision not in known:
        raise BackupError(
            f"The database has the schema of a later version of Throughline ({revision}): use that version."
        )
    if revision is not None:
        asyncio.run(_remove_empty_schema(database_url))
    run_migrations(database_url, manifest.revision)
    asyncio.run(_load(database_url, archive, progress))
    run_migrations(database_url)
    asyncio.run(_analyze_tables(database_url))


async def _revision_of_empty(database_url: str) -> str | None:
    """The revision of a database without rows.

    Raises:
        BackupError: The database has rows, or processes of the service are connected.
    """
    async with copying.driver_connection(database_url) as connection:
        await _check_alone(connection)
        full = [
            name
            for name in await copying.tables_of(connection)
            if name not in _FILLED_WITHOUT_USE and await copying.count_rows(connection, name)
        ]
        if full:
            raise BackupError(
                f"The database is not empty (there are rows in {', '.join(sorted(full))}), and a restore replaces "
                "nothing: name another with DATABASE_URL, or another folder with THROUGHLINE_DATA_DIR."
            )
        return await copying.revision_of(connection)


async def _check_alone(connection: Any) -> None:
    # A connection that was just closed needs a moment to disappear.
    deadline = time.monotonic() + _DISCONNECT_SECONDS
    while await connection.fetchval(_OTHER_CONNECTIONS, SESSION_SETTINGS["application_name"]):
        if time.monotonic() > deadline:
            raise BackupError("Processes of Throughline use the database: stop them, then restore.")
        await asyncio.sleep(0.05)


async def _remove_empty_schema(database_url: str) -> None:
    async with copying.driver_connection(database_url) as connection, connection.transaction():
        await copying.drop_tables(connection)


async def _load(database_url: str, archive: ArchiveReader, progress: Progress) -> None:
    manifest = archive.manifest
    total, done = sum(table.rows for table in manifest.tables), 0
    async with (
        copying.driver_connection(database_url) as connection,
        copying.copy_transaction(connection, isolation="read_committed"),
    ):
        await _check_shape(connection, manifest)
        indexes = await _drop_indexes_without_constraint(connection)
        for table in manifest.tables:

            def advance(rows: int, name: str = table.name) -> None:
                nonlocal done
                done += rows
                progress(name, done, total)

            await _load_table(connection, archive, table, advance)
        for definition in indexes:
            await connection.execute(definition)
        loaded = await copying.history_of(connection)
        if loaded != manifest.history:
            raise BackupError(
                f"The history in the database ({loaded.messages} messages, {loaded.sha256}) is not that of the backup "
                f"({manifest.history.messages} messages, {manifest.history.sha256}). Nothing was written."
            )


async def _check_shape(connection: Any, manifest: Manifest) -> None:
    # Names from the file are put into a statement only if the schema has the same names.
    for table in manifest.tables:
        if table.columns != await copying.columns_of(connection, table.name):
            raise BackupError(f"The backup does not fit its schema {manifest.revision}: table {table.name} is another.")
    if {table.name for table in manifest.tables} != set(await copying.tables_of(connection)):
        raise BackupError(f"The backup does not fit its schema {manifest.revision}: it has other tables.")


async def _drop_indexes_without_constraint(connection: Any) -> list[str]:
    # Building the indexes at once over all rows costs far less than row by row.
    await connection.execute(f"SET LOCAL maintenance_work_mem = '{_INDEX_MEMORY}'")
    found = await connection.fetch(_PLAIN_INDEXES, list(await copying.tables_of(connection)))
    for row in found:
        await connection.execute(f"DROP INDEX {row['name']}")
    return [row["definition"] for row in found]


async def _load_table(
    connection: Any, archive: ArchiveReader, table: TableContent, advance: Callable[[int], None]
) -> None:
    advance(0)

    async def source() -> AsyncIterator[bytes]:
        for chunk in archive.chunks(table):
            advance(chunk.count(b"\n"))
            yield chunk

    try:
        status = await connection.copy_to_table(table.name, source=source(), columns=list(table.columns), format="text")
    except copying.COPY_ERRORS as error:
        first = next(iter(str(error).splitlines()), "")
        raise BackupError(f"Table {table.name} cannot be loaded: {first}. Nothing was written.") from None
    if status != f"COPY {table.rows}":
        raise BackupError(f"Of {table.rows} rows of {table.name} the database took {status}. Nothing was written.")


async def _analyze_tables(database_url: str) -> None:
    # Collect the planner's figures now instead of when autovacuum runs.
    async with copying.driver_connection(database_url) as connection:
        for name in await copying.tables_of(connection):
            await connection.execute(f"ANALYZE {copying.quoted_name(name)}")
