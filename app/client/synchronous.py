"""The synchronous client, for code without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Self, TypeVar

import httpx
from httpx_sse import EventSource

from .calls import Call, ListCall
from .errors import ApiError, ConnectionFailedError
from .methods import Methods
from .resources import Page
from .retrying import NO_CONTENT, Command, Outcome, Reply, Retrying, Send, Steps, exchange
from .sse import Stream

T = TypeVar("T")
Item = TypeVar("Item")

TIMEOUT: Final = 90.0
"""Seconds. A turn may wait for a compaction and for a model."""
UNLIMITED: Final = httpx.Limits(max_connections=None, max_keepalive_connections=20)
"""Each open stream holds a connection; with an upper bound, further requests would wait until a stream ends."""


class Throughline(Methods):
    """A client of one service; close it, or use it in a ``with`` statement."""

    def __init__(
        self,
        url: str = "http://localhost:8000",
        *,
        key: str | None = None,
        language: str | None = None,
        timeout: float = TIMEOUT,
        retrying: Retrying = Retrying(),  # noqa: B008 - a frozen value
        transport: httpx.BaseTransport | None = None,
        trust_env: bool = True,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Make a client; no connection is opened yet.

        Args:
            url: The address of the service.
            key: The API key, if the service asks for one.
            language: The language of labels, notifications and titles of problems (``Accept-Language``).
            timeout: Seconds for one attempt, and between two signs of life of a stream.
            retrying: How often and how long it retries.
            transport: The httpx transport, such as one for a proxy or a test.
            trust_env: Whether proxies that the environment names are used.
            sleep: The function that it waits with.
        """
        self._http = httpx.Client(
            base_url=address_of(url),
            headers=headers_of(key, language),
            timeout=timeout,
            limits=UNLIMITED,
            transport=transport,
            trust_env=trust_env,
        )
        self._retrying = retrying
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a request, and repeat it if that may help."""
        return self.run(lambda retrying: exchange(call, retrying))

    def run(self, begin: Callable[[Retrying], Steps[T]]) -> T:
        """Carry out the steps one after the other, and return their result."""
        steps = begin(self._retrying)
        outcome: Outcome = None
        while True:
            try:
                command = steps.send(outcome)
            except StopIteration as end:
                answer: T = end.value
                return answer
            outcome = self._carry_out(command)

    def each(self, listed: ListCall[Item]) -> Generator[Item, None, None]:
        """Every item of a list; pages are read as they are needed."""
        call: Call[Page[Item]] | None = listed.first
        while call is not None:
            page = self.send(call)
            yield from page.data
            call = listed.after(page)

    def follow(self, begin: Callable[[Retrying], Stream[Item]]) -> Generator[Item, None, None]:
        """The items of a stream, over as many connections as needed."""
        stream = begin(self._retrying)
        while not stream.is_over:
            error: ApiError | ConnectionFailedError | None = None
            try:
                with self._http.stream(**request_of(stream.call())) as response:
                    if response.status_code == NO_CONTENT:
                        pass  # there is no stream
                    elif response.is_success:
                        for received in EventSource(response).iter_sse():
                            yield from stream.feed(received)
                            if stream.has_ended:
                                break
                    else:
                        error = Reply(response.status_code, response.headers, response.read()).error
            except httpx.TransportError as failure:
                error = failed(failure, self._http.base_url)
            self._sleep(stream.ended(error))

    def download(self, call: Call[Any]) -> Generator[bytes, None, None]:
        """An answer in pieces as it comes, however long.

        Raises if it breaks off, since the pieces so far are then not complete.
        """
        try:
            with self._http.stream(**request_of(call)) as response:
                if not response.is_success:
                    error = Reply(response.status_code, response.headers, response.read()).error
                    raise error or ConnectionFailedError(f"the service answered with status {response.status_code}")
                yield from response.iter_bytes()
        except httpx.TransportError as failure:
            raise failed(failure, self._http.base_url) from failure

    def _carry_out(self, command: Command) -> Outcome:
        if not isinstance(command, Send):
            self._sleep(command.seconds)
            return None
        try:
            response = self._http.request(**request_of(command.call))
        except httpx.TransportError as failure:
            return failed(failure, self._http.base_url)
        return Reply(response.status_code, response.headers, response.content)


def address_of(url: str) -> str:
    """The service's address.

    Raises:
        ValueError: The address has no protocol, so no attempt could succeed.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address of a service, such as http://localhost:8000")
    return url


def headers_of(key: str | None, language: str | None = None) -> dict[str, str]:
    """The headers of every request.

    Raises:
        ValueError: The key or the language has characters that a header cannot have; the message does not show them.
    """
    if key is not None and not _fits_in_header(key):
        raise ValueError("the key holds a line break, or a character that no key has")
    given = {"Authorization": key and f"Bearer {key}", "Accept-Language": language}
    return _checked_headers({name: value for name, value in given.items() if value is not None})


def request_of(call: Call[Any]) -> dict[str, Any]:
    """A call in the form that httpx takes.

    Raises:
        ValueError: A header has characters that no header can have, so no attempt could succeed.
    """
    return {
        "method": call.method,
        "url": call.path,
        "params": dict(call.params),
        "content": call.body,
        "headers": _checked_headers(call.headers),
    }


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _fits_in_header(value):
            raise ValueError(f"{name} holds a line break, or a character that a header cannot have")
    return dict(headers)


def _fits_in_header(value: str) -> bool:
    return value.isascii() and value.isprintable()


def failed(failure: httpx.TransportError, at: httpx.URL) -> ConnectionFailedError:
    """The error for a failed connection, with the address."""
    what = f"{type(failure).__name__} at {str(at).rstrip('/')}"
    error = ConnectionFailedError(f"{what}: {failure}" if str(failure) else what)
    error.__cause__ = failure
    return error
