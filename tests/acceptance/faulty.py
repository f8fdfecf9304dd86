"""A way to the service that has faults: what the next requests meet is asked for at ``POST /fault``.

``{"refuse": 503, "times": 2}`` answers without asking the service; ``{"lose": true}`` asks it and loses the answer;
``{"cut": 2}`` breaks a stream off after so many events. Each is for the next request, or for so many ``times``;
``{"clear": true}`` takes back what was not met.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.gemini_server import serving

Fault = dict[str, Any]

OWN_LENGTH: Final = frozenset({"content-length", "transfer-encoding", "connection"})


class BrokenOffError(Exception):
    """The connection is closed in the middle of an answer."""


class FaultyWay:
    """Passes requests on to a service, except for the faults that are set."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=60)
        self._faults: deque[Fault] = deque()
        self.met: list[Fault] = []
        """The faults that requests have met."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/fault", self.set, methods=["POST"]),
                Route("/{path:path}", self.forward, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
            ]
        )

    async def set(self, request: Request) -> Response:
        fault = await request.json()
        if fault.get("clear"):
            self._faults.clear()
            return Response(status_code=204)
        self._faults.extend([fault] * fault.get("times", 1))
        return Response(status_code=204)

    async def forward(self, request: Request) -> Response:
        fault = self._faults.popleft() if self._faults else {}
        if fault:
            self.met.append(fault)
        if "refuse" in fault:
            problem = {"status": fault["refuse"], "code": "dependency_unavailable", "detail": "x", "retryable": True}
            return JSONResponse(problem, fault["refuse"], {"Retry-After": "0"}, "application/problem+json")
        sent = self._http.build_request(
            request.method,
            request.url.path,
            params=httpx.QueryParams(request.url.query),
            content=await request.body(),
            headers=[(name, value) for name, value in request.headers.items() if name != "host"],
        )
        answer = await self._http.send(sent, stream=True)
        headers = {name: value for name, value in answer.headers.items() if name not in OWN_LENGTH}
        return StreamingResponse(_passed(answer, fault), answer.status_code, headers)


async def _passed(answer: httpx.Response, fault: Fault) -> AsyncIterator[bytes]:
    """The pieces of an answer as they come; with a fault, only its beginning."""
    async with contextlib.aclosing(answer):
        if fault.get("lose"):
            await answer.aread()
            raise BrokenOffError
        events = 0
        async for line in answer.aiter_lines() if "cut" in fault else _raw(answer):
            yield line if isinstance(line, bytes) else f"{line}\n".encode()
            events += line == ""
            if "cut" in fault and events >= fault["cut"]:
                raise BrokenOffError


async def _raw(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_raw():
        yield piece


@contextlib.contextmanager
def faulty_way(url: str) -> Iterator[tuple[str, FaultyWay]]:
    """Serve the way to a service on a port of its own; the fixture has its address and what it met."""
    way = FaultyWay(url)
    with serving(way.app()) as address:
        yield address, way
