"""Notices early that the process is about to end.

The server waits for open responses before it ends the lifespan, so a stream without an end would delay it for ever.
Therefore this module receives the signal too, and passes it on.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Set once, by the first signal or by the end of the lifespan."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        """Whether the shutdown has begun."""
        return self._event.is_set()

    def begin(self) -> None:
        """Begin the shutdown: streams end from now on."""
        self._event.set()

    async def wait(self, grace: float = 0.0) -> None:
        """Return ``grace`` seconds after the shutdown began."""
        await self._event.wait()
        await asyncio.sleep(grace)


@contextlib.contextmanager
def overhear_signals(stopping: Stopping) -> Iterator[None]:
    """Begin the shutdown on SIGINT and SIGTERM, and let the server's own handlers run as well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    earlier = {number: signal.getsignal(number) for number in SIGNALS}

    def overhear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.begin)
        handler = earlier[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number, handler in earlier.items():
        if callable(handler):
            signal.signal(number, overhear)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            if callable(handler) and signal.getsignal(number) is overhear:
                signal.signal(number, handler)
