"""``throughline backup`` and ``throughline restore FILE``: write the whole database into one file, and load it again.

They work on the database itself, as ``migrate`` and ``keys`` do: that of ``DATABASE_URL``, or the embedded one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import TimeElapsedColumn

from app.cli.atomic_files import atomic_file, is_special_file
from app.cli.complaints import ComplaintError, errors_as_one_line
from app.cli.connecting import AsJson, Key, Url
from app.cli.databases import database, settings_of_command
from app.cli.inspect import restore_state
from app.cli.screen import Screen, progress_on_stderr
from app.cli.terminal_language import terminal_catalogue, text_of
from app.core.model.errors import DomainError
from app.core.text.patterns import compiled
from app.devserver import EmbeddedServers, running_at
from app.devserver.preflight import check_database
from app.settings import Settings
from app.storage.archive import ArchiveReader, BackupError, Manifest
from app.storage.backup import back_up
from app.storage.restore import restore
from app.version import VERSION

Report = Callable[[str, int, int], None]

_OWNER_ONLY: Final = 0o600
_CONVERSATION_ID: Final = compiled(r"last|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as throughline-2026-11-22.zip.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole database, as it is at one moment, into one file; the service may run."""
    with errors_as_one_line(), _backup_errors_as_complaints(file):
        _check_target(file, force=force)
        with _existing_database(settings_of_command()) as url, _reported_progress("backup") as report:
            manifest = _write_backup(url, file, report)
        size = file.stat().st_size
        if as_json:
            Screen().json({"file": str(file), "bytes": size, **manifest.model_dump(mode="json")})
            return
        screen = Screen(terminal_catalogue())
        screen.line(f"{_counts_in_words(manifest)} in {file} ({size:,} bytes, schema {manifest.revision}).")
        screen.line(f"SHA-256 of the history: {manifest.history.sha256}")
        screen.line("It holds every text as it was said, and hashes of API keys: keep it as safe as the database.")


def restore_command(
    source: Annotated[str, typer.Argument(help="A backup's file; or, before a version, a conversation's id.")],
    version: Annotated[
        int | None,
        typer.Argument(min=0, help="Of the conversation's state; 0: as before the first compaction."),
    ] = None,
    url: Url = None,
    key: Key = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="Read the file and verify it; write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load a backup (FILE) into an empty database; or take a conversation back to an earlier state (ID VERSION)."""
    if version is not None and not check:
        restore_state(source, version, url, key)
        return
    with errors_as_one_line():
        file = Path(source)
        _check_source(file, has_version=version is not None, url=url)
        with _backup_errors_as_complaints(file), contextlib.closing(ArchiveReader(file)) as archive:
            with _reported_progress("check") as report:
                _verify(archive, report)
            place = None if check else _restore_into_database(settings_of_command(), archive)
            _print_outcome(archive.manifest, file, place, as_json=as_json)


def _write_backup(url: str, file: Path, report: Report) -> Manifest:
    try:
        with atomic_file(file, _OWNER_ONLY) as target:
            return asyncio.run(back_up(url, target, program=VERSION, progress=report))
    except OSError as error:
        raise BackupError(text_of("complaint.cannot_write", file=str(file), why=str(error.strerror or error))) from None


def _check_target(file: Path, *, force: bool) -> None:
    if file.is_dir():
        raise ComplaintError(f"{file} is a folder: name a file in it, such as {file / 'throughline.zip'}.")
    if is_special_file(file):
        raise ComplaintError(f"{file} is a device, a pipe or a socket: name a file, which can be copied afterwards.")
    if file.exists() and not force:
        raise ComplaintError(f"{file} is there already: choose another name, or --force replaces it.")


def _check_source(file: Path, *, has_version: bool, url: str | None) -> None:
    if has_version:
        raise ComplaintError("--check is for the file of a backup: leave out the version.")
    if _CONVERSATION_ID.fullmatch(str(file)) and not file.exists():
        raise ComplaintError(text_of("complaint.which_version", id=str(file)))
    if url is not None:
        raise ComplaintError(
            "A backup is restored into the database itself, that of DATABASE_URL or the embedded one: leave out --url."
        )


def _verify(archive: ArchiveReader, report: Report) -> None:
    total, done = sum(table.rows for table in archive.manifest.tables), 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        report("", done, total)

    archive.verify(advance)


def _restore_into_database(settings: Settings, archive: ArchiveReader) -> str:
    with _exclusive_database(settings) as url, _reported_progress("restore") as report:
        restore(url, archive, report)
    return "the database of DATABASE_URL" if settings.database_url else str(settings.data_dir.absolute())


def _print_outcome(manifest: Manifest, file: Path, place: str | None, *, as_json: bool) -> None:
    if as_json:
        Screen().json({"file": str(file), "restored_into": place, **manifest.model_dump(mode="json")})
        return
    screen = Screen(terminal_catalogue())
    made = f"made at {manifest.made_at} by version {manifest.throughline}, schema {manifest.revision}"
    if place is None:
        screen.line(f"{file} is whole: {_counts_in_words(manifest)}, {made}.")
        screen.line(f"SHA-256 of the history: {manifest.history.sha256}")
    else:
        screen.line(f"{_counts_in_words(manifest)} restored into {place} from {file}, {made}.")
        screen.line(f"SHA-256 of the history, in the database as in the backup: {manifest.history.sha256}")


def _counts_in_words(manifest: Manifest) -> str:
    history, rows = manifest.history, sum(table.rows for table in manifest.tables)
    messages = f"{history.messages:,} message{'s' * (history.messages != 1)}"
    return (
        f"{history.conversations:,} conversation{'s' * (history.conversations != 1)}, {messages}, {rows:,} rows in all"
    )


@contextmanager
def _existing_database(settings: Settings) -> Iterator[str]:
    if not settings.database_url and not (settings.data_dir / "postgres").is_dir():
        raise ComplaintError(text_of("complaint.no_folder", folder=str(settings.data_dir.absolute())))
    with database(settings, any_version=True) as url:
        yield url


@contextmanager
def _exclusive_database(settings: Settings) -> Iterator[str]:
    """The address of the database, which no other process of the service uses. A missing embedded database is made."""
    if settings.database_url:
        check_database(settings.database_url)
        yield settings.database_url
        return
    if owner := running_at(settings.data_dir):
        raise ComplaintError(f"Throughline runs over {settings.data_dir.absolute()} ({owner}): stop it, then restore.")
    servers = EmbeddedServers(settings.data_dir, valkey=False)
    endpoints = servers.start(attach=False)
    try:
        yield endpoints.database_url
    finally:
        servers.stop()


@contextmanager
def _backup_errors_as_complaints(file: Path) -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise ComplaintError(str(error)) from None
    except DomainError as error:
        raise ComplaintError(f"{file}: {error.detail}") from None


@contextmanager
def _reported_progress(what: str) -> Iterator[Report]:
    with progress_on_stderr(TimeElapsedColumn()) as progress:
        task = progress.add_task(what, total=None)

        def report(table: str, done: int, total: int) -> None:
            progress.update(task, description=f"{what} {table}".strip(), completed=done, total=total)

        yield report
