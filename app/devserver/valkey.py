"""One Valkey server: start it, know when it answers, stop it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import ClassVar

from app.devserver.binaries import valkey_program
from app.devserver.errors import EmbeddedError
from app.devserver.processes import EmbeddedServer, ServerProcess, StopSteps, die_with_parent, stop_orphan, wait_until

_SOCKET_NAME = "v.sock"
# The folder of its append-only file, in its own.
_FILES_NAME = "appendonlydir"
# Loading a large append-only file takes a while; an empty one takes 0.05 s.
_START_SECONDS = 30.0


class Valkey(EmbeddedServer):
    """The server of one data folder, on a socket in one runtime folder."""

    name = "Valkey"
    _stop_steps: ClassVar[StopSteps] = ((signal.SIGTERM, 5.0),)
    _forced_stop_steps: ClassVar[StopSteps] = ()

    def __init__(self, data_dir: Path, runtime: Path) -> None:
        self._data = data_dir / "valkey"
        self._log = data_dir / "valkey.log"
        self._socket = runtime / _SOCKET_NAME

    @property
    def url(self) -> str:
        """The address in redis-py's form."""
        return f"unix://{self._socket}?db=0"

    def start(self) -> None:
        """Start and return when a PING is answered.

        Files that it cannot read, as after a loss of power, are set aside: they held only hints.

        Raises:
            EmbeddedError: It does not start without them either.
        """
        stop_orphan(self._data / "valkey.pid", marker=self._data, steps=self._stop_steps)
        reason = self._reason_not_started()
        if reason is not None and (self._data / _FILES_NAME).exists():
            reason = self._reason_not_started_anew(reason)
        if reason is not None:
            raise self._error(reason)

    def _reason_not_started_anew(self, reason: str) -> str | None:
        """Start without its files. If that fails too, they were not the reason, and stay."""
        aside = self._data.with_name("valkey.unreadable")
        shutil.rmtree(aside, ignore_errors=True)
        self._data.rename(aside)
        if self._reason_not_started() is not None:
            shutil.rmtree(self._data, ignore_errors=True)
            aside.rename(self._data)
            return reason
        sys.stderr.write(f"Valkey could not read its files and begins anew; they are in {aside} now: {reason}\n")
        return None

    def _reason_not_started(self) -> str | None:
        """Start once; return why the process ended instead. Raises ``EmbeddedError`` if it neither ends nor answers."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        command = die_with_parent(self._argv(self._data / "valkey.pid"), "TERM")
        process = self._process = ServerProcess(command, log=self._log, env=os.environ)
        wait_until(lambda: self.ready() or not process.alive(), _START_SECONDS)
        if process.alive() and self.ready():
            return None
        lines, has_ended = process.output().strip().splitlines(), not process.alive()
        self.stop(force=True)
        reason = lines[-1] if lines else "no reason"
        if has_ended:
            return reason
        raise self._error(reason)

    def _error(self, reason: str) -> EmbeddedError:
        return EmbeddedError(f"Valkey did not start: {reason} (log: {self._log})")

    def ready(self) -> bool:
        """Whether the server answers a PING without an error; while it loads its file it answers with one."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2.0)
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def _argv(self, pid_file: Path) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data),
            "pidfile": str(pid_file),
            "appendonly": "yes",
            "appendfsync": "everysec",
            # The append-only file is the only copy; there are no snapshots.
            "save": "",
            # A full queue must refuse new entries visibly, and never drop old ones.
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            # The arguments stay readable, since the next start recognises an orphan by them.
            "set-proc-title": "no",
        }
        return [str(valkey_program()), *(part for name, value in options.items() for part in (f"--{name}", value))]
