"""Server-sent events: a response class that notices when the client leaves or the process ends.

A stream holds no database session. The framework's own generator routes cannot answer 404 before they start, nor
distinguish a disconnect from an end, so only its encoder is used here. For sse-starlette see docs/decisions/0026.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic_core import to_json
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.core.model.errors import RateLimitedError
from app.core.model.timings import DEFAULT_TIMINGS
from app.http.disconnects import cancel, until_client_gone
from app.http.errors import error_response
from app.http.shutdown import Stopping
from app.http.streams import count_stream, stream_over

Step = TypeVar("Step")

HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
RETRY_MS: Final = 2_000
HEARTBEAT: Final = KEEPALIVE_COMMENT
"""A comment: it has no id, so a client that reconnects after it neither skips nor repeats an event."""


def frame(type_: str, data: Any, id_: str | int | None = None) -> bytes:
    """One event as bytes."""
    return format_sse_event(event=type_, data_str=to_json(data).decode(), id=None if id_ is None else str(id_))


class Steps(Generic[Step]):
    """An iterator that can be waited on for a limited time; ``None`` means that there is no step yet."""

    def __init__(
        self, source: AsyncIterator[Step | None], every: float = DEFAULT_TIMINGS.stream_heartbeat_seconds
    ) -> None:
        self._source = source
        self._every = every
        self._pending: asyncio.Future[Step | None] | None = None

    async def peek(self) -> None:
        """Wait for the first step and keep it; if an error comes instead, it is raised here."""
        pending = self._next_step()
        try:
            await asyncio.wait({pending})
            if not isinstance(pending.exception(), StopAsyncIteration):
                pending.result()
        except BaseException:
            await self.aclose()
            raise

    def __aiter__(self) -> Steps[Step]:
        return self

    async def __anext__(self) -> Step | None:
        pending = self._next_step()
        await asyncio.wait({pending}, timeout=self._every)
        if not pending.done():
            return None
        self._pending = None
        return pending.result()

    async def aclose(self) -> None:
        """Close the source."""
        if self._pending is not None:
            await cancel(self._pending)
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()

    def _next_step(self) -> asyncio.Future[Step | None]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(anext(self._source))
        return self._pending


class EventStream(Response, Generic[Step]):
    """A ``text/event-stream`` that ends with its source, with its client, or with the process."""

    media_type = "text/event-stream"

    def __init__(
        self,
        steps: Steps[Step],
        render: Callable[[Step], bytes],
        *,
        stopping: Stopping,
        grace: float = 0.0,
        preamble: bytes = b"",
        on_disconnect: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Make a stream.

        Args:
            steps: What to send; ``None`` becomes a comment, which shows that the connection is alive.
            render: One step as bytes.
            stopping: The end of the process.
            grace: Seconds that the stream may go on after the process began to end.
            preamble: What is sent before the first step.
            on_disconnect: Called when the client leaves before the end.
        """
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._steps = steps
        self._render = render
        self._stopping = stopping
        self._grace = grace
        self._preamble = preamble
        self._on_disconnect = on_disconnect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client leaves, the process ends, the source ends, or the key is no longer valid."""
        try:
            await count_stream(scope)
        except RateLimitedError as error:
            await self._steps.aclose()
            await error_response(HTTPConnection(scope), error)(scope, receive, send)
            return
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(until_client_gone(receive))
        ending = asyncio.create_task(self._stopping.wait(self._grace))
        over = asyncio.create_task(stream_over(scope))
        tasks = (sending, leaving, ending, over)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            client_left = leaving.done() and not sending.done()
        finally:
            await cancel(*tasks)
            await self._steps.aclose()
        await self._finish(sending, send, client_left=client_left)

    async def _finish(self, sending: asyncio.Task[None], send: Send, *, client_left: bool) -> None:
        """Report a disconnect, raise the failure of sending, or send the end of the body."""
        failure = None if sending.cancelled() else sending.exception()
        if client_left or isinstance(failure, OSError):
            if self._on_disconnect is not None:
                await self._on_disconnect()
            return
        if failure is not None:
            raise failure
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._preamble, "more_body": True})
        async for step in self._steps:
            chunk = HEARTBEAT if step is None else self._render(step)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


def retry_preamble() -> bytes:
    """The ``retry`` field at the start of a stream: how soon a client should reconnect after it lost the stream."""
    return format_sse_event(retry=RETRY_MS)
