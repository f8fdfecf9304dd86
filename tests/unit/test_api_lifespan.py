"""The start and end of a process: it refuses to start with one line, and ends everything that it began."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from fastapi.dependencies.utils import get_dependant
from starlette.types import Message

from app.core.model.errors import DependencyUnavailableError
from app.http.shutdown import Stopping, overhear_signals
from app.infrastructure.garbage import importing
from app.main import create_app
from app.settings import Settings
from app.storage.schema_fit import EARLIER_SCHEMA
from tests.unit.api_fakes import Calls, Feed, Keys, fake_container, world

PATIENCE = 30.0


class Server:
    """The server's side of the lifespan protocol."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Message:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._task = asyncio.create_task(self._app(scope, self._incoming.get, self._outgoing.put))
        return await self._say("lifespan.startup")

    async def stop(self) -> Message:
        answer = await self._say("lifespan.shutdown")
        assert self._task is not None
        await self._task
        return answer

    async def _say(self, type_: str) -> Message:
        await self._incoming.put({"type": type_})
        async with asyncio.timeout(PATIENCE):
            return await self._outgoing.get()


def prepared(*, keys: Keys | None = None, **settings: Any) -> tuple[Server, Calls, Any]:
    calls = Calls()
    container = fake_container(calls, keys or Keys(), Feed(), Settings(_env_file=None, **settings))
    app = create_app(container=container)
    return Server(app), calls, app


async def test_the_first_request_builds_no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(max_body_bytes=1_000_000)
    built: list[str] = []

    def counted(**given: Any) -> Any:
        built.append(given["path"])
        return get_dependant(**given)

    monkeypatch.setattr("fastapi.routing.get_dependant", counted)
    async with made.client() as client:
        assert (await client.get("/presets")).status_code == 200
    assert not built
    APIRouter().get("/presets")(lambda: None)
    assert built == ["/presets"], "control: what is built is counted"


def test_garbage_is_collected_seldom_only_while_modules_are_imported() -> None:
    before = gc.get_threshold()
    with importing():
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before


async def test_a_process_sweeps_while_it_serves() -> None:
    keys = Keys()
    server, calls, app = prepared(keys=keys)
    assert (await server.start())["type"] == "lifespan.startup.complete"
    await asyncio.sleep(0)
    assert keys.is_ready
    assert [name for name, *_ in calls.made] == ["sweeper.run", "measuring.run"]
    assert (await server.stop())["type"] == "lifespan.shutdown.complete"
    await asyncio.wait_for(app.state.stopping.wait(), PATIENCE)
    left = [task for task in asyncio.all_tasks() if task.get_name() in {"sweeper", "measuring"}]
    assert left == []


async def test_a_sweeper_that_dies_is_started_again_and_meanwhile_the_process_says_so() -> None:
    server, calls, app = prepared()
    calls.answers["sweeper.run"] = RuntimeError("of the sweeper")
    await server.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        ready = (await client.get("/readyz")).json()
    assert (ready["status"], ready["background"]) == ("degraded", "restarting")
    del calls.answers["sweeper.run"]
    async with asyncio.timeout(PATIENCE):
        while [name for name, *_ in calls.made].count("sweeper.run") < 2:  # noqa: ASYNC110 - a fake has no event
            await asyncio.sleep(0.01)
    await server.stop()


@pytest.mark.parametrize(
    ("settings", "starts"),
    [
        ({"embedded": True, "host": "127.0.0.1"}, True),
        ({"embedded": True, "host": "::1"}, True),
        ({"embedded": True, "host": "localhost"}, True),
        ({"embedded": True, "host": "0.0.0.0"}, False),  # noqa: S104 - refused is what is tested
        ({"embedded": True, "host": "192.168.1.5"}, False),
        ({"embedded": True, "host": "127.0.0.1", "auth_required": True}, False),
        ({"embedded": False, "host": "127.0.0.1"}, False),
        ({"embedded": True, "host": "0.0.0.0", "auth_required": False}, False),  # noqa: S104
    ],
)
async def test_without_keys(settings: dict[str, Any], *, starts: bool) -> None:
    server, calls, _ = prepared(keys=Keys(exist=False), **settings)
    answer = await server.start()
    assert answer["type"] == ("lifespan.startup.complete" if starts else "lifespan.startup.failed")
    if starts:
        await server.stop()
        return
    assert "\n" not in answer["message"]
    cause = settings["host"] if settings["embedded"] else "DATABASE_URL"
    assert ("THROUGHLINE_AUTH_REQUIRED" if settings.get("auth_required") else cause) in answer["message"]
    assert "throughline keys create" in answer["message"]
    assert calls.made == []


async def test_a_server_with_keys_starts_anywhere() -> None:
    server, _, _ = prepared(embedded=False, host="0.0.0.0")  # noqa: S104
    assert (await server.start())["type"] == "lifespan.startup.complete"
    await server.stop()


