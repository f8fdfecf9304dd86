"""Ends connections on which a client sends no request or reads no response, and those above a limit.

Bytes that are not an HTTP request, and a request with too large a head, are refused in the same form as all other
errors.

uvicorn itself only closes a connection that is idle between two requests. The body of a request has the time of the
whole request (``middleware.Deadline``). All other limits are here, once for all connections of the process.
"""

from __future__ import annotations

import asyncio
import json
import math
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import ClassVar, Final

import h11
from uuid_utils import uuid7
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

SHUTDOWN_SECONDS: Final = 5.0
"""How many seconds a WebSocket may stay open once the process is about to end; the application needs fewer."""
CHECKS_PER_LIMIT: Final = 4
"""How often a connection is checked within the shorter of its time limits."""
PROGRESS_BYTES: Final = 16_384
"""How many bytes a client has to read within ``unread_seconds``."""
READ_BYTES: Final = 16_384
"""The most bytes that are read at once. Each byte of a body in chunks of one byte takes 2 µs of the loop."""
SOCKET_READ_BYTES: Final = 4_096
"""Likewise for a WebSocket: its smallest frames have six bytes, and each takes some 3 µs of the loop."""
MAX_FRAGMENTS: Final = 16_384
"""The most frames of one message of a WebSocket. Each takes memory beside its bytes, and may have none."""
RETRY_AFTER: Final = 1
"""After how many seconds a refused connection may be tried again."""
RESERVED_FILES: Final = 200
"""Open files that are kept for other things than clients: databases, models, logs."""
MAX_HEAD_BYTES: Final = 65_536
"""The most bytes of a request's line and headers, which are read before any key is checked.

The longest accepted question (``fields.MAX_QUERY_LENGTH``) fits into an address if it is ASCII. In other scripts it
takes up to twelve bytes per character there, so it has to be sent in a body.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """An answer that is written without a request, as bytes of HTTP."""

    status: HTTPStatus
    code: str
    title: str
    detail: str
    retryable: bool = False

    def response(self) -> bytes:
        """The answer, with an id of its own."""
        request_id = str(uuid7())
        problem = {
            "type": f"urn:throughline:problem:{self.code}",
            "title": self.title,
            "status": int(self.status),
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
            "request_id": request_id,
            "errors": [],
            **({"retry_after": RETRY_AFTER} if self.retryable else {}),
        }
        body = json.dumps(problem).encode()
        head = [
            f"HTTP/1.1 {int(self.status)} {self.status.phrase}",
            "content-type: application/problem+json",
            f"x-request-id: {request_id}",
            *([f"retry-after: {RETRY_AFTER}"] if self.retryable else []),
            "connection: close",
            f"content-length: {len(body)}",
        ]
        return "\r\n".join([*head, "", ""]).encode() + body


_FULL: Final = _Refusal(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="dependency_unavailable",
    title="Too many connections",
    detail="The server has as many connections as it takes. Try again in a moment.",
    retryable=True,
)
_NOT_HTTP: Final = _Refusal(
    status=HTTPStatus.BAD_REQUEST,
    code="unreadable",
    title="Unreadable request",
    detail="The request cannot be read: it is no HTTP/1.1.",
)
_LARGE_HEAD: Final = replace(
    _NOT_HTTP,
    detail=f"The address and the headers of a request have at most {MAX_HEAD_BYTES} bytes: send long texts in a body.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of a connection, and of the number of connections."""

    head_seconds: float
    """The time for the head of a request, from the beginning of the connection or the first byte after an answer."""
    unread_seconds: float
    """How long a client may read nothing while data waits to be sent."""
    most: int
    """The most connections. Above this, the one that has waited longest for a request is closed, otherwise an idle one;
    if all are answering requests, the new one is refused.
    """


class _CheckedConnection(asyncio.Protocol):
    """A connection of uvicorn that is checked again and again, and ended if its client stops reading."""

    limits: ClassVar[ConnectionLimits]
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _unread: tuple[float, int] | None = None
    """Since when the client has read nothing, and how many bytes waited then; ``None`` if nothing waits."""
    _next_check: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, which is gone."""
        if self._next_check is not None:
            self._next_check.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Note that the client has read enough for writing to go on."""
        self._unread = None
        super().resume_writing()

    def _schedule_check(self) -> None:
        pause = min(self.limits.head_seconds, self.limits.unread_seconds) / CHECKS_PER_LIMIT
        self._next_check = self.loop.call_later(pause, self._end_if_over)

    def _end_if_over(self) -> None:
        # A connection that became a WebSocket has another protocol, which is checked by itself.
        if self.transport.get_protocol() is not self:
            return
        if self._is_over():
            self.transport.abort()
            return
        self._schedule_check()

    def _is_over(self) -> bool:
        size, now = self.transport.get_write_buffer_size(), self.loop.time()
        if size == 0:
            self._unread = None
        elif self._unread is None or size <= self._unread[1] - PROGRESS_BYTES:
            self._unread = now, size
        return self._unread is not None and now - self._unread[0] > self.limits.unread_seconds


