"""Redis emptied, killed, silent and full. Chat and appends go on, no compaction and no event is lost.

A Valkey of these tests' own, and the offline model; the worker and the API are processes.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import httpx
import pytest
import redis

from app.devserver import Endpoints
from app.infrastructure.job_queue import QUEUE_NAME
from tests.acceptance.chaos import (
    MINUTE,
    Books,
    FaithfulFollower,
    OwnServers,
    check_applied_once,
    own_database,
    past_the_threshold,
)
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.talk import WINDOW, Talk

pytestmark = [pytest.mark.long, pytest.mark.processes]

JOBS: Final = 8
SAMPLES: Final = 30
SLOWER: Final = 5.0
"""How many times as large the median latency may be; a call that waits for Redis takes a hundred times as long."""
FLUSH_SECONDS: Final = 0.01


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServers]:
    with OwnServers(tmp_path_factory.mktemp("valkey"), postgres=False) as own:
        yield own


@pytest.fixture(scope="module")
def over_valkey(
    valkey: OwnServers, servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with (
        own_database(servers, database_template) as database_url,
        running_service(
            tmp_path_factory.mktemp("redis_away"), database_url=database_url, redis_url=valkey.endpoints.redis_url
        ) as running,
    ):
        yield running


@pytest.fixture
def service(over_valkey: Service) -> Service:
    """The service with all its processes running, whatever the test before has killed."""
    for process in over_valkey.processes:
        if not process.alive:
            process.start()
    return over_valkey


@pytest.fixture
def books(over_valkey: Service) -> Books:
    return Books(over_valkey.database_url)


@pytest.mark.case("32-flushed")
def test_redis_flushed_while_jobs_are_queued(
    service: Service, valkey: OwnServers, start_talk: StartTalk, books: Books
) -> None:
    assert service.worker.stop() == 0
    talks = [past_the_threshold(start_talk(service, policy=WINDOW)) for _ in range(JOBS)]
    with valkey.redis as connection:
        until(lambda: connection.llen(QUEUE_NAME) >= JOBS, what="the jobs in Redis")
        assert all(books.compaction(talk)["sent_at"] for talk in talks)
        connection.flushall()
        assert connection.dbsize() == 0, "Redis has forgotten everything"
    flushed_at = time.monotonic()
    service.worker.start()
    for talk in talks:
        talk.wait_ended(seconds=MINUTE)
    assert time.monotonic() - flushed_at < MINUTE
    assert [check_applied_once(talk, books)["ran_in"] for talk in talks] == ["worker"] * JOBS


@pytest.mark.case("32-flushed")
def test_redis_flushed_again_and_again(
    service: Service, valkey: OwnServers, start_talk: StartTalk, books: Books
) -> None:
    with flushing(valkey) as flushes:
        talks = []
        for _ in range(JOBS):
            talks.append(past_the_threshold(start_talk(service, policy=WINDOW)))
            before = len(flushes)
            until(lambda: len(flushes) > before, what="a flush")  # noqa: B023 - called at once
        for talk in talks:
            talk.wait_ended(seconds=MINUTE)
    for talk in talks:
        check_applied_once(talk, books)


@contextmanager
def flushing(valkey: OwnServers) -> Iterator[list[float]]:
    """Run ``FLUSHALL`` all the time, and note when."""
    flushes: list[float] = []
    done = threading.Event()

    def flush() -> None:
        with valkey.redis as connection:
            while not done.wait(FLUSH_SECONDS):
                connection.flushall()
                flushes.append(time.monotonic())

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(flush)
        try:
            yield flushes
        finally:
            done.set()
            running.result(10)


@dataclass(frozen=True)
class Outage:
    """A way in which Redis fails."""

    valkey: OwnServers
    way: str

    def begin(self) -> None:
        match self.way:
            case "killed":
                self.valkey.kill("Valkey")
            case "silent":
                self.valkey.freeze("Valkey")
            case _:
                with self.valkey.redis as connection:
                    connection.config_set("maxmemory", 1)

    def end(self) -> None:
        match self.way:
            case "killed":
                self.valkey.revive()
            case "silent":
                self.valkey.thaw("Valkey")
            case _:
                with self.valkey.redis as connection:
                    connection.config_set("maxmemory", 0)

    @property
    def lasts(self) -> bool:
        """Whether a write is refused, or not answered."""
        try:
            with self.valkey.redis as connection:
                connection.set("probe", "x")
        except redis.RedisError:
            return True
        return False


@pytest.fixture(params=["killed", "silent", "full"])
def outage(request: pytest.FixtureRequest, valkey: OwnServers) -> Iterator[Outage]:
    away = Outage(valkey, request.param)
    until(lambda: not away.lasts, what="an answer of Redis")
    yield away
    with suppress(AssertionError, redis.RedisError):
        away.end()


@pytest.mark.case("32-away", "32-silent", "32-full")
def test_the_service_goes_on_while_redis_is_away(
    outage: Outage, service: Service, start_talk: StartTalk, books: Books
) -> None:
    talk, heard = start_talk(service), start_talk(service, policy=WINDOW)
    append, chat = latencies(talk)
    with FaithfulFollower(heard) as follower:
        outage.begin()
        past_the_threshold(heard)
        append_meanwhile, chat_meanwhile = latencies(talk)
        assert append_meanwhile < SLOWER * append
        assert chat_meanwhile < SLOWER * chat
        assert httpx.get(f"{service.url}/readyz", trust_env=False).is_success
        follower.wait_for(lambda events: events, what="what happened since Redis went away")
        heard.wait_ended(seconds=MINUTE)
        assert outage.lasts, "it was away all the time"
        assert check_applied_once(heard, books)["ran_in"] == "sweeper"
        assert heard.compact()["status"] == "applied"

        outage.end()
        until(lambda: not outage.lasts, what="an answer of Redis")
        heard.chat("Redis is back, I hear.")
        until(lambda: goes_to_the_worker(start_talk(service, policy=WINDOW), books), MINUTE, what="the worker")
        follower.check(books)
        assert follower.connections == 1, "the stream went on"
    check_history(talk)


def goes_to_the_worker(talk: Talk, books: Books) -> bool:
    """Whether the worker does a compaction; while it is still reconnecting, the sweeper does it."""
    past_the_threshold(talk)
    talk.wait_ended(seconds=MINUTE)
    return bool(check_applied_once(talk, books)["ran_in"] == "worker")


def latencies(talk: Talk) -> tuple[float, float]:
    """The median times of an append and of a turn, as multiples of a request without Redis.

    The calls take turns, so that whatever else the machine does slows all three.
    """
    looks, appends, chats = [], [], []
    for number in range(SAMPLES):
        looks.append(seconds_of(talk.get))
        appends.append(seconds_of(lambda: talk.append("Another box stands in the cellar.")))
        if number % 3 == 0:
            chats.append(seconds_of(lambda: talk.chat("Where is the box that came last?")))
    look = statistics.median(looks)
    return statistics.median(appends) / look, statistics.median(chats) / look


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def check_history(talk: Talk) -> None:
    history = talk.history()
    assert [item["seq"] for item in history] == list(range(1, len(history) + 1))
    asked = [item["seq"] for item in history if item["content"].startswith("Where is the box")]
    assert len(asked) == 2 * SAMPLES // 3
    assert all(history[seq]["role"] == "assistant" for seq in asked), "every turn has its reply"
