"""What a client leaves open ends: over real sockets, before the server that the API runs on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.http.connections import ConnectionLimits, connection_class

HEAD, UNREAD = 0.4, 0.4
LATE = 2.0
"""Seconds after which nothing ends by itself on a busy machine."""
LARGE = 30_000_000
"""Bytes: more than the sockets of both sides hold."""
ASK = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once; ``/large`` a lot, ``/slow`` never."""
    if scope["path"] == "/slow":
        await asyncio.sleep(60)
    body = b"x" * (LARGE if scope["path"] == "/large" else 2)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving(most: int = 100) -> AsyncIterator[int]:
    limits = ConnectionLimits(head_seconds=HEAD, unread_seconds=UNREAD, most=most)
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http=connection_class(limits), log_level="critical", lifespan="off")
    )
    server.config.load()
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await running


async def ends(reader: asyncio.StreamReader) -> float:
    """Seconds until the other side has ended it."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(reader.read(100_000), 10):
            pass
    return time.monotonic() - began


@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["nothing", "half a head"])
async def test_a_connection_without_a_request_ends(sent: bytes) -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await ends(reader) < LATE
        writer.close()


async def test_a_head_or_the_rest_of_a_refused_body_that_comes_byte_by_byte_ends() -> None:
    for head in (b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n"):
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            ending = asyncio.create_task(ends(reader))
            while not ending.done():
                writer.write(b"x")
                await asyncio.sleep(0.05)
            assert await ending < LATE
            writer.close()


async def test_who_does_not_read_is_left_and_who_reads_gets_all() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK.replace(b"/ ", b"/large ", 1))
        await asyncio.sleep(LATE)
        got = b""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            got = await reader.readexactly(LARGE)
        assert len(got) < LARGE
        writer.close()

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK.replace(b"/ ", b"/large ", 1))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(10):
            await reader.readexactly(LARGE // 10)
            await asyncio.sleep(UNREAD / 4)  # slow, but it reads
        writer.close()


async def test_above_the_number_the_longest_wait_ends_and_where_nobody_waits_the_newest_is_refused() -> None:
    async with serving(most=2) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ends(held[0][0]) < HEAD / 2
        for _, other in (held[1], (reader, writer)):
            other.write(ASK.replace(b"/ ", b"/slow ", 1))
        await asyncio.sleep(0.1)
        newest, _ = await asyncio.open_connection("127.0.0.1", port)
        assert b"503" in await newest.readline()
        for _, other in (*held, (reader, writer)):
            other.close()
