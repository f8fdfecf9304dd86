"""Servers that a test may kill, freeze and empty, clients that never give up, and a look into the database."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import httpx
import redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.devserver import EmbeddedServers, Endpoints
from app.devserver.processes import ServerProcess
from tests.acceptance.service import SHORT_TIMINGS, Process, children_of, until
from tests.acceptance.talk import BACKGROUND, WINDOW, Json, Listener, Talk, good, read_events
from tests.gemini_server import Gemini, Kind
from tests.servers import execute_sql, with_database

Result = TypeVar("Result")
ServerName = Literal["PostgreSQL", "Valkey"]

HELD: Final[Json] = {"name": "honest", "hold": True}
"""A model call that stays open until it is released, and is then answered honestly."""
MINUTE: Final = 60.0
"""The time in which a killed or forgotten compaction is done: the only time limit that is promised."""
LEASE_SECONDS: Final = float(SHORT_TIMINGS["THROUGHLINE_LEASE_SECONDS"])
RETRY_SECONDS: Final = 0.1  # seconds between two tries of a client that does not give up
_NUMBERS = itertools.count(1)


class OwnServers:
    """PostgreSQL and Valkey, or Valkey alone. Their data survive a kill."""

    def __init__(self, folder: Path, *, postgres: bool = True) -> None:
        self._embedded = EmbeddedServers(folder, postgres=postgres)
        self.endpoints: Endpoints

    def __enter__(self) -> Self:
        self.endpoints = self._embedded.start(attach=False)
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._embedded._servers:
            if server._process is not None and server.alive():
                server._process._process.send_signal(signal.SIGCONT)
        self._embedded.stop()

    @property
    def redis(self) -> redis.Redis:
        """A client that does not wait for ever."""
        return redis.from_url(self.endpoints.redis_url, socket_timeout=2)

    def kill(self, name: ServerName) -> None:
        """``kill -9`` the process, and wait for its end."""
        process = self._process(name)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not process.alive(), what=f"the end of {name}")

    def freeze(self, name: ServerName) -> None:
        """Let the server accept connections and never answer."""
        os.kill(self._process(name).pid, signal.SIGSTOP)

    def thaw(self, name: ServerName) -> None:
        os.kill(self._process(name).pid, signal.SIGCONT)

    def pids(self, name: ServerName) -> set[int]:
        """The server's process and its children."""
        own = self._process(name).pid
        return {own, *children_of(own)}

    def revive(self) -> None:
        """Start what was killed, and wait until it answers."""
        assert self._embedded.revive(), "nothing was dead"

    def _process(self, name: ServerName) -> ServerProcess:
        (process,) = (server._process for server in self._embedded._servers if server.name == name)
        assert process is not None
        return process


