"""One PostgreSQL server: make its data folder, start it, know when it answers, stop it."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import ClassVar

from app.devserver.binaries import major_version, postgres_of_major, postgres_programs
from app.devserver.errors import EmbeddedError
from app.devserver.privileges import Identity, choose_identity, take_ownership
from app.devserver.processes import EmbeddedServer, ServerProcess, StopSteps, die_with_parent, stop_orphan, wait_until

_STAMP = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ")
_SEVERITY = re.compile(r"FATAL|PANIC|ERROR:|error:")
_DATABASE = "throughline"
_USER = "app"
_PORT = "5432"
# For the API, the worker, sweepers and a few shells: each process keeps a pool of at most 20.
_MAX_CONNECTIONS = 100
# A start after a crash replays the log of at most a few checkpoints; a healthy one takes 0.05 s.
_START_SECONDS = 60.0
_PSQL_SECONDS = 30.0
# Backends of a killed server need a moment to notice; a new server is refused until then.
_REMNANT = "pre-existing shared memory block"
# Built-in locale: the same order of strings on every machine, since the first version of PostgreSQL that has it.
_BUILTIN_LOCALE_SINCE = 17
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Postgres(EmbeddedServer):
    """The server of one data folder, on a socket in one runtime folder."""

    name = "PostgreSQL"
    # Fast shutdown rolls back and writes a checkpoint; immediate skips the checkpoint.
    _stop_steps: ClassVar[StopSteps] = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 3.0))
    _forced_stop_steps: ClassVar[StopSteps] = ((signal.SIGQUIT, 2.0),)

    def __init__(self, data_dir: Path, runtime: Path, *, durable: bool, any_version: bool = False) -> None:
        """Prepare the server.

        Args:
            data_dir: The folder in which its own folder and its log are.
            runtime: The folder of its socket.
            durable: Whether it waits for the disk.
            any_version: Take the programs of the major version that made the data, where they are installed.
        """
        self._any_version = any_version
        self._data = data_dir / "postgres"
        self._log = data_dir / "postgres.log"
        self._runtime = runtime
        self._durable = durable

    @property
    def url(self) -> str:
        """The address in SQLAlchemy's form."""
        return f"postgresql+asyncpg://{_USER}@/{_DATABASE}?host={self._runtime}"

    def start(self) -> None:
        """Start, create what is missing, and return when a query is answered."""
        programs = self._programs_for_data()
        identity = choose_identity(programs / "postgres")
        is_new = not (self._data / "PG_VERSION").exists()
        if is_new:
            self._refuse_remains()
        stop_orphan(self._data / "postmaster.pid", marker=self._data, steps=self._stop_steps)
        if is_new:
            self._create_data_folder(programs, identity)
        take_ownership(self._data, identity)
        deadline = time.monotonic() + _START_SECONDS
        while not self._launch(programs, identity, deadline):
            time.sleep(0.1)
        self._create_database()

    def ready(self) -> bool:
        """Whether the server answers a query."""
        return self._answer_of_psql("SELECT 1") == "1"

    def _refuse_remains(self) -> None:
        if self._data.is_dir() and any(self._data.iterdir()):
            raise EmbeddedError(
                f"{self._data} is no whole database: there are files in it, but no PG_VERSION; nothing in it was "
                f"touched. Put back what is missing, or move the folder away and restore a backup."
            )

    def _create_data_folder(self, programs: Path, identity: Identity) -> None:
        # The folder is filled under a draft name and then renamed, so that a kill in between leaves nothing that looks
        # like a database.
        draft = self._data.with_name("postgres.draft")
        shutil.rmtree(draft, ignore_errors=True)
        argv = [*identity.prefix, str(programs / "initdb"), "-D", str(draft), "-U", _USER, "-A", "trust"]
        argv += ["--encoding=UTF8", *_locale_options(programs), *([] if self._durable else ["--no-sync"])]
        made = subprocess.run(argv, check=False, capture_output=True, text=True, env=_environment())  # noqa: S603
        if made.returncode != 0:
            raise EmbeddedError(
                f"PostgreSQL could not create {self._data}: {_reason_in_output(made.stderr or made.stdout)}"
            )
        draft.rename(self._data)

    def _programs_for_data(self) -> Path:
        usual, version = postgres_programs(), self._data / "PG_VERSION"
        stored, program = version.read_text().strip() if version.exists() else None, major_version(usual)
        if stored is None or stored == program:
            return usual
        fitting = postgres_of_major(stored)
        if self._any_version and fitting is not None:
            return fitting
        raise EmbeddedError(self._how_to_convert(stored, program, installed=fitting is not None))

    def _how_to_convert(self, stored: str, program: str, *, installed: bool) -> str:
        where = "" if installed else f" (install PostgreSQL {stored} first, or use the version that made the data)"
        old, new = self._data.parent, self._data.parent.with_name(f"{self._data.parent.name}-postgresql-{program}")
        file = shlex.quote(f"{new}.zip")
        return (
            f"{self._data} was made by PostgreSQL {stored}, found here is {program}; nothing in it was touched. "
            f"To convert it: THROUGHLINE_DATA_DIR={shlex.quote(str(old))} throughline backup {file}{where}; then "
            f"THROUGHLINE_DATA_DIR={shlex.quote(str(new))} throughline restore {file}; "
            f"from then on set THROUGHLINE_DATA_DIR to the new folder."
        )

    def _launch(self, programs: Path, identity: Identity, deadline: float) -> bool:
        """Start the process once; false if remnants of a killed server are still in the way."""
        argv = [str(programs / "postgres"), "-D", str(self._data), "-k", str(self._runtime), "-p", _PORT]
        for setting in self._server_settings():
            argv += ["-c", setting]
        command = [*identity.prefix, *die_with_parent(argv, "INT")]
        process = self._process = ServerProcess(command, log=self._log, env=_environment())
        wait_until(lambda: self.ready() or not process.alive(), max(0.0, deadline - time.monotonic()))
        if process.alive() and self.ready():
            return True
        output = process.output()
        self.stop(force=True)
        if _REMNANT in output and time.monotonic() < deadline:
            return False
        raise EmbeddedError(f"PostgreSQL did not start: {_reason_in_output(output)} (log: {self._log})")

    def _server_settings(self) -> list[str]:
        settings = ["listen_addresses=", "unix_socket_permissions=0700", f"max_connections={_MAX_CONNECTIONS}"]
        settings += ["timezone=UTC", "log_timezone=UTC", "logging_collector=off"]
        return settings + ([] if self._durable else list(_NOT_DURABLE))

    def _create_database(self) -> None:
        if self._answer_of_psql(f"SELECT 1 FROM pg_database WHERE datname = '{_DATABASE}'") == "1":  # noqa: S608
            return
        made = self._psql(f"CREATE DATABASE {_DATABASE}")
        if made.returncode != 0:
            reason = _reason_in_output(made.stderr)
            self.stop()
            raise EmbeddedError(f"PostgreSQL could not create its database: {reason} (log: {self._log})")

    def _answer_of_psql(self, statement: str) -> str | None:
        done = self._psql(statement)
        return done.stdout.strip() if done.returncode == 0 else None

    def _psql(self, statement: str) -> subprocess.CompletedProcess[str]:
        # Neither an event loop nor a driver is needed here.
        argv = [str(postgres_programs() / "psql"), "-h", str(self._runtime), "-p", _PORT, "-U", _USER]
        argv += ["-d", "postgres", "-XtAqc", statement]
        try:
            return subprocess.run(  # noqa: S603 - own argv
                argv, check=False, capture_output=True, text=True, env=_environment(), timeout=_PSQL_SECONDS
            )
        except subprocess.TimeoutExpired:
            late = f"error: no answer within {_PSQL_SECONDS:g} seconds"
            return subprocess.CompletedProcess(argv, returncode=1, stdout="", stderr=late)


def _environment() -> dict[str, str]:
    # No variable that could redirect the programs is passed on.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


def _locale_options(programs: Path) -> list[str]:
    if int(major_version(programs)) >= _BUILTIN_LOCALE_SINCE:
        return ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    return ["--locale=C"]


def _reason_in_output(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # The line with the reason is seldom the last one.
    error_lines = [line for line in lines if _SEVERITY.search(line)]
    reason = _STAMP.sub("", (error_lines or lines or ["it said nothing"])[-1])
    full = ". Free some space, or set THROUGHLINE_DATA_DIR to a folder on another disk"
    return f"{reason}{full if os.strerror(errno.ENOSPC) in reason else ''}"
