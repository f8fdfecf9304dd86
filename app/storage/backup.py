"""A backup of a whole database while it is in use: every table as it was at one moment, in one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO, Any, Final

from app.storage import copying
from app.storage.archive import ArchiveWriter, BackupError, Manifest, TableContent

ISOLATION: Final = "repeatable_read"
"""The isolation that shows all tables at one moment: every statement of the transaction sees what its first one saw."""

Progress = Callable[[str, int, int], None]
"""A function that is called with a table's name, the number of rows that are done, and the number of all rows."""


async def back_up(database_url: str, target: IO[bytes], *, program: str, progress: Progress) -> Manifest:
    """Write the rows of every table, as they are at one moment, into a new archive.

    Only a migration has to wait for it: it holds the lock that every reader holds, on all tables at once.

    The schema may be of any revision that has messages; ``target`` is an empty file that can be read and written at any
    position.

    Raises:
        BackupError: The database is not one of this service.
        DependencyUnavailableError: The database is away, or is being migrated.
        OSError: The file cannot be written.
    """
    async with copying.driver_connection(database_url) as connection:
        names = await copying.tables_of(connection)
        if await copying.revision_of(connection) is None or "messages" not in names:
            raise BackupError("There is nothing to back up: the database has no tables of Throughline.")
        async with copying.copy_transaction(connection, isolation=ISOLATION, readonly=True):
            # Lock before the first read: a table that is rewritten after that read would seem empty.
            await connection.execute(f"LOCK TABLE alembic_version, {_quoted_list(names)} IN ACCESS SHARE MODE")
            if names != await copying.tables_of(connection):
                raise BackupError("The schema changed while the backup began: begin it again.")
            with ArchiveWriter(target) as archive:
                return await _write_tables(connection, names, archive, program, progress)


async def _write_tables(
    connection: Any, names: Sequence[str], archive: ArchiveWriter, program: str, progress: Progress
) -> Manifest:
    counts = {name: await copying.count_rows(connection, name) for name in names}
    total, done = sum(counts.values()), 0
    tables = []
    for name in names:

        def advance(rows: int, name: str = name) -> None:
            nonlocal done
            done += rows
            progress(name, done, total)

        tables.append(await _copy(connection, name, archive, advance))
    manifest = Manifest(
        throughline=program,
        revision=await connection.fetchval(copying.SELECT_REVISION),
        postgres=await connection.fetchval("SHOW server_version"),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tables=tuple(tables),
        history=await copying.history_of(connection),
    )
    archive.finish(manifest)
    return manifest


async def _copy(connection: Any, name: str, archive: ArchiveWriter, advance: Callable[[int], None]) -> TableContent:
    columns = await copying.columns_of(connection, name)
    advance(0)
    with archive.table(name, advance) as text:
        query = f"SELECT {_quoted_list(columns)} FROM {copying.quoted_name(name)}"  # noqa: S608 - names of the catalogue
        await connection.copy_from_query(query, output=text.write, format="text")
        return text.content(name, columns)


def _quoted_list(names: Sequence[str]) -> str:
    return ", ".join(map(copying.quoted_name, names))
