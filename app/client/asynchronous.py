"""The asynchronous client: the same requests and retries as the synchronous one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Self, TypeVar

import httpx
from httpx_sse import EventSource

from .calls import Call, ListCall
from .errors import ApiError, ConnectionFailedError
from .methods import Methods
from .resources import Page
from .retrying import NO_CONTENT, Command, Outcome, Reply, Retrying, Send, Steps, exchange
from .sse import Stream
from .synchronous import TIMEOUT, UNLIMITED, address_of, failed, headers_of, request_of

T = TypeVar("T")
Item = TypeVar("Item")


class AsyncThroughline(Methods):
    """A client of one service; close it, or use it in an ``async with`` statement."""

    def __init__(
        self,
        url: str = "http://localhost:8000",
        *,
        key: str | None = None,
        language: str | None = None,
        timeout: float = TIMEOUT,
        retrying: Retrying = Retrying(),  # noqa: B008 - a frozen value
        transport: httpx.AsyncBaseTransport | None = None,
        trust_env: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what ``Throughline`` takes."""
        self._http = httpx.AsyncClient(
            base_url=address_of(url),
            headers=headers_of(key, language),
            timeout=timeout,
            limits=UNLIMITED,
            transport=transport,
            trust_env=trust_env,
        )
        self._retrying = retrying
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a request, and repeat it if that may help."""
        return await self.run(lambda retrying: exchange(call, retrying))

    async def run(self, begin: Callable[[Retrying], Steps[T]]) -> T:
        """Carry out the steps one after the other, and return their result."""
        steps = begin(self._retrying)
        outcome: Outcome = None
        while True:
            try:
                command = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = await self._carry_out(command)

    async def each(self, listed: ListCall[Item]) -> AsyncGenerator[Item, None]:
        """Every item of a list; pages are read as they are needed."""
        call: Call[Page[Item]] | None = listed.first
        while call is not None:
            page = await self.send(call)
            for item in page.data:
                yield item
            call = listed.after(page)

    async def follow(self, begin: Callable[[Retrying], Stream[Item]]) -> AsyncGenerator[Item, None]:
        """The items of a stream, over as many connections as needed."""
        stream = begin(self._retrying)
        while not stream.is_over:
            error: ApiError | ConnectionFailedError | None = None
            try:
                async with self._http.stream(**request_of(stream.call())) as response:
                    if response.status_code == NO_CONTENT:
                        pass  # there is no stream
                    elif response.is_success:
                        async with aclosing(EventSource(response).aiter_sse()) as events:
                            async for received in events:
                                for item in stream.feed(received):
                                    yield item
                                if stream.has_ended:
                                    break
                    else:
                        error = Reply(response.status_code, response.headers, await response.aread()).error
            except httpx.TransportError as failure:
                error = failed(failure, self._http.base_url)
            await self._sleep(stream.ended(error))

    async def download(self, call: Call[Any]) -> AsyncGenerator[bytes, None]:
        """An answer in pieces as it comes, however long.

        Raises if it breaks off, since the pieces so far are then not complete.
        """
        try:
            async with self._http.stream(**request_of(call)) as response:
                if not response.is_success:
                    error = Reply(response.status_code, response.headers, await response.aread()).error
                    raise error or ConnectionFailedError(f"the service answered with status {response.status_code}")
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as failure:
            raise failed(failure, self._http.base_url) from failure

    async def _carry_out(self, command: Command) -> Outcome:
        if not isinstance(command, Send):
            await self._sleep(command.seconds)
            return None
        try:
            response = await self._http.request(**request_of(command.call))
        except httpx.TransportError as failure:
            return failed(failure, self._http.base_url)
        return Reply(response.status_code, response.headers, response.content)
