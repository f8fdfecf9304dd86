"""Requests that a client leaves unfinished are ended: over real sockets, on the server that the API runs on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from time import thread_time
from uuid import UUID

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.connections import (
    MAX_FRAGMENTS,
    MAX_HEAD_BYTES,
    READ_BYTES,
    SOCKET_READ_BYTES,
    ConnectionLimits,
    SocketConnection,
    connection_class,
    socket_class,
)
from app.http.fields import MAX_QUERY_LENGTH

SOON, LATER = 0.4, 1.5
NEVER = 600.0
PATIENCE = 60.0
"""The seconds after which only what never ends has not ended, also on a busy machine."""
LARGE = 30_000_000
"""The bytes of a body that is larger than the buffers of both sockets."""
STRETCH = 0.08
"""Four times the seconds that the loop may compute, for a busy machine. Without a limit it takes 0.2 and more."""
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
ASK = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n"


slow: asyncio.Queue[None] = asyncio.Queue()
"""Gets an item for each request that is not answered."""


class Left:
    """Whether the application has let go of a socket."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        self.event.clear()
        try:
            yield
        finally:
            self.event.set()


left = Left()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once; ``/large`` with much data, ``/slow`` never. A socket is sent much data, and closed."""
    if scope["type"] == "websocket":
        with left.noted():
            await send({"type": "websocket.accept"})
            for _ in range(10):
                await send({"type": "websocket.send", "text": "x" * (LARGE // 10)})
            await send({"type": "websocket.close"})
        return
    if scope["path"] == "/slow":
        slow.put_nowait(None)
        await asyncio.sleep(NEVER)
    body = b"x" * (LARGE if scope["path"] == "/large" else 2)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving(*, head: float = SOON, unread: float = SOON, most: int = 100) -> AsyncIterator[int]:
    """Serve with these limits; no other limit ends a connection."""
    limits = ConnectionLimits(head_seconds=head, unread_seconds=unread, most=most)
    connection, socket = connection_class(limits), socket_class(limits)
    config = uvicorn.Config(app, port=0, http=connection, ws=socket, log_level="critical", lifespan="off")
    config.ws_per_message_deflate = False
    config.h11_max_incomplete_event_size = MAX_HEAD_BYTES
    config.timeout_keep_alive = int(NEVER)
    server = uvicorn.Server(config)
    server.config.load()
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await running


async def ended(reader: asyncio.StreamReader) -> None:
    """Return when the other side has ended the connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while await reader.read(100_000):
                pass


@pytest.mark.daily(1)
@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["nothing", "half a head"])
async def test_a_connection_without_a_request_ends(sent: bytes) -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await ended(reader)
        writer.close()


async def test_a_head_or_the_rest_of_a_refused_body_that_comes_byte_by_byte_ends() -> None:
    for head in (b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n"):
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            ending = asyncio.create_task(ended(reader))
            while not ending.done():
                writer.write(b"x")
                await asyncio.sleep(0.05)
            await ending
            writer.close()


async def test_who_asks_for_the_end_of_the_connection_reads_an_answer_that_comes_before_the_body_was_sent() -> None:
    head = f"POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {LARGE}\r\n\r\n".encode()
    async with serving(head=NEVER, unread=NEVER) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        writer.write(b"x" * LARGE)
        async with asyncio.timeout(PATIENCE):
            await writer.drain()  # as clients do that send the whole body before they look for an answer
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_body_that_nobody_reads_any_more_ends_with_the_time_for_a_head() -> None:
    async def send_for_ever(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serving() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n")
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_for_ever(writer), PATIENCE)
        writer.close()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"GET /" + b"x" * 2_000_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n", f"at most {MAX_HEAD_BYTES} bytes"),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", "no HTTP/1.1"),
    ],
    ids=["large head", "no head"],
)
async def test_what_is_no_request_is_refused_in_our_form(sent: bytes, told: str) -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
        problem = json.loads(body)
        assert problem["code"] == "unreadable"
        assert f"\r\nx-request-id: {UUID(problem['request_id'])}\r\n".encode() in head
        assert told in problem["detail"]
        writer.close()


