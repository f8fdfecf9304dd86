"""Ends a process that no longer answers, even while C code holds the interpreter.

A pattern or another call into C that never returns keeps the interpreter's lock: no thread, no timeout and no handler
of a signal runs any more. ``faulthandler`` waits in a thread that needs no interpreter. Unless its timer is renewed in
time, it writes the stack of every thread to standard error and ends the process, so that the parent can start another.
Stacks contain names of files and functions, but no user data.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

_STDERR: Final = 2
_MAX_RENEWAL_SECONDS: Final = 1.0  # seconds between two renewals; fewer if the watchdog's limit is shorter
_RENEWALS_PER_LIMIT: Final = 3


class _Timer:
    """The one timer of ``faulthandler``. A fork must not use it: the child has its locks, but not its thread.

    A child that used the timer of its parent would wait for that thread for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = 0.0
        os.register_at_fork(before=self._pause, after_in_parent=self._resume, after_in_child=self._forget)

    def set(self, seconds: float) -> None:
        """Restart the timer; 0 = off."""
        with self._lock:
            self._seconds = seconds
            self._start_or_cancel()

    def _start_or_cancel(self) -> None:
        if self._seconds:
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=_STDERR)
        else:
            faulthandler.cancel_dump_traceback_later()

    def _pause(self) -> None:
        self._lock.acquire()
        if self._seconds:
            faulthandler.cancel_dump_traceback_later()

    def _resume(self) -> None:
        if self._seconds:
            self._start_or_cancel()
        self._lock.release()

    def _forget(self) -> None:
        self._seconds = 0.0
        self._lock.release()


_timer = _Timer()


@asynccontextmanager
async def watching(seconds: float) -> AsyncIterator[None]:
    """Within the block, end this process if the event loop does nothing for that many seconds; 0 = never.

    Only one loop of a process can use it at a time, since there is one timer.
    """
    if not seconds:
        yield
        return
    _timer.set(seconds)
    renewing = asyncio.create_task(_renew_timer(seconds), name="watchdog")
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        _timer.set(0)


async def _renew_timer(seconds: float) -> None:
    while True:
        await asyncio.sleep(min(_MAX_RENEWAL_SECONDS, seconds / _RENEWALS_PER_LIMIT))
        _timer.set(seconds)