async def test_a_database_that_is_away_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_settings: Settings, **_further: object) -> Any:
        raise DependencyUnavailableError("DATABASE_URL is not set")

    monkeypatch.setattr("app.main.build_container", away)
    answer = await Server(create_app(Settings(_env_file=None))).start()
    assert answer == {"type": "lifespan.startup.failed", "message": "DATABASE_URL is not set"}


class AwayAtFirst(Keys):
    """The database answers from the given try on; before that it fails for this cause."""

    def __init__(self, tries: int, cause: Exception | None = None) -> None:
        super().__init__()
        self.left = tries
        self.cause = cause

    async def make_default_tenant(self) -> None:
        self.left -= 1
        if self.left > 0:
            raise DependencyUnavailableError("The database is away or overloaded; try again.") from self.cause
        await super().make_default_tenant()


async def test_a_start_waits_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.http.lifespan.DATABASE_PAUSE", 0.001)
    keys = AwayAtFirst(3)
    server, calls, _ = prepared(keys=keys)
    assert (await server.start())["type"] == "lifespan.startup.complete"
    assert keys.is_ready
    assert ("sweeper.run",) in [call[:1] for call in calls.made]
    await server.stop()


class LibraryError(Exception):
    """The error of a library around the server's own error."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("(of a library)")
        self.__cause__ = cause


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (None, ""),
        (LibraryError(OSError('database "talks" does not exist\nand more')), ' (database "talks" does not exist)'),
        (TimeoutError(), " (TimeoutError)"),
    ],
)
async def test_a_start_gives_up_on_a_database_that_stays_away_and_says_why(
    cause: Exception | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.lifespan.DATABASE_PAUSE", 0.001)
    monkeypatch.setattr("app.http.lifespan.DATABASE_PATIENCE", 0.3)
    keys = AwayAtFirst(10**9, cause)
    server, calls, _ = prepared(keys=keys)
    answer = await server.start()
    assert answer["type"] == "lifespan.startup.failed"
    assert answer["message"] == f"The database is away or overloaded; try again.{why}"
    assert keys.left < 10**9 - 1, "it tried once only"
    assert calls.made == []


async def test_a_start_over_a_schema_that_does_not_fit_is_refused_in_one_line() -> None:
    async def complaint() -> str:
        return EARLIER_SCHEMA

    calls = Calls()
    container: Any = fake_container(calls, Keys(), Feed(), Settings(_env_file=None))
    container.parts.schema_complaint = complaint
    answer = await Server(create_app(container=container)).start()
    assert answer == {"type": "lifespan.startup.failed", "message": EARLIER_SCHEMA}
    assert calls.made == []


async def test_a_start_that_waits_ends_when_it_is_asked_to() -> None:
    server, calls, app = prepared(keys=AwayAtFirst(10**9))
    asyncio.get_running_loop().call_later(0.05, app.state.stopping.begin)
    answer = await server.start()
    assert answer["type"] == "lifespan.startup.failed"
    assert "asked to end" in answer["message"]
    assert calls.made == []


async def test_a_built_container_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()

    async def build(settings: Settings, **_further: object) -> Any:
        return fake_container(calls, Keys(), Feed(), settings)

    monkeypatch.setattr("app.main.build_container", build)
    server = Server(create_app(Settings(_env_file=None)))
    await server.start()
    await server.stop()
    assert [name for name, *_ in calls.made][-1] == "close"


async def test_an_unexpected_failure_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_settings: Settings, **_further: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("app.main.build_container", broken)
    server = Server(create_app(Settings(_env_file=None)))
    answer = await server.start()
    assert "Traceback" in answer["message"]
    assert server._task is not None
    with pytest.raises(ZeroDivisionError):
        await server._task


async def test_signals_are_overheard_and_passed_on() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    stopping = Stopping()
    try:
        with overhear_signals(stopping):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stopping.wait(), PATIENCE)
        assert heard == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.long
async def test_uvicorn_ends_after_a_signal_with_a_stream_open() -> None:
    """A real server and a real socket, with a stream that would never end on its own."""
    serving = (
        "import socket, sys, uvicorn\n"
        "from tests.unit.api_fakes import world\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "print(listener.getsockname()[1], flush=True)\n"
        "config = uvicorn.Config(world(lives=True).app, log_level='warning', access_log=False, lifespan='on')\n"
        "uvicorn.Server(config).run(sockets=[listener])\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", serving, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            port = int(await process.stdout.readline())
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            path = "/conversations/0193e000-0000-7000-8000-000000000002/events"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer reader\r\n\r\n".encode())
            await reader.readuntil(b"retry: 2000")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            rest = await reader.read()
            await process.wait()
        assert rest.endswith(b"0\r\n\r\n")
        writer.close()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
