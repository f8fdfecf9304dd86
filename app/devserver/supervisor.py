"""Keeps the processes of the service running, and ends them in order.

Every child gets a session of its own, so that Ctrl-C reaches this process alone, and a signal from the
kernel when this process is gone, so that nothing is left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from app.devserver import die_with_parent

# The pause between two checks of the children.
_POLL_SECONDS = 0.1
# After this time, a request to stop that Python dropped is raised again.
_RAISED_AGAIN_SECONDS = 0.01
# The first restart is immediate; a child that keeps dying gets this many restarts within the window.
_BACK_OFF_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0)
_RESTART_WINDOW_SECONDS = 60.0
# How many lines of a child are kept, to be shown once the service has started or to explain a failure.
_KEPT_LINES = 200
# What the HTTP server prints after the reason.
_UNINFORMATIVE_LINE = "Application startup failed. Exiting."

Emit = Callable[[str, str], None]
"""Takes a child's name and a line of its output."""


class ChildFailedError(Exception):
    """A child cannot be kept running; the message is one line."""


class StopRequestedError(BaseException):
    """Ctrl-C or a signal asked for the end. No handler of ordinary errors may catch it."""


class Signals:
    """Handles signals: the first raises in the main thread; a later one, during the stop, makes it a forced stop.

    Python drops an exception that a handler raises within the callbacks of an import or of the garbage collector. So
    the exception is raised again a moment later, until it takes effect.
    """

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._count = 0
        self._is_stopping = False
        self._before: dict[signal.Signals, object] = {}
        self._shown_before = sys.unraisablehook

    @property
    def forced(self) -> bool:
        """Whether a second signal asked for a forced stop."""
        return self._count > 1

    def begin_stop(self) -> None:
        """From now on no signal raises an error, so that stopping is not interrupted."""
        self._is_stopping = True
        self._count = max(self._count, 1)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle_signal) for number in self._NUMBERS}
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
        self._shown_before, sys.unraisablehook = sys.unraisablehook, self._stop_again_or_show
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned
        sys.unraisablehook = self._shown_before

    def _stop_again_or_show(self, dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, StopRequestedError):
            # Python dropped the exception that asked for the stop.
            signal.setitimer(signal.ITIMER_REAL, _RAISED_AGAIN_SECONDS)
        else:
            self._shown_before(dropped)

    def _raise_again(self, *_: object) -> None:
        if not self._is_stopping:
            raise StopRequestedError

    def _handle_signal(self, *_: object) -> None:
        self._count += 1
        if self._count == 1:
            raise StopRequestedError


class Child:
    """One process of the service, whose output is passed on line by line."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], emit: Emit, patience: float) -> None:
        self.name = name
        self._argv = die_with_parent(argv)
        self._env = dict(env)
        self._emit = emit
        self._is_shown = False
        self._patience = patience
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._end_times: deque[float] = deque()
        self._next_start = 0.0

    @property
    def last_line(self) -> str:
        """The last line that is not empty."""
        lines = [line for line in self._lines if line.strip() and _UNINFORMATIVE_LINE not in line]
        return lines[-1].strip() if lines else "it said nothing"

    def start(self) -> None:
        """Start the process; call it from the main thread."""
        self._process = subprocess.Popen(  # noqa: S603 - own argv, no shell
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._env,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_output, args=(self._process,), daemon=True)
        self._reader.start()

    def show(self) -> None:
        """Show the lines that were held back, and from now on every line."""
        self._is_shown = True
        for line in tuple(self._lines):
            self._emit(self.name, line)

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def ensure(self) -> None:
        """Start the process again if it has died, with growing pauses.

        Raises:
            ChildFailedError: The process died too often in a short time.
        """
        now = time.monotonic()
        if self.alive() or now < self._next_start:
            return
        if self._process is not None:
            self._plan_next_start(self._process, now)
        else:
            self.start()

    def end(self, forced: Callable[[], bool]) -> None:
        """Ask the process to end, and force it after its time or after a second signal."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        deadline = time.monotonic() + self._patience
        while process.poll() is None and time.monotonic() < deadline and not forced():
            time.sleep(_POLL_SECONDS / 5)
        _kill_session(process)
        self._join_reader()

    def _plan_next_start(self, process: subprocess.Popen[str], now: float) -> None:
        """Remove what the dead process left, and plan the next start."""
        _kill_session(process)
        self._join_reader()
        while self._end_times and now - self._end_times[0] > _RESTART_WINDOW_SECONDS:
            self._end_times.popleft()
        if len(self._end_times) >= len(_BACK_OFF_SECONDS):
            raise ChildFailedError(f"The {self.name} keeps stopping; its last line: {self.last_line}")
        pause = _BACK_OFF_SECONDS[len(self._end_times)]
        self._end_times.append(now)
        when = f"in {pause:g} s" if pause else "at once"
        self._emit(self.name, f"stopped unexpectedly (exit code {process.returncode}) and starts again {when}")
        self._next_start = now + pause
        self._process = None

    def _join_reader(self) -> None:
        if self._reader is not None:
            self._reader.join(timeout=1.0)

    def _read_output(self, process: subprocess.Popen[str]) -> None:
        if process.stdout is None:
            return
        with process.stdout as output:
            for line in output:
                self._lines.append(line.rstrip("\n"))
                if self._is_shown:
                    self._emit(self.name, line.rstrip("\n"))


def _kill_session(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # The child's own children share its session.
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Supervisor:
    """Starts children, waits until the service answers, and keeps them running until asked to stop."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        revive: Callable[[], list[str]],
        emit: Emit,
    ) -> None:
        self._children = tuple(children)
        self._revive = revive
        self._emit = emit

    def start(self, ready: Callable[[], bool], *, seconds: float, told_each: float) -> None:
        """Start all children and wait until the service answers; each ``told_each`` seconds say that it is not yet.

        Raises:
            ChildFailedError: a child ended instead, or the time ran out.
        """
        for child in self._children:
            child.start()
        begun = time.monotonic()
        deadline, next_word = begun + seconds, begun + told_each
        while not ready():
            for child in self._children:
                if not child.alive():
                    child.end(lambda: True)
                    raise ChildFailedError(f"The {child.name} stopped while starting: {child.last_line}")
            if time.monotonic() >= deadline:
                words = self._children[0].last_line
                raise ChildFailedError(f"The service did not become ready within {seconds:g} seconds: {words}")
            if time.monotonic() >= next_word:
                self._emit("run", "still starting: this machine is busy or slow; Ctrl-C ends it")
                next_word += told_each
            time.sleep(_POLL_SECONDS)

    def watch(self) -> None:
        """Keep everything running; it ends only by an exception."""
        for child in self._children:
            child.show()
        while True:
            time.sleep(_POLL_SECONDS)
            for name in self._revive():
                self._emit("run", f"{name} had stopped and runs again")
            for child in self._children:
                child.ensure()

    def stop(self, forced: Callable[[], bool]) -> None:
        """End the children in the order in which they were given."""
        for child in self._children:
            child.end(forced)
