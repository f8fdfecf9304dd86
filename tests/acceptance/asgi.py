"""An HTTP transport that calls an ASGI application on a loop of another thread: no socket, but streams and disconnects.

``httpx.ASGITransport`` and Starlette's test client collect a whole response before they return it, so an event stream
would never arrive. Here the response is returned at its first byte, and closing it is a disconnect.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
from starlette.types import ASGIApp, Message

_END: Final = None
_NO_LIMIT: Final = 300.0  # seconds; a test that waits longer has failed


class Exchange(httpx.SyncByteStream):
    """One request and its response, shared between the calling thread and the loop."""

    def __init__(self, app: ASGIApp, loop: asyncio.AbstractEventLoop, request: httpx.Request) -> None:
        self._app = app
        self._loop = loop
        self._scope = _scope(request)
        self._body = request.read()
        timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
        self._patience = timeouts.get("read") or _NO_LIMIT
        self._arrived: queue.SimpleQueue[Message | BaseException | None] = queue.SimpleQueue()
        self._left = asyncio.Event()
        self._is_sent = False

    def start(self) -> httpx.Response:
        """Send the request, and return when the response has begun."""
        if self._loop.is_closed():
            raise httpx.ConnectError("the service is gone")
        asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        first = self._next()
        assert first is not None, "the application ended without a response"
        return httpx.Response(
            first["status"], headers=first["headers"], stream=self, extensions={"network_stream": _Connection(self)}
        )

    def __iter__(self) -> Iterator[bytes]:
        while (message := self._next()) is not None:
            if message["type"] == "http.response.body":
                yield message.get("body", b"")
                if not message.get("more_body", False):
                    return

    def close(self) -> None:
        """Disconnect, as a client that has read enough does."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the news
            self._loop.call_soon_threadsafe(self._left.set)
        self._arrived.put(_END)

    def _next(self) -> Message | None:
        try:
            message = self._arrived.get(timeout=self._patience)
        except queue.Empty:
            self.close()
            raise httpx.ReadTimeout("the application did not answer in time") from None
        if isinstance(message, BaseException):
            raise message
        return message

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 - it is raised where the request was made
            self._arrived.put(error)
        else:
            self._arrived.put(_END)
        finally:
            self._left.set()

    async def _receive(self) -> Message:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._arrived.put(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._left.set()


class _Connection:
    """Stands for the socket of a response: shutting it down disconnects the client."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def get_extra_info(self, name: str) -> _Connection | None:
        return self if name == "socket" else None

    def shutdown(self, _how: int) -> None:
        self._exchange.close()


class Transport(httpx.BaseTransport):
    """``httpx`` over an application that runs on a loop of another thread."""

    def __init__(self, app: ASGIApp, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return Exchange(self._app, self._loop, request).start()


def _scope(request: httpx.Request) -> dict[str, Any]:
    path, _, query = request.url.raw_path.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 1),
    }
