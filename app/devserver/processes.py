"""Starts a server program so that it ends with this process, waits for it, and stops it in bounded time."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from app.devserver.errors import EmbeddedError

# How often a condition is checked: PostgreSQL starts in about 30 ms.
_POLL_SECONDS = 0.02
# A larger log is begun again at the next start; it is for people, not a history.
_LOG_LIMIT_BYTES = 5_000_000

StopSteps = Sequence[tuple[signal.Signals, float]]
"""Signals in order of force, each with the seconds to wait before the next one."""


def die_with_parent(argv: Sequence[str], signal_name: str = "TERM") -> list[str]:
    """Prefix a command so that the kernel signals the process when its parent has ended in any way.

    The signal is tied to the thread that starts the process, so start long-lived children from the main thread. If the
    system cannot do this, the command is returned unchanged, and the next start finds the orphan.
    """
    return ["setpriv", "--pdeathsig", signal_name, "--", *argv] if _knows_parent_death() else list(argv)


@functools.cache
def _knows_parent_death() -> bool:
    return runs(["setpriv", "--pdeathsig", "TERM", "--", "true"]) if sys.platform == "linux" else False


def runs(argv: Sequence[str]) -> bool:
    """Whether a command exists and succeeds."""
    if shutil.which(argv[0]) is None:
        return False
    return subprocess.run(argv, check=False, capture_output=True, timeout=30).returncode == 0  # noqa: S603 - own argv


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Check a condition until it holds; false if the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


class ServerProcess:
    """One running server whose output goes to a log file."""

    def __init__(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self._log = log
        if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
            log.unlink()
        with log.open("ab") as output:
            self._log_start = output.tell()
            # A session of its own, so that Ctrl-C in the terminal reaches only the supervisor, which stops servers in
            # order.
            self._process = subprocess.Popen(  # noqa: S603 - own argv, no shell
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, also the id of its session."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def output(self) -> str:
        """Return what the server wrote since this start."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def stop(self, steps: StopSteps) -> None:
        """Send signals of growing force until the process has ended."""
        for number, seconds in steps:
            if not self.alive():
                return
            self._process.send_signal(number)
            wait_until(lambda: not self.alive(), seconds)
        self._process.kill()
        self._process.wait()


class EmbeddedServer:
    """A server of the development kit. Subclasses start its process and say by which signals it is stopped."""

    _stop_steps: ClassVar[StopSteps]
    _forced_stop_steps: ClassVar[StopSteps]
    _process: ServerProcess | None = None

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.alive()

    def stop(self, *, force: bool = False) -> None:
        """Stop in bounded time. After a forced stop the next start has to recover, and the last second may be lost."""
        if self._process is not None:
            self._process.stop(self._forced_stop_steps if force else self._stop_steps)
            self._process = None


def stop_orphan(pid_file: Path, *, marker: Path, steps: StopSteps) -> None:
    """Stop the server that a killed supervisor left behind, and remove its pid file.

    A pid file alone proves nothing, since another process may have the number by now. Only a process whose arguments
    name this data folder is signalled.
    """
    pid = _read_pid(pid_file)
    if pid is not None:
        for number, seconds in (*steps, (signal.SIGKILL, 5.0)):
            if not _has_argument(pid, marker):
                break
            _send_signal(pid, number)
            wait_until(lambda: not _has_argument(pid, marker), seconds)
    pid_file.unlink(missing_ok=True)


def _read_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _has_argument(pid: int, marker: Path) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False if Path("/proc/self").exists() else _has_argument_by_ps(pid, marker)
    return os.fsencode(marker) in arguments


def _has_argument_by_ps(pid: int, marker: Path) -> bool:
    argv = ["ps", "-o", "command=", "-p", str(pid)]
    listed = subprocess.run(argv, check=False, capture_output=True, text=True)  # noqa: S603 - own argv
    return str(marker) in listed.stdout


def _send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise EmbeddedError(
            f"Process {pid} of another user still serves this data folder: stop it, or set THROUGHLINE_DATA_DIR."
        ) from error
