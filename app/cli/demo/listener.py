"""Hears a conversation's events, as they happen, over the service's SSE stream."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import httpx

from app.cli.demo.client import Compaction, Throughline

# The service sends a comment well within this time, also when nothing happens.
_SILENCE_SECONDS: Final = 60.0
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
            with contextlib.suppress(httpx.HTTPError, RuntimeError):
                self._follow()
            time.sleep(_AGAIN_SECONDS)

    def _follow(self) -> None:
        timeout = httpx.Timeout(5.0, read=_SILENCE_SECONDS)
        headers = {"accept": "text/event-stream", "last-event-id": self._last_id}
        path = f"{self._service.path}/events"
        with self._service.http.stream("GET", path, headers=headers, timeout=timeout) as stream:
            for event in events_of(stream.iter_lines()):
                if self._stopped.is_set():
                    return
                self._last_id = event["id"]
                if event["type"].startswith(_PREFIX):
                    self._heard.put((event["type"].removeprefix(_PREFIX), Compaction.read(event["data"])))


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The JSON of each event; comments and other fields of the stream pass by."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield json.loads("\n".join(data))
            data.clear()
