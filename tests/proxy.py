"""A TCP proxy before a real Redis that can be taken away: refused, silent, or cut in the middle."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal
from urllib.parse import urlsplit

from tests.servers import unused_port

Mode = Literal["pass", "refuse", "silent"]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RedisProxy:
    """``pass`` forwards, ``refuse`` closes the port, ``silent`` never answers; a change cuts what is open."""

    def __init__(self, redis_url: str) -> None:
        self._target = urlsplit(redis_url)
        self._port = unused_port()
        self._mode: Mode = "refuse"
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.delay = 0.0
        """Seconds for which every piece is held back, both ways."""

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        query = dict(pair.split("=") for pair in self._target.query.split("&") if pair)
        return f"redis://127.0.0.1:{self._port}/{query.get('db') or self._target.path.strip('/') or 0}"

    @property
    def open_connections(self) -> int:
        return len(self._writers)

    async def set(self, mode: Mode) -> None:
        self._mode = mode
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        if mode != "refuse":
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    def cut(self) -> None:
        """Reset every connection; the next one is treated by the mode."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            await self._serve(reader, writer)
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "silent":
            await _swallow(reader)
            return
        back, forth = await self._connect()
        with contextlib.closing(forth):
            tasks = {asyncio.ensure_future(self._pump(reader, forth)), asyncio.ensure_future(self._pump(back, writer))}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(data)
            await writer.drain()

    async def _connect(self) -> Stream:
        if self._target.scheme == "unix":
            return await asyncio.open_unix_connection(self._target.path)
        return await asyncio.open_connection(self._target.hostname, self._target.port)


async def _swallow(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


@contextlib.asynccontextmanager
async def redis_proxy(redis_url: str, mode: Mode = "pass") -> AsyncIterator[RedisProxy]:
    proxy = RedisProxy(redis_url)
    await proxy.set(mode)
    try:
        yield proxy
    finally:
        await proxy.set("refuse")
