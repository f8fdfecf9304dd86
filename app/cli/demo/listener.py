"""Hears a conversation's events, as they happen, over the service's SSE stream."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import Final

from app.cli.demo.client import Compaction, Throughline
from app.client import ThroughlineError

_AGAIN_SECONDS: Final = 0.5
_PREFIX: Final = "compaction."


class Listener:
    """A thread that reads ``GET …/events`` and keeps what it says about compactions, in order."""

    def __init__(self, service: Throughline) -> None:
        self._service = service
        self._heard: queue.SimpleQueue[tuple[str, Compaction]] = queue.SimpleQueue()
        self._last_id = "0"
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to listen, from the conversation's first event on."""
        threading.Thread(target=self._listen, name="demo-events", daemon=True).start()

    def stop(self) -> None:
        """Let go; the thread ends with the stream."""
        self._stopped.set()

    def next(self, seconds: float = 0.0) -> tuple[str, Compaction] | None:
        """The next event's type and compaction; ``None`` when none comes within this time."""
        with contextlib.suppress(queue.Empty):
            return self._heard.get(timeout=seconds) if seconds > 0 else self._heard.get_nowait()
        return None

    def _listen(self) -> None:
        """Follow the stream, and take it up again where it broke."""
        while not self._stopped.is_set():
            # RuntimeError is what a closed client raises.
            with contextlib.suppress(ThroughlineError, RuntimeError):
                self._follow()
            time.sleep(_AGAIN_SECONDS)

    def _follow(self) -> None:
        for event in self._service.client.events(self._service.conversation_id, after=self._last_id):
            if self._stopped.is_set():
                return
            self._last_id = event.id
            if event.type.startswith(_PREFIX):
                self._heard.put((event.type.removeprefix(_PREFIX), Compaction.read(event.data)))
