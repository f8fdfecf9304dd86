"""Services over HTTP as separate processes: Throughline with two windows, and the two bare services."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx
from uuid_utils.compat import uuid7

from app.core.model.timings import DEFAULT_TIMINGS
from app.devserver import Endpoints
from app.infrastructure.clock import SystemClock
from app.settings import Settings
from app.storage.migrations import run_migrations
from app.usecases.admin.keys import hash_of
from bench.fixture.served import keys_of
from bench.peers.children.protocol import SpokenMessage, common
from bench.peers.databases import Database
from bench.peers.played import Talk, Turn
from bench.process import running
from bench.speed import Bare, Visited
from tests.acceptance.service import SHORT_TIMINGS, running_service

WINDOW: Final = 32_000
"""Tokens of the smaller window of Throughline; LlamaIndex's memory has 30 000 by default."""
OURS: Final = (f"throughline-{WINDOW}", "throughline")
BARE: Final = ("honest", "naive")
_BATCH: Final = 1_000
_POLL: Final = 0.05
_MAX_POLL_SECONDS: Final = 2.0
_QUIET: Final = 2 * DEFAULT_TIMINGS.sweep_seconds
"""Seconds without a compaction, though the context is above its threshold: a job that ran out of time is followed by
another one after a sweep."""
_TENANT: Final = "00000000-0000-7000-8000-000000000001"
_SECRET: Final = "bench"  # noqa: S105 - of a bare service that nobody else reaches

Load = Callable[[str, str], dict[str, Any]]
"""Gives the served context for a conversation's path and the user's message."""


class _Caller:
    """Makes timed requests to one service."""

    def __init__(self, http: httpx.Client, pid: int) -> None:
        self._visited = Visited(http=http, pid=pid)
        self._http = http
        self._prompts: dict[str, list[SpokenMessage]] = {}
        self._turns = 0

    def get(self, path: str, **params: str | int) -> Any:
        return self._good(self._http.get(path, params=params))

    def post(self, path: str, body: Any, key: str | None = None) -> Any:
        return self._good(self._http.post(path, json=body, headers={"Idempotency-Key": key} if key else None))

    def _good(self, response: httpx.Response) -> Any:
        if not response.is_success:
            raise RuntimeError(f"{response.status_code} {response.text}")
        return response.json()

    def timed(self, work: Callable[[], Any]) -> tuple[Any, float, float]:
        """The result, the seconds of wall time, and the seconds of CPU of caller and service."""
        cpu, began = time.process_time() + self._visited.cpu(), time.perf_counter()
        found = work()
        return found, time.perf_counter() - began, time.process_time() + self._visited.cpu() - cpu

    def turn(self, at: str, user: str, assistant: str, loads: Mapping[str, Load]) -> dict[str, Turn]:
        """Append the user's message, load the context in every way, append the reply; return each way's own turn."""
        key = str(uuid7())
        _, *asked = self.timed(lambda: self._append(at, "user", user, f"{key}-u"))
        self._turns += 1
        order = list(loads)[:: 1 if self._turns % 2 else -1]
        loaded = {name: self.timed(partial(loads[name], at, user)) for name in order}
        _, *answered = self.timed(lambda: self._append(at, "assistant", assistant, f"{key}-a"))
        return {
            name: self._turn(f"{name} {at}", context, (seconds, asked[0], answered[0]), (cpu, asked[1], answered[1]))
            for name, (context, seconds, cpu) in loaded.items()
        }

    def _append(self, at: str, role: str, content: str, key: str) -> None:
        self.post(f"{at}/messages", {"role": role, "content": content}, key)

    def _turn(self, known: str, context: dict[str, Any], seconds: tuple[float, ...], cpu: tuple[float, ...]) -> Turn:
        prompt = [(message["role"], message["content"]) for message in context["messages"]]
        same = common(self._prompts.get(known, []), prompt)
        self._prompts[known] = prompt
        return Turn(seconds=sum(seconds), cpu=sum(cpu), common=same, rest=prompt[same:])


class BareService:
    """A bare service: it would send the whole history."""

    folds = False

    def __init__(self, name: str, caller: _Caller, database: Database) -> None:
        self.name = name
        self.rows = {name: f"bare service, {name}"}
        self._caller = caller
        self._database = database
        self._ids: dict[str, str] = {}

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        """Fill by ``COPY`` with the rows that its appends would write, since it has no batches."""
        began = time.perf_counter()
        made = self._ids[conversation] = self._caller.post("/conversations", {})["id"]
        now = datetime.now(UTC)
        rows = [(uuid7(), UUID(made), seq, *spoken, now) for seq, spoken in enumerate(talk.messages[:count], 1)]
        self._database.run(lambda connection: self._copy(connection, made, rows))
        return time.perf_counter() - began

    async def _copy(self, connection: Any, made: str, rows: list[tuple[Any, ...]]) -> None:
        columns = ["id", "conversation_id", "seq", "role", "content", "created_at"]
        if self.name == "naive":
            await connection.copy_records_to_table("messages", records=rows, columns=columns, schema_name="naive")
            return
        records = [(UUID(_TENANT), *row) for row in rows]
        columns = ["tenant_id", *columns]
        await connection.copy_records_to_table("messages", records=records, columns=columns, schema_name="honest")
        await connection.execute(
            "UPDATE honest.conversations SET last_seq = $2, last_event = $2 WHERE id = $1", UUID(made), len(rows)
        )

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        """Play a turn: all messages are loaded."""
        at = f"/conversations/{self._ids[conversation]}"
        return self._caller.turn(at, user, assistant, {self.name: lambda at, _: self._caller.get(f"{at}/context")})

    def size(self) -> int:
        """The size of the database, which only this service uses."""
        return self._database.size()

    def settle(self) -> None:
        """Do now what its database does by itself after a while."""
        self._database.settle()