class SocketConnection(_CheckedConnection, WebSocketsSansIOProtocol):
    """uvicorn's WebSocket.

    uvicorn ends one that does not answer a ping only after all data was read, which may never be.
    """

    _late_answers: bytes = b""
    """The answers to the newest pings of a client that reads nothing at present; at most what is read at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the WebSocket over from the connection of its request."""
        super().connection_made(transport)
        self.transport.max_size = SOCKET_READ_BYTES  # type: ignore[attr-defined]  # of asyncio's own transport
        self._schedule_check()

    def handle_cont(self, event: Frame) -> None:
        """Take a further frame of a message; close the WebSocket if the message has too many."""
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"a message has at most {MAX_FRAGMENTS} frames")
            self.handle_parser_exception()

    def handle_ping(self) -> None:
        """Answer a ping; while the client reads nothing, only the newest answers wait, since they would fill memory."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self._late_answers = b"".join(self.conn.data_to_send()) or self._late_answers

    def resume_writing(self) -> None:
        """Send what has waited for the client to read."""
        super().resume_writing()
        self._send_late_answers()

    def handle_close(self, event: Frame) -> None:
        """Send what has waited, which includes the answer to this frame if a ping came right before it."""
        self._send_late_answers()
        super().handle_close(event)

    def _send_late_answers(self) -> None:
        late, self._late_answers = self._late_answers, b""
        if late and not self.transport.is_closing():
            self.transport.write(late)

    def shutdown(self) -> None:
        """Leave it to the application to close the WebSocket, after the present answer, for some seconds."""
        if self.handshake_complete and not self.close_sent:
            self.stop_keepalive()
            self.loop.call_later(SHUTDOWN_SECONDS, self._end_if_open)
        else:
            super().shutdown()

    def _end_if_open(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()


class Connection(_CheckedConnection, H11Protocol):
    """uvicorn's connection, with time limits where uvicorn has none."""

    _waits_since: float | None = None
    """Since when it has waited for a request, by the loop's clock; ``None`` while one is answered."""
    _is_ended: bool = False
    """Whether its last answer was written while its client was still sending; all further bytes are dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection; above the limit, close another one for it, or refuse it."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]  # of asyncio's own transport
        self._waits_since = self.loop.time()
        self._schedule_check()
        if len(self.connections) > self.limits.most:
            self._close_one_connection()

    def data_received(self, data: bytes) -> None:
        """While no request is being answered, the time for the next head runs from its first byte."""
        if self._is_ended:
            return
        if self._waits_since is None and not self._is_answering:
            self._waits_since = self.loop.time()
        super().data_received(data)

    def handle_events(self) -> None:
        """Stop the time for a request's head once the head is complete."""
        super().handle_events()
        if self._is_answering:
            self._waits_since = None
        if self.cycle is not None and self.cycle.transport is self.transport:
            self.cycle.transport = _LastAnswer(self)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not a request.

        A client that is still sending is read to its end, so that it reads the answer.
        """
        if self.conn.our_state is not h11.IDLE:  # a broken body: its request is being answered
            super().send_400_response(msg)
            return
        is_large = getattr(sys.exception(), "error_status_hint", None) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self.transport.write((_LARGE_HEAD if is_large else _NOT_HTTP).response())
        self._end_after_client()

    def close_after_answer(self) -> None:
        """Close the connection.

        A client that is still sending the body of a request that was answered already is read to its end first.
        Otherwise the system would drop the answer, and the client would only learn that the connection broke.
        """
        is_sending = self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing()
        if self._is_answering or not is_sending:
            self.transport.close()
            return
        self._end_after_client()

    def on_response_complete(self) -> None:
        """Go on after an answer. The time for the rest of a body that nobody reads is that for a head."""
        super().on_response_complete()
        if self._is_ended:
            self._unset_keepalive_if_required()

    def _end_after_client(self) -> None:
        self.transport.write_eof()
        self._is_ended = True
        self._waits_since = self.loop.time()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_one_connection(self) -> None:
        free = [one for one in self._other_connections() if not one._is_answering]  # noqa: SLF001
        if free:
            min(free, key=Connection._wait_order).transport.abort()
            return
        self.transport.write(_FULL.response())
        self.transport.close()

    def _wait_order(self) -> float:
        """The smaller, the longer it has waited for a request."""
        return math.inf if self._waits_since is None else self._waits_since

    def _other_connections(self) -> Iterator[Connection]:
        for one in self.connections:
            if isinstance(one, Connection) and one is not self and not one.transport.is_closing():
                yield one

    def _is_over(self) -> bool:
        since = self._waits_since
        is_head_late = since is not None and self.loop.time() - since > self.limits.head_seconds
        return is_head_late or super()._is_over()


class _LastAnswer(asyncio.Transport):
    """What uvicorn writes an answer to, and closes if the client asked for that."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self._connection.close_after_answer()


def affordable_connections(most: int) -> int:
    """At most ``most`` connections, and no more than the process may open files.

    The limit of open files is raised as far as allowed.
    """
    _, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, highest))
    return most if highest == resource.RLIM_INFINITY else max(1, min(most, highest - RESERVED_FILES))


def connection_class(limits: ConnectionLimits) -> type[Connection]:
    """A class of connections with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


def socket_class(limits: ConnectionLimits) -> type[SocketConnection]:
    """A class of WebSockets with these limits."""
    return type("LimitedSocket", (SocketConnection,), {"limits": limits})
