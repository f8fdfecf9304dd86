"""``throughline run`` and ``throughline migrate``: what starts the service, and what readies its database."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from io import TextIOBase
from threading import Lock
from typing import IO, Annotated, cast

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.cli.complaints import complain, errors_as_one_line
from app.cli.databases import database, settings_of_command
from app.cli.screen import replace_unprintable
from app.cli.terminal_language import text_of
from app.core.model.model_io import OFFLINE
from app.devserver.configured import address, read_settings, suspicious_variables
from app.devserver.preflight import migrate as run_migrations
from app.devserver.run import Service
from app.settings import Settings
from app.storage.database import is_protected


def run() -> None:
    """Start PostgreSQL, Valkey, the API and the worker, and keep them until Ctrl-C.

    Settings are read from the environment, and from .env or throughline.yaml in this folder: PORT=8001 listens on
    another port, GOOGLE_API_KEY=... answers with Gemini. All are in docs/running.md.
    """
    replace_unprintable()
    console = Console(highlight=False)
    with errors_as_one_line():
        settings = read_settings()
        for line in suspicious_variables():
            complain(line)
        service = Service(settings, emit=_Printer(sys.stdout))
        service.run(lambda: _announce(console, settings), lambda: console.print("Stopping…"))
        console.print("Stopped." if settings.database_url else f"Stopped. The data stays in {_data_folder(settings)}.")


def migrate(revision: Annotated[str, typer.Argument(help="How far to go.")] = "head") -> None:
    """Bring the database of DATABASE_URL, or the embedded one, to the newest schema."""
    with errors_as_one_line():
        with database(settings_of_command()) as url:
            _migrate(url, revision)
        typer.echo("The database is up to date.")


def _migrate(database_url: str, revision: str) -> None:
    run_migrations(database_url, revision)
    if revision == "head" and not asyncio.run(is_protected(database_url)):
        typer.echo(text_of("doctor.no_row_security"), err=True)


class _LenientOutput(TextIOBase):
    """An output that leaves out what cannot be written.

    The service goes on when the disk of its log is full, or when the reader of its output has left.
    """

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Write the text if that is possible."""
        with suppress(OSError):
            self._output.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the output if that is possible."""
        with suppress(OSError):
            self._output.flush()

    def isatty(self) -> bool:
        """Whether the output is a terminal."""
        return self._output.isatty()


class _Printer:
    """Writes lines of several children, each under its name, without mixing them."""

    def __init__(self, output: IO[str]) -> None:
        self._console = Console(file=cast("IO[str]", _LenientOutput(output)), highlight=False)
        self._lock = Lock()

    def __call__(self, name: str, line: str) -> None:
        if not line.strip():
            return
        with self._lock:
            self._console.print(Text.assemble((f"{name:<7}", "dim"), Text.from_ansi(line)), soft_wrap=True)


def _announce(console: Console, settings: Settings) -> None:
    """Say where the service is, what it uses, and how it ends."""
    table = Table.grid(padding=(0, 2))
    for name, value in _startup_facts(settings):
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    if console.is_terminal:
        console.print(Panel(table, title="Throughline is running", subtitle="Ctrl-C stops everything", expand=False))
    else:
        lines = [f"  {name:<9} {value}" for name, value in _startup_facts(settings)]
        console.print(
            "\n".join(["Throughline is running.", *lines, "Ctrl-C stops everything."]), soft_wrap=True, markup=False
        )


def _startup_facts(settings: Settings) -> list[tuple[str, str]]:
    url = address(settings)
    chat, compaction = settings.resolved_chat_model, settings.resolved_compaction_model
    facts = [
        ("address", url),
        ("page", f"{url}/ui/"),
        ("docs", f"{url}/docs"),
        ("data", "the database of DATABASE_URL" if settings.database_url else _data_folder(settings)),
        ("models", chat if chat == compaction else f"{chat} (chat), {compaction} (compaction)"),
    ]
    if chat == OFFLINE:
        facts.append(("", "offline needs no key; for Gemini set GOOGLE_API_KEY and start again"))
    elif compaction == OFFLINE:
        facts.append(("", f"offline quotes; for summaries set THROUGHLINE_COMPACTION_MODEL={chat} and start again"))
    return facts


def _data_folder(settings: Settings) -> str:
    return str(settings.data_dir.absolute())