class OurService:
    """Throughline with one window. Compactions that a turn starts are waited for after it, without being timed."""

    def __init__(self, caller: _Caller, database: Database, window: int | None) -> None:
        self.folds = window is not None  # the default window is a million tokens: it folds every few hundred turns
        self.name = f"throughline-{window}" if window else "throughline"
        in_window = f"Throughline, window {window:,}" if window else "Throughline, default window"
        self.rows = {self.name: in_window, **({f"{self.name}-recall": f"{in_window}, with recall"} if window else {})}
        self._caller = caller
        self._database = database
        self._policy = {"context_window": window} if window else {}
        self._ids: dict[str, str] = {}

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        """Fill in batches, then wait for the worker's folds."""
        began = time.perf_counter()
        self._ids[conversation] = self._caller.post("/conversations", {"policy": self._policy})["id"]
        at = self._path(conversation)
        for start in range(0, count, _BATCH):
            some = [{"role": role, "content": text} for role, text in talk.messages[start : min(start + _BATCH, count)]]
            self._caller.post(f"{at}/messages/batch", {"messages": some})
        self._settle(at)
        return time.perf_counter() - began

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        """Play a turn: the context is loaded as it is, and with what is recalled for the user's message."""
        loads: dict[str, Load] = {self.name: lambda at, _: self._caller.post(f"{at}/context", {})}
        loads |= {
            name: lambda at, query: self._caller.post(f"{at}/context", {"query": query})
            for name in self.rows
            if name != self.name
        }
        found = self._caller.turn(self._path(conversation), user, assistant, loads)
        self._settle(self._path(conversation))
        return found

    def size(self) -> int:
        """The size of the database, which both windows use."""
        return self._database.size()

    def settle(self) -> None:
        """Do now what its database does by itself after a while."""
        self._database.settle()

    def _path(self, conversation: str) -> str:
        return f"/conversations/{self._ids[conversation]}"

    def _settle(self, at: str) -> None:
        """Wait until nothing is left to fold, or the rest cannot be folded."""
        quiet_since, pause = time.monotonic(), _POLL
        while (folding := self._folding(at)) or (self._due(at) and time.monotonic() < quiet_since + _QUIET):
            if folding:
                quiet_since = time.monotonic()
            time.sleep(pause)
            pause = min(1.5 * pause, _MAX_POLL_SECONDS)

    def _folding(self, at: str) -> bool:
        newest = self._caller.get(f"{at}/compactions", limit=1)["data"]
        return bool(newest) and newest[0]["status"] in {"queued", "running"}

    def _due(self, at: str) -> bool:
        return bool(self._caller.get(f"{at}/usage")["status"] != "ok")


@contextlib.contextmanager
def bare(name: str, database: Database, folder: Path) -> Iterator[BareService]:
    """Run a bare service with a database of its own."""
    service = Bare(name, folder, database.url)
    service.process.start()
    try:
        if name == "honest":
            database.run(
                lambda connection: connection.execute(
                    "INSERT INTO honest.api_keys (secret_hash, tenant_id, scopes) VALUES ($1, $2, '{read,write}')",
                    hash_of(_SECRET),
                    UUID(_TENANT),
                )
            )
        with service.client() as http:
            http.timeout = httpx.Timeout(600)
            yield BareService(name, _Caller(http, service.process.pid), database)
    finally:
        service.process.stop()


@contextlib.contextmanager
def ours(database: Database, redis_url: str, folder: Path) -> Iterator[dict[str, OurService]]:
    """Run Throughline's API and worker with a database of their own, the offline model and a key; one per window."""
    run_migrations(database.url)
    servers = Endpoints(database_url=database.url, redis_url=redis_url)
    settings = {name: str(_default(name)) for name in SHORT_TIMINGS} | {"THROUGHLINE_LOG_LEVEL": "WARNING"}
    with (
        running_service(folder, database_url=database.url, redis_url=redis_url, settings=settings) as service,
        service.client(asyncio.run(_key(servers))) as http,
    ):
        http.timeout = httpx.Timeout(600)
        caller = _Caller(http, service.api.pid)
        made = [OurService(caller, database, window) for window in (WINDOW, None)]
        yield {each.name: each for each in made}


async def _key(servers: Endpoints) -> str:
    async with running(servers, SystemClock(), embedded=True) as process:
        return (await keys_of(process, ["bench"]))["bench"]


def _default(name: str) -> Any:
    return Settings.model_fields[name.removeprefix("THROUGHLINE_").lower()].default