async def test_the_longest_question_in_ascii_fits_into_an_address() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK.replace(b"/ ", b"/?query=" + b"a" * MAX_QUERY_LENGTH + b" ", 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


@pytest.mark.case("48")
async def test_who_does_not_read_is_left_and_who_reads_gets_all() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK.replace(b"/ ", b"/large ", 1))
        await asyncio.sleep(LATER)
        got = b""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            got = await reader.readexactly(LARGE)
        assert len(got) < LARGE
        writer.close()

    async with serving(unread=LATER) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK.replace(b"/ ", b"/large ", 1))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(10):
            await reader.readexactly(LARGE // 10)
            await asyncio.sleep(LATER / 8)  # slowly, but it reads
        writer.close()


@pytest.mark.long
async def test_a_socket_that_is_not_read_is_left_and_one_that_is_read_gets_all() -> None:
    """uvicorn alone ends a socket that answers no ping, but then waits until everything is read."""
    async with serving() as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        await left.event.wait()
        writer.close()

    async with serving(unread=LATER) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(10):
            await reader.readexactly(LARGE // 10)
            await asyncio.sleep(LATER / 8)
        writer.close()


async def test_above_the_number_the_longest_wait_ends_and_where_nobody_waits_the_newest_is_refused() -> None:
    async with serving(head=NEVER, most=2) as port, asyncio.timeout(PATIENCE):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ended(held[0][0])
        for _, other in (held[1], (reader, writer)):
            other.write(ASK.replace(b"/ ", b"/slow ", 1))
        for _ in range(2):
            await slow.get()
        newest, _ = await asyncio.open_connection("127.0.0.1", port)
        head, _, body = (await newest.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert (b"retry-after: 1\r\n" in head, json.loads(body)["retry_after"]) == (True, 1)
        for _, other in (*held, (reader, writer)):
            other.close()


async def test_little_is_read_at_a_stretch() -> None:
    """The body has chunks of one byte; what is read of it at once is parsed before anybody else has a turn."""
    longest = 0.0
    async with serving() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /slow HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000)
        began = thread_time()
        for _ in range(2_000):
            await asyncio.sleep(0)
            now = thread_time()
            longest, began = max(longest, now - began), now
        writer.transport.abort()
    assert longest < STRETCH


def frame(opcode: int, data: bytes = b"", *, is_last: bool) -> bytes:
    return bytes([opcode | 0x80 * is_last, 0x80 | len(data), 0, 0, 0, 0]) + data


class Unread(asyncio.Transport):
    """A connection of which the other side reads nothing."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
        self.written = b""
        self.is_closed = False
        self.max_size = READ_BYTES

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


async def listening(_scope: Scope, receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})


@contextlib.asynccontextmanager
async def socket_opened() -> AsyncIterator[tuple[SocketConnection, Unread]]:
    limits = ConnectionLimits(head_seconds=NEVER, unread_seconds=NEVER, most=1)
    config = uvicorn.Config(listening, lifespan="off")
    config.load()
    socket, transport = socket_class(limits)(config, ServerState(), {}), Unread()
    socket.connection_made(transport)
    socket.data_received(HANDSHAKE)
    await asyncio.sleep(0.01)
    assert b" 101 " in transport.written
    yield socket, transport
    socket.connection_lost(None)
    await asyncio.sleep(0.01)


async def test_of_a_socket_less_is_read_at_a_stretch_since_its_frames_may_be_tiny() -> None:
    async with socket_opened() as (_, transport):
        assert transport.max_size == SOCKET_READ_BYTES < READ_BYTES


async def test_a_message_of_a_socket_in_endless_frames_is_refused() -> None:
    async with socket_opened() as (socket, transport):
        socket.data_received(frame(1, is_last=False) + frame(0, is_last=False) * (MAX_FRAGMENTS - 1))
        assert not transport.is_closed
        socket.data_received(frame(0, is_last=False) * 2)
        assert transport.is_closed
        assert transport.written.endswith(f"at most {MAX_FRAGMENTS} frames".encode())


async def test_of_a_client_that_reads_nothing_only_the_newest_pings_are_answered() -> None:
    answered = []
    async with socket_opened() as (socket, transport):
        for is_full in (False, True):
            if is_full:
                socket.pause_writing()
            before = len(transport.written)
            socket.data_received(frame(9, b"p" * 100, is_last=True) * 100)
            answered.append(len(transport.written) - before)
        socket.data_received(frame(9, b"last", is_last=True))
        socket.resume_writing()
        assert answered == [100 * 102, 0], "control: who reads gets them"
        assert transport.written[before:] == b"\x8a\x04last", "who reads slowly is answered at last, and stays"
        socket.pause_writing()
        socket.data_received(frame(9, is_last=True) + frame(8, b"\x03\xe8", is_last=True))
        assert transport.written.endswith(b"\x88\x02\x03\xe8"), "a close is answered in any case"
