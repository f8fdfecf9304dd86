"""The connections between clients, processes and servers, each through a proxy that can be slowed, cut and closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, Self

from tests.proxy import Mode, RedisProxy

_PATIENCE: Final = 10.0


class Links:
    """Proxies by name, on an event loop in a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._proxies: dict[str, RedisProxy] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._proxies:
            self.set(name, "refuse")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)

    def open(self, name: str, target: str) -> int:
        """Forward a port of this machine to ``unix:///path`` or ``tcp://host:port``; return the port."""
        proxy = self._proxies[name] = RedisProxy(target)
        self.set(name, "pass")
        return proxy.port

    def set(self, name: str, mode: Mode) -> None:
        """Change how connections are treated; open ones are cut."""
        self._wait(self._proxies[name].set(mode))

    def cut(self, name: str) -> None:
        """Reset all open connections."""
        self._loop.call_soon_threadsafe(self._proxies[name].cut)

    def delay(self, name: str, seconds: float) -> None:
        """Delay all data by so many seconds, in both directions."""
        self._proxies[name].delay = seconds

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)
