"""Writes a file under another name first, so that the file with its own name is always complete."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

FOR_ALL: Final = 0o666
"""The mode of a new file, before the process's mask is applied."""
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_SIGNAL_EXIT_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a process."""


@contextmanager
def atomic_file(target: Path, mode: int = FOR_ALL) -> Iterator[BinaryIO]:
    """Write to a second file, then rename it, so that the file is never incomplete.

    A link stays and leads to the new file. Nobody may read the new file who might not read the one that it replaces.

    Nothing is left behind if a signal asks the process to end (SIGTERM or SIGHUP, as at a shutdown) either.

    Raises:
        OSError: The file cannot be written; nothing is left behind.
    """
    with _signals_as_exits(), _draft_renamed_at_end(target, mode) as file:
        yield file


@contextmanager
def _draft_renamed_at_end(target: Path, mode: int) -> Iterator[BinaryIO]:
    named = Path(os.path.realpath(target))
    draft = named.with_name(f".{named.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w+b") as file:
            if named.exists():
                os.fchmod(descriptor, mode & named.stat().st_mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(named)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Let signals that would end the process at once raise ``SystemExit``; handled and ignored ones stay so."""
    ending: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        ending = [one for one in _ENDING_SIGNALS if signal.getsignal(one) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: object) -> None:
    raise SystemExit(_SIGNAL_EXIT_BASE + number)


def is_special_file(target: Path) -> bool:
    """Whether the name is that of a device, a pipe or a socket, which can be written to but must not be replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()