@contextlib.contextmanager
def own_database(servers: Endpoints, template: str) -> Iterator[str]:
    """Make a migrated database of the shared server, and return its address."""
    name = f"chaos_{os.getpid()}_{next(_NUMBERS)}"
    execute_sql(servers.database_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield with_database(servers.database_url, name)
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


class Books:
    """Reads the database, and makes time pass in it."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url

    def rows(self, statement: str, **parameters: Any) -> list[Json]:
        """Run one statement, commit, and return its rows."""

        async def run() -> list[Json]:
            engine = create_async_engine(self._url)
            try:
                async with engine.begin() as connection:
                    found = await connection.execute(text(statement), parameters)
                    return [dict(row) for row in found.mappings()] if found.returns_rows else []
            finally:
                await engine.dispose()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(run())).result()

    def value(self, statement: str, **parameters: Any) -> Any:
        """The value of a statement that finds one row of one column."""
        ((value,),) = (row.values() for row in self.rows(statement, **parameters))
        return value

    def seconds(self) -> float:
        """The time of the database's clock, in seconds since 1970."""
        return float(self.value("SELECT extract(epoch FROM clock_timestamp())"))

    def compaction(self, talk: Talk) -> Json:
        """The newest compaction of a conversation, with what clients are not shown: claims and lease."""
        statement = "SELECT * FROM compactions WHERE conversation_id = CAST(:id AS uuid) ORDER BY id DESC LIMIT 1"
        (row,) = self.rows(statement, id=talk.id)
        return row

    def turn(self, talk: Talk) -> Json:
        """The newest turn of a conversation, with times in seconds since 1970."""
        statement = (
            "SELECT id, status, extract(epoch FROM started_at)::float AS started_at,"
            " extract(epoch FROM lease_until)::float AS lease_until, followed_at::text AS followed_at"
            " FROM turns WHERE conversation_id = CAST(:id AS uuid) ORDER BY id DESC LIMIT 1"
        )
        (row,) = self.rows(statement, id=talk.id)
        return row

    def events(self, talk: Talk, prefix: str = "") -> list[Json]:
        """Every event of a conversation, in order."""
        statement = (
            "SELECT number, type, data FROM events WHERE conversation_id = CAST(:id AS uuid)"
            " AND starts_with(type, :prefix) ORDER BY number"
        )
        return self.rows(statement, id=talk.id, prefix=prefix)

    def end_lease(self, compaction: Json) -> None:
        """Let the lease of a dead job expire. If another process has taken the job over, its lease stays."""
        change = "UPDATE compactions SET lease_until = clock_timestamp() - interval '1 second'"
        held = {name: compaction[name] for name in ("id", "lease_token")}
        self.rows(f"{change} WHERE id = :id AND lease_token = :lease_token", **held)

    def set_turn_lease(self, talk: Talk, seconds: float) -> None:
        """Let the lease of a dead turn end in this many seconds."""
        change = "UPDATE turns SET lease_until = clock_timestamp() + make_interval(secs => :seconds)"
        running = "conversation_id = CAST(:id AS uuid) AND status = 'running'"
        assert self.rows(f"{change} WHERE {running} RETURNING id", id=talk.id, seconds=seconds), "no turn runs"

    def busy(self) -> list[Json]:
        """Connections that are within a statement or a transaction, except this one."""
        return self.rows(
            "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND application_name = 'throughline' AND state <> 'idle'"
        )


def outcomes(gemini: Gemini, kind: Kind = "compaction") -> list[str]:
    """The outcomes of the model calls of a kind: ``open`` while a call is held, ``client_left`` if its caller died."""
    return [request["outcome"] for request in gemini.requests(kind)]


def most_at_once(requests: Sequence[Json]) -> int:
    """The number of model calls that were open at the same time."""
    moments = [(request["started"], 1) for request in requests]
    moments += [(request["ended"], -1) for request in requests if request["ended"] is not None]
    return max(itertools.accumulate(change for _, change in sorted(moments)), default=0)


def past_the_threshold(talk: Talk) -> Talk:
    """Fill a conversation of the small window so that a background compaction is due."""
    assert talk.created["policy"]["context_window"] == WINDOW["context_window"]
    talk.fill(BACKGROUND + 200)
    assert len(talk.compactions()) == 1
    return talk


def check_applied_once(talk: Talk, books: Books) -> Json:
    """Insist that one compaction was applied once and told once; return its row as clients see it."""
    (row,) = talk.compactions()
    assert (row["status"], row["reason"]) == ("applied", None)
    assert (row["state_version_before"], row["state_version_after"]) == (0, 1)
    conversation = talk.get()
    assert (conversation["state_version"], conversation["compression_count"]) == (1, 1)
    assert [version["compaction_id"] for version in talk.pages("/states")] == [row["id"]]
    told = [event["type"] for event in books.events(talk, "compaction.")]
    assert told[-1] == "compaction.applied"
    assert told.count("compaction.applied") == 1
    assert "compaction.failed" not in told
    return row


def pool_children(worker: Process) -> list[int]:
    """The worker's forks, which perform its jobs; its other children are programs of their own."""
    own = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
    return [child for child in worker.children if Path(f"/proc/{child}/cmdline").read_bytes() == own]


def kill_children(worker: Process) -> None:
    """``kill -9`` of the pool's children; the parent lives."""
    children = pool_children(worker)
    assert children
    for child in children:
        os.kill(child, signal.SIGKILL)


def at_once(count: int, call: Callable[[int], Result]) -> list[Result]:
    """Make this many calls from as many threads that start together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Result:
        barrier.wait(30)
        return call(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def broken_off(talk: Talk, content: str | None = None, **headers: str) -> bool:
    """Whether a turn got no answer because the connection broke."""
    try:
        talk.chat(content, **headers)
    except httpx.TransportError:
        return True
    return False


class FaithfulFollower(Listener):
    """``GET …/events`` by a client that comes back with ``Last-Event-ID`` whenever its stream ends."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self.talk = talk
        self._socket: socket.socket | None = None
        self.connections = 0
        """The number of streams that were answered."""

    def leave(self) -> None:
        """Close the connection in the middle of the stream; the follower comes back at once."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def wait_for_connection(self, number: int) -> None:
        """Return when this many streams have been answered."""
        until(lambda: self.connections >= number, MINUTE, what=f"connection {number}")

    def release(self) -> None:
        self.leave()

    def check(self, books: Books) -> None:
        """Insist that everything was heard once, in order."""
        numbers = [event["number"] for event in books.events(self.talk)]
        self.wait_for(lambda events: len(events) >= len(numbers), what=f"{len(numbers)} events")
        assert self.numbers() == numbers == list(range(1, len(numbers) + 1))

    def _run(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(httpx.HTTPError, httpx.StreamError, OSError), self.talk.service.client() as http:
                self._follow(http)
            self._closing.wait(RETRY_SECONDS)

    def _follow(self, http: httpx.Client) -> None:
        headers = {"Last-Event-ID": self.events[-1]["id"]} if self.events else {}
        with http.stream("GET", self.talk.path("/events"), headers=headers) as response:
            if not response.is_success:
                return
            self._socket = response.extensions["network_stream"].get_extra_info("socket")
            self.connections += 1
            self.ready.set()
            for event in read_events(response):
                self.events.append(event.data)
                if self._closing.is_set():
                    return


@dataclass
class Said:
    """One message of a writer, and what became of it."""

    talk: Talk
    writer: int
    content: str
    key: str
    tries: int = 0
    answer: Json = field(default_factory=dict)


class Load:
    """Writers that append one message after the other, each under its key until it is acknowledged."""

    def __init__(self, talks: Sequence[Talk], writers: int = 8) -> None:
        self._talks = talks
        self._writers = writers
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(writers)
        self.said: list[Said] = []
        self.refusals: set[tuple[int, str]] = set()
        """Statuses and codes of answers after which writers were told to try again."""

    def __enter__(self) -> Self:
        self._running = [self._threads.submit(self._write, number) for number in range(self._writers)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._threads.shutdown()
        for writer in self._running:
            writer.result()

    @property
    def acknowledged(self) -> int:
        return sum(bool(said.answer) for said in self.said)

    @property
    def interrupted(self) -> int:
        """The number of messages whose first try did not succeed."""
        return sum(said.tries > 1 for said in self.said)

    def wait_for_more(self, count: int = 100) -> None:
        """Return when this many further messages are acknowledged."""
        goal = self.acknowledged + count
        until(lambda: self.acknowledged >= goal or self._died(), MINUTE, what=f"{count} more messages")
        assert not self._died(), "a writer died"

    def check(self, books: Books) -> None:
        """Insist that every acknowledged message is stored once, in a total order."""
        for talk in self._talks:
            mine = [said for said in self.said if said.talk is talk]
            history = talk.history()
            assert [item["seq"] for item in history] == list(range(1, len(mine) + 1))
            assert {item["id"]: item["content"] for item in history} == {
                said.answer["id"]: said.content for said in mine
            }
            assert all(history[said.answer["seq"] - 1]["id"] == said.answer["id"] for said in mine)
            for writer in {said.writer for said in mine}:
                order = [said.answer["seq"] for said in mine if said.writer == writer]
                assert order == sorted(order), "a writer's messages keep their order"
            numbers = [event["number"] for event in books.events(talk)]
            assert numbers == list(range(1, len(numbers) + 1))

    def _died(self) -> bool:
        return any(writer.done() for writer in self._running)

    def _write(self, writer: int) -> None:
        talk = self._talks[writer % len(self._talks)]
        for number in itertools.count(1):
            if self._stopping.is_set():
                return
            content = f"Writer {writer} counts boxes in the cellar and has come to {number}."
            said = Said(talk=talk, writer=writer, content=content, key=f"load-{id(self)}-{writer}-{number}")
            self.said.append(said)
            said.answer = self._acknowledged(said)

    def _acknowledged(self, said: Said) -> Json:
        deadline = time.monotonic() + MINUTE
        while True:
            said.tries += 1
            with contextlib.suppress(httpx.TransportError):
                response = said.talk.post(
                    "/messages", {"role": "user", "content": said.content}, Idempotency_Key=said.key
                )
                if response.is_success:
                    return good(response)
                problem = response.json()
                assert problem["retryable"], f"a message was refused: {problem}"
                self.refusals.add((response.status_code, problem["code"]))
            assert time.monotonic() < deadline, f"not acknowledged within a minute: {said}"
            time.sleep(RETRY_SECONDS)
