"""Both servers of one data folder: owned by one process, shared with others."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from app.devserver.errors import AlreadyRunningError, EmbeddedError
from app.devserver.lock import DataDirLock, Note, running_at
from app.devserver.postgres import Postgres
from app.devserver.valkey import Valkey

_RUNTIME_PREFIX = "throughline-"
# The path of a socket may have 107 bytes (103 on macOS); the longest name below the folder has 22.
_MAX_RUNTIME_PATH_LENGTH = 80
# Characters that need no quoting in any of the URLs.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]+")
# How long a second process waits for the owner, which may be creating the database.
_ATTACH_SECONDS = 60.0
# Another process that checks the lock holds it for an instant.
_LOCK_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The addresses of the servers. The address of a server that was not requested does not answer."""

    database_url: str
    redis_url: str


def prepare_data_dir(folder: Path) -> None:
    """Make the data folder if it does not exist. Raises ``EmbeddedError`` if it cannot be written to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EmbeddedError(
            f"Cannot write to the data folder {folder} ({error.strerror}): "
            "set THROUGHLINE_DATA_DIR to a folder you can write to."
        ) from error


class EmbeddedServers:
    """Start and stop PostgreSQL and Valkey over one data folder.

    The process that comes first owns the servers; while it lives, later ones attach to them, and their ``stop`` leaves
    them running. A command that owns them ends after the commands that attached to them; ``throughline run`` ends when
    it is asked to. Everything recovers by itself from a kill of any or all processes. Start from the main thread: the
    servers end with the thread that started them.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        postgres: bool = True,
        valkey: bool = True,
        durable: bool = True,
        any_version: bool = False,
        outstays_guests: bool = False,
    ) -> None:
        """Prepare the servers.

        Args:
            data_dir: The folder with all their data.
            postgres: Whether PostgreSQL is wanted.
            valkey: Whether Valkey is wanted.
            durable: Whether PostgreSQL waits for the disk.
            any_version: Whether data of another major version of PostgreSQL may be read, by its own programs.
            outstays_guests: Whether ``stop`` waits for the processes that have attached.
        """
        self._outstays_guests = outstays_guests
        self._any_version = any_version
        self._data_dir = data_dir.absolute()
        self._wanted = (postgres, valkey)
        self._durable = durable
        self._lock = DataDirLock(self._data_dir)
        self._runtime: Path | None = None
        self._servers: list[Postgres | Valkey] = []

    def __enter__(self) -> Endpoints:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, attach: bool = True) -> Endpoints:
        """Start the servers, or attach to those that another process runs over the same data.

        Raises:
            AlreadyRunningError: another process owns them, and ``attach`` is false.
            EmbeddedError: they cannot run, with one line that says what to do.
        """
        prepare_data_dir(self._data_dir)
        with _unusable_files_in_one_line(self._data_dir):
            return self._started(attach=attach)

    def _started(self, *, attach: bool) -> Endpoints:
        deadline = time.monotonic() + (_ATTACH_SECONDS if attach else _LOCK_SECONDS)
        while time.monotonic() < deadline:
            if self._lock.acquire():
                return self._start_own()
            if attach and (endpoints := self._running_servers()) and self._lock.join_as_guest():
                return endpoints
            time.sleep(0.05)
        raise AlreadyRunningError(f"Throughline already runs over {self._data_dir}: {running_at(self._data_dir)}.")

    def announce(self, address: str) -> None:
        """Tell processes that find the data folder taken at which address this process serves."""
        if self._runtime is not None:
            self._lock.write(Note(pid=os.getpid(), runtime=str(self._runtime), address=address))

    def revive(self) -> list[str]:
        """Start servers again that have died, and return their names."""
        dead = [server for server in self._servers if not server.alive()]
        for server in dead:
            server.start()
        return [server.name for server in dead]

    def stop(self, *, force: bool = False) -> None:
        """Stop what this process started."""
        try:
            if self._servers and self._outstays_guests and not (force or self._lock.close_to_guests(waits=False)):
                sys.stderr.write("Another command uses the database that this one started: waiting for it to end.\n")
                self._lock.close_to_guests(waits=True)
        finally:
            self._stop_own(force=force)

    def _stop_own(self, *, force: bool) -> None:
        for server in reversed(self._servers):
            server.stop(force=force)
        self._servers = []
        if self._runtime is not None:
            shutil.rmtree(self._runtime, ignore_errors=True)
            self._runtime = None
            self._lock.clear()
        self._lock.release()

    def _start_own(self) -> Endpoints:
        try:
            self._remove_remnant_of_killed()
            self._runtime = _make_socket_folder()
            servers = self._build(self._runtime)
            for server in self._wanted_servers(servers):
                self._servers.append(server)
                server.start()
            self._lock.write(Note(pid=os.getpid(), runtime=str(self._runtime)))
        except BaseException:
            self.stop(force=True)
            raise
        return Endpoints(database_url=servers[0].url, redis_url=servers[1].url)

    def _running_servers(self) -> Endpoints | None:
        note = self._lock.read()
        if note is None:
            return None
        servers = self._build(Path(note.runtime))
        if not all(server.ready() for server in self._wanted_servers(servers)):
            return None
        return Endpoints(database_url=servers[0].url, redis_url=servers[1].url)

    def _build(self, runtime: Path) -> tuple[Postgres, Valkey]:
        postgres = Postgres(self._data_dir, runtime, durable=self._durable, any_version=self._any_version)
        return postgres, Valkey(self._data_dir, runtime)

    def _wanted_servers(self, servers: tuple[Postgres, Valkey]) -> list[Postgres | Valkey]:
        both: list[Postgres | Valkey] = [*servers]
        return [server for server, wanted in zip(both, self._wanted, strict=True) if wanted]

    def _remove_remnant_of_killed(self) -> None:
        note = self._lock.read()
        self._lock.clear()
        if note is None or not Path(note.runtime).name.startswith(_RUNTIME_PREFIX):
            return
        remnant = Path(note.runtime)
        if remnant.is_dir() and not remnant.is_symlink() and remnant.stat().st_uid == os.geteuid():
            shutil.rmtree(remnant, ignore_errors=True)


@contextmanager
def _unusable_files_in_one_line(data_dir: Path) -> Iterator[None]:
    """Tell which file cannot be used, such as one that a command of another user has made."""
    try:
        yield
    except OSError as error:
        file = Path(error.filename or data_dir)
        elsewhere = ", or set THROUGHLINE_DATA_DIR to another folder" if file.is_relative_to(data_dir) else ""
        raise EmbeddedError(
            f"Cannot use {file} ({error.strerror}): let the user of this command use it{elsewhere}."
        ) from error


def _make_socket_folder() -> Path:
    base = tempfile.gettempdir()
    fits = len(base) <= _MAX_RUNTIME_PATH_LENGTH and _PLAIN_PATH.fullmatch(base)
    # A new name each time, so that nobody can have created it before.
    return Path(tempfile.mkdtemp(prefix=_RUNTIME_PREFIX, dir=base if fits else "/tmp"))  # noqa: S108 - 0700, fresh
