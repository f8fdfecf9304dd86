"""One Valkey server: start it, know when it answers, stop it."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import ClassVar

from app.devserver.binaries import valkey_program
from app.devserver.errors import EmbeddedError
from app.devserver.processes import EmbeddedServer, ServerProcess, StopSteps, die_with_parent, stop_orphan, wait_until

_SOCKET_NAME = "v.sock"
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
        """Start and return when a PING is answered."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        pid_file = self._data / "valkey.pid"
        stop_orphan(pid_file, marker=self._data, steps=self._stop_steps)
        command = die_with_parent(self._argv(pid_file), "TERM")
        process = self._process = ServerProcess(command, log=self._log, env=os.environ)
        wait_until(lambda: self.ready() or not process.alive(), _START_SECONDS)
        if not (process.alive() and self.ready()):
            lines = process.output().strip().splitlines()
            self.stop(force=True)
            raise EmbeddedError(f"Valkey did not start: {lines[-1] if lines else 'no reason'} (log: {self._log})")

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
