"""A scripted Gemini server: Google's wire format on a socket, with every fault a test can ask for.

In a test: ``with running_gemini() as gemini: gemini.script("compaction", "error_500", "honest")``. As a process of its
own, which API and worker processes can reach: ``python -m tests.gemini_server --port 8090`` (or ``gemini_process()``).
Behaviours and their keys are those of ``tests/gemini_faults.py``; a request that is streamed is of kind ``chat``, one
with a response schema of kind ``compaction``, or ``verification`` where it asks for verdicts, or ``probes`` where it
asks for those, one that asks to retell a stretch of kind ``detail``, every other one of kind ``chat``.

Control: ``POST /script {kind, behaviours?, default?, replace?}``, ``GET /requests``, ``POST /release``,
``POST /reset``, ``GET`` and ``POST /caches`` (``tests/gemini_caches.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any, Final, Literal, get_args

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.core.summarizer.detail_prompts import DETAIL_TASK
from tests.gemini_caches import OWNED, Caches
from tests.gemini_faults import BEHAVIOURS, HANG, Answer, Asked, Behaviour, answer, error, too_long
from tests.gemini_files import Files
from tests.gemini_wire import (
    CACHED_TOKENS,
    chunk,
    counted,
    encoded,
    parts_of,
    pieces,
    prompt_of,
    prompt_tokens,
    shows_thoughts,
)
from tests.servers import ROOT, unused_port

Kind = Literal["compaction", "verification", "detail", "chat"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
KEY: Final = "test-key"
HONEST: Final[Behaviour] = {"name": "honest"}
_GOOD: Final = 200
_PATIENCE: Final = 10.0  # seconds until one of our servers must answer
_START: Final = 60.0  # seconds until its process or a service has answered, also on a busy machine


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One model call as it came in, with its outcome."""

    number: int
    kind: Kind
    model: str
    method: str
    behaviour: Mapping[str, Any]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    started: float
    ended: float | None = None
    outcome: Literal["open", "answered", "reset", "client_left"] = "open"

    def end(self, outcome: Literal["answered", "reset", "client_left"]) -> None:
        """Note the outcome; the first one noted counts."""
        if self.ended is None:
            self.ended, self.outcome = time.time(), outcome


@dataclass(slots=True)
class Script:
    """What the server will do next."""

    queues: dict[str, deque[Behaviour]] = field(default_factory=lambda: {kind: deque() for kind in KINDS})
    defaults: dict[str, Behaviour] = field(default_factory=lambda: dict.fromkeys(KINDS, HONEST))
    requests: list[Recorded] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    releases: int = 0
    caches: Caches = field(default_factory=Caches)

    def take(self, kind: Kind) -> Behaviour:
        """Take the next behaviour of this kind."""
        queue = self.queues[kind]
        return queue.popleft() if queue else self.defaults[kind]

    def change(self, kind: Kind, behaviours: list[Behaviour], default: Behaviour | None, *, replace: bool) -> None:
        """Add to a queue (or replace it), and set what is done when it is empty."""
        if replace:
            self.queues[kind].clear()
        for behaviour in behaviours:
            self.queues[kind].extend([behaviour] * int(behaviour.get("times", 1)))
        self.defaults[kind] = default or self.defaults[kind]

    def release(self) -> None:
        """Release every call that is held."""
        self.releases += 1
        self.released.set()
        self.released = asyncio.Event()

    async def until_released(self, times: int) -> None:
        """Return once there were this many releases in all tests."""
        while self.releases < times:
            await self.released.wait()

    def reset(self) -> None:
        """Forget everything."""
        self.release()
        self.caches.hold = False
        self.queues, self.defaults, self.requests = Script().queues, Script().defaults, []
        self.caches = Caches()


