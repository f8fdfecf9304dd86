"""Measures whether others still get answers during an attack: ``/healthz`` is asked again and again."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Final, Self

import httpx

PAUSE: Final = 0.05
BASELINE: Final = 40
"""How many answers before an attack are compared with those during it."""


class Watch:
    """Asks while it is entered, and compares the times with those before."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._done = threading.Event()
        self._before: list[float] = []
        self._during: list[float] = []
        self.failed = 0
        """How many requests got no answer."""

    def __enter__(self) -> Self:
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as http:
            for _ in range(BASELINE):
                self._look(http, self._before)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(40)

    @property
    def ratio(self) -> float:
        """The median time during the attack, divided by the median before it."""
        return statistics.median(self._during or [0]) / statistics.median(self._before)

    @property
    def longest(self) -> float:
        """The seconds of the slowest answer during the attack."""
        return max(self._during, default=0.0)

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as http:
            while not self._done.wait(PAUSE):
                self._look(http, self._during)

    def _look(self, http: httpx.Client, into: list[float]) -> None:
        began = time.perf_counter()
        try:
            self.failed += not http.get("/healthz").is_success
        except httpx.HTTPError:
            self.failed += 1
        into.append(time.perf_counter() - began)