class Server:
    """The routes over one script."""

    def __init__(self) -> None:
        self.script = Script()
        self.files = Files()

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1beta/models/{call:path}", self.model_call, methods=["POST"]),
                Route("/v1beta/cachedContents", self.cached, methods=["GET", "POST"]),
                Route("/v1beta/cachedContents/{id}", self.cached, methods=["GET", "PATCH", "DELETE"]),
                Route("/caches", self.caches, methods=["GET", "POST"]),
                Route("/script", self.change_script, methods=["POST"]),
                Route("/requests", self.recorded),
                Route("/release", self.release, methods=["POST"]),
                Route("/reset", self.reset, methods=["POST"]),
                *self.files.routes(),
            ]
        )

    async def model_call(self, request: Request) -> Response:
        """Answer ``models/{model}:{method}``."""
        model, _, method = request.path_params["call"].rpartition(":")
        body = await request.json()
        if not request.headers.get("x-goog-api-key"):
            return _refused(error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."))
        if method == "countTokens":
            return JSONResponse(counted(body))
        if (refusal := self.files.refusal(body, request.headers["x-goog-api-key"])) is not None:
            return refusal
        return await _generate(self.script, request, model, method, body)

    async def cached(self, request: Request) -> Response:
        """The caches of the server."""
        return await self.script.caches.serve(request)

    async def caches(self, request: Request) -> Response:
        """Change how caches behave; return what is kept, and what was asked for."""
        caches = self.script.caches
        if request.method == "POST":
            caches.change(await request.json())
        kept = [{**one.wire(), "body": one.body} for one in caches.kept.values()]
        return JSONResponse({"kept": kept, "log": caches.log})

    async def change_script(self, request: Request) -> Response:
        """Queue behaviours, set a default."""
        change = await request.json()
        try:
            behaviours = [_behaviour(item) for item in change.get("behaviours", [])]
            default = _behaviour(change["default"]) if change.get("default") is not None else None
        except ValueError as wrong:
            return JSONResponse({"error": str(wrong)}, status_code=422)
        self.script.change(change["kind"], behaviours, default, replace=bool(change.get("replace")))
        return JSONResponse({})

    async def recorded(self, _: Request) -> Response:
        """Every model call so far."""
        return JSONResponse({"data": [asdict(item) for item in self.script.requests]})

    async def release(self, _: Request) -> Response:
        """Release what is held."""
        self.script.release()
        return JSONResponse({})

    async def reset(self, _: Request) -> Response:
        """Forget everything."""
        self.script.reset()
        self.files.reset()
        return JSONResponse({})


def _behaviour(item: str | Behaviour) -> Behaviour:
    behaviour = {"name": item} if isinstance(item, str) else dict(item)
    if behaviour["name"] not in BEHAVIOURS:
        raise ValueError(f"no behaviour {behaviour['name']!r}")
    return behaviour


async def _generate(script: Script, request: Request, model: str, method: str, body: Mapping[str, Any]) -> Response:
    schema = body.get("generationConfig", {}).get("responseJsonSchema")
    streamed, releases = method == "streamGenerateContent", script.releases
    kind = "chat" if streamed else _kind(schema, body)
    behaviour = script.take(kind)
    record = Recorded(
        number=len(script.requests) + 1,
        kind=kind,
        model=model,
        method=method,
        behaviour=behaviour,
        body=body,
        headers=dict(request.headers),
        started=time.time(),
    )
    script.requests.append(record)
    if not await _waited(script, request, behaviour):
        record.end("client_left")
        return Response(status_code=499)
    named = script.caches.named(body, model)
    if isinstance(named, Answer):
        record.end("answered")
        return _refused(named)
    if named is not None:  # its contents belong to the prompt, and are counted
        held = {key: named.body[key] for key in OWNED if key in named.body}
        body = {**body, **held, CACHED_TOKENS: named.tokens}
    elif script.caches.implicit is not None:
        body = {**body, CACHED_TOKENS: int(prompt_tokens(body) * script.caches.implicit)}
    given = _answered(
        Asked(prompt=prompt_of(body, kind), schema=schema, streamed=streamed, is_detail=kind == "detail"),
        behaviour,
        body,
    )
    if given.reset and not (streamed and given.text):
        record.end("reset")
        _cut(request)
        return Response(status_code=_GOOD)
    if not streamed or given.status != _GOOD or given.raw is not None:
        record.end("answered")
        return _refused(given) if given.error else _whole(given, model, body)
    may_go_on = partial(_held, script, request, behaviour, releases)
    return StreamingResponse(_streamed(request, record, given, model, body, may_go_on), media_type="text/event-stream")


def _kind(schema: Mapping[str, Any] | None, body: Mapping[str, Any]) -> Kind:
    if schema:
        return "verification" if "verdicts" in schema["properties"] else "compaction"
    return "detail" if DETAIL_TASK in prompt_of(body, "detail") else "chat"


def _answered(asked: Asked, behaviour: Behaviour, body: Mapping[str, Any]) -> Answer:
    tokens, limit = prompt_tokens(body), behaviour.get("max_input_tokens")
    if limit is not None and tokens > limit:
        return too_long(tokens, limit)
    given = answer(asked, behaviour)
    return given if shows_thoughts(body) else replace(given, thoughts="")


async def _waited(script: Script, request: Request, behaviour: Behaviour) -> bool:
    """Whether the client is still connected after the behaviour's delay and hold."""
    delay = float(behaviour.get("delay", HANG if behaviour["name"] == "hang" else 0))
    if behaviour.get("hold"):
        return await _outlasted(request, script.until_released(script.releases + 1))
    return await _outlasted(request, asyncio.sleep(delay)) if delay else True


async def _held(script: Script, request: Request, behaviour: Behaviour, releases: int, number: int) -> bool:
    """Whether the client is still connected when its piece of this number may be sent; it asked after ``releases``."""
    first = behaviour.get("hold_after", math.inf)
    if number <= first:
        return True
    times = number - first if behaviour.get("one_by_one") else 1
    return await _outlasted(request, script.until_released(releases + times))


async def _outlasted(request: Request, wait: Coroutine[Any, Any, None]) -> bool:
    """Whether the client is still connected after the wait."""
    waiting = asyncio.ensure_future(wait)
    gone = asyncio.ensure_future(request.receive())  # the body is read: the next message is the disconnect
    done, pending = await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return gone not in done


def _cut(request: Request) -> None:
    """Reset the connection, as a dying proxy does: without FIN, and with nothing flushed."""
    transport = request.receive.__self__.transport  # type: ignore[attr-defined]  # uvicorn's request cycle
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _refused(given: Answer) -> Response:
    return JSONResponse(given.error, status_code=given.status)


def _whole(given: Answer, model: str, body: Mapping[str, Any]) -> Response:
    if given.raw is not None:
        return Response(given.raw, media_type="text/html")
    return Response(encoded(chunk(given, model, body, parts_of(given), last=True)), media_type="application/json")


_TIME_TO_READ: Final = 0.05
"""Seconds for the client to read what came before a reset, which would discard it."""


async def _streamed(
    request: Request,
    record: Recorded,
    given: Answer,
    model: str,
    body: Mapping[str, Any],
    may_go_on: Callable[[int], Awaitable[bool]],
) -> AsyncIterator[bytes]:
    """Send server-sent events, with the answer in a few chunks; a reset comes after half of them."""
    try:
        cut = pieces(given)
        for number, parts in enumerate(cut, 1):
            if not await may_go_on(number):
                return
            if given.reset and number > len(cut) // 2:
                record.end("reset")
                await asyncio.sleep(_TIME_TO_READ)
                _cut(request)
                return
            data = chunk(given, model, body, parts, last=number == len(cut))
            yield b"data: " + encoded(data) + b"\r\n\r\n"
            await asyncio.sleep(float(record.behaviour.get("pace", 0)))
        record.end("answered")
    finally:
        record.end("client_left")


@cache
def _http() -> httpx.Client:
    """What the tests of a process ask servers with; no connection is kept, since a server may end at any time."""
    return httpx.Client(timeout=_PATIENCE, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


@dataclass(frozen=True, slots=True)
class Gemini:
    """Controls a running server, in this process or in another."""

    url: str

    def script(
        self, kind: Kind, *behaviours: str | Behaviour, default: str | Behaviour | None = None, replace: bool = False
    ) -> None:
        """Queue behaviours for the next calls of a kind, and set what comes when the queue is empty."""
        change = {"kind": kind, "behaviours": list(behaviours), "default": default, "replace": replace}
        self._post("/script", change)

    def requests(self, kind: Kind | None = None) -> list[dict[str, Any]]:
        """Model calls so far, oldest first."""
        data: list[dict[str, Any]] = _http().get(f"{self.url}/requests").json()["data"]
        return [item for item in data if kind in {None, item["kind"]}]

    def files(self) -> dict[str, Any]:
        """The ``kept`` files, the number of ``uploads`` that began, and the names of the ``deleted``."""
        found: dict[str, Any] = _http().get(f"{self.url}/files/kept").json()
        return found

    def script_files(self, **faults: Any) -> None:
        """How the next uploads are handled: see ``gemini_files.Faults``."""
        self._post("/files/script", faults)

    def forget_files(self, name: str | None = None) -> None:
        """Let files expire."""
        self._post("/files/forget", {"name": name})

    def caches(self, **change: Any) -> list[dict[str, Any]]:
        """Change how caches behave (``tests/gemini_caches.py``), and return those that are kept."""
        if change:
            self._post("/caches", change)
        kept: list[dict[str, Any]] = self._caches()["kept"]
        return kept

    def cache_calls(self, method: str | None = None) -> list[dict[str, Any]]:
        """The requests about caches so far, the oldest first."""
        log: list[dict[str, Any]] = self._caches()["log"]
        return [item for item in log if method in {None, item["method"]}]

    def _caches(self) -> dict[str, Any]:
        told: dict[str, Any] = _http().get(f"{self.url}/caches").json()
        return told

    def release(self) -> None:
        """Release the calls that are held."""
        self._post("/release", {})

    def reset(self) -> None:
        """Return to honest answers, and forget all records."""
        self._post("/reset", {})

    def wait_for(self, kind: Kind, calls: int = 1) -> None:
        """Return once this many calls of a kind have come in."""
        deadline = time.monotonic() + _START
        while len(self.requests(kind)) < calls:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {calls} {kind} calls within {_START} s")
            time.sleep(0.02)

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        _http().post(f"{self.url}{path}", content=encoded(body)).raise_for_status()


@contextlib.contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve an application in a thread of this process, on a free port; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(_config(app, port=0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()  # the socket listens already: early connections wait in its backlog
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(_PATIENCE)
        listener.close()


@contextlib.contextmanager
def running_gemini() -> Iterator[Gemini]:
    """Run a server in a thread of this process, on a free port."""
    with serving(Server().app()) as url:
        yield Gemini(url)


@contextlib.contextmanager
def gemini_process() -> Iterator[Gemini]:
    """Run a server as a process of its own, on a free port."""
    port = unused_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.gemini_server", "--port", str(port)], cwd=ROOT)
    gemini = Gemini(f"http://127.0.0.1:{port}")
    try:
        _await_answer(gemini)
        yield gemini
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_answer(gemini: Gemini) -> None:
    deadline = time.monotonic() + _START
    while True:
        try:
            gemini.requests()
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _config(app: Starlette, *, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="error", lifespan="off", http="h11", timeout_graceful_shutdown=1
    )


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description="A scripted Gemini server.")
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    print(f"http://127.0.0.1:{port}", flush=True)
    uvicorn.Server(_config(Server().app(), port=port)).run()


if __name__ == "__main__":
    main()
