"""The producer: what it puts on the broker, and that a broker that is away costs almost no time."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from redis.asyncio import Redis
from redis.connection import Connection

from app.circuit import Circuit
from app.infrastructure import job_queue
from app.infrastructure.job_queue import (
    LATER_TASK_NAMES,
    QUEUE_NAME,
    TASK_NAME,
    CeleryJobQueue,
    celery_broker_url,
)
from app.usecases.ports import JobKind
from tests.cases import guarded
from tests.proxy import redis_proxy


@asynccontextmanager
async def a_queue(url: str, **timings: float) -> AsyncIterator[CeleryJobQueue]:
    queue = CeleryJobQueue(url, **timings)
    try:
        yield queue
    finally:
        await queue.close()


async def waiting(redis_url: str) -> list[dict[str, Any]]:
    async with Redis.from_url(redis_url) as redis:
        return [json.loads(message) for message in reversed(await redis.lrange(QUEUE_NAME, 0, -1))]


@pytest.mark.parametrize(
    ("redis_form", "celery_form"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:s%40crt@cache:6380/3", "redis://:s%40crt@cache:6380/3"),
        ("redis://cache:6379?db=4", "redis://cache:6379/4"),
        ("unix:///run/v.sock", "redis+socket:///run/v.sock?virtual_host=0"),
        ("unix:///run/v.sock?db=7", "redis+socket:///run/v.sock?virtual_host=7"),
        ("unix://app@/run/v.sock?db=7&password=p/w", "redis+socket://app:p%2Fw@/run/v.sock?virtual_host=7"),
        ("rediss://cache:6380/0", "rediss://cache:6380/0?ssl_cert_reqs=required"),
        ("rediss://cache:6380/0?ssl_cert_reqs=none", "rediss://cache:6380/0?ssl_cert_reqs=none"),
    ],
)
def test_translates_addresses_for_celery(redis_form: str, celery_form: str) -> None:
    assert celery_broker_url(redis_form) == celery_form


def test_celery_checks_certificates_as_translated() -> None:
    connection: Any = Celery(broker=celery_broker_url("rediss://cache:6380/2"), set_as_current=False).connection()
    assert connection.ssl["ssl_cert_reqs"] == ssl.CERT_REQUIRED


async def test_sends_the_id_by_the_tasks_name(redis_url: str) -> None:
    compaction_id = uuid4()
    async with a_queue(redis_url) as queue:
        assert await queue.send(compaction_id, "req-7")
        assert await queue.send(uuid4())
    first, second = await waiting(redis_url)
    args, kwargs, _ = json.loads(base64.b64decode(first["body"]))
    assert (first["headers"]["task"], args, kwargs) == (TASK_NAME, [str(compaction_id)], {})
    assert first["content-type"] == "application/json"
    assert first["headers"]["request_id"] == "req-7"
    assert second["headers"]["request_id"] is None


async def test_a_flushed_broker_takes_jobs_as_before(redis_url: str) -> None:
    async with a_queue(redis_url) as queue, Redis.from_url(redis_url) as redis:
        assert await queue.send(uuid4())
        await redis.flushdb()
        compaction_id = uuid4()
        assert await queue.send(compaction_id)
        (message,) = await waiting(redis_url)
        assert str(compaction_id) in base64.b64decode(message["body"]).decode()


async def test_a_second_queue_of_one_process_sends_after_the_first_was_closed(redis_url: str) -> None:
    for _ in range(3):
        async with a_queue(redis_url) as queue:
            assert await queue.send(uuid4())


async def test_sends_from_many_tasks_at_once_and_off_the_loop(redis_url: str) -> None:
    async with a_queue(redis_url) as queue:
        assert all(await asyncio.gather(*(queue.send(uuid4()) for _ in range(100))))
    assert len(await waiting(redis_url)) == 100


@pytest.mark.daily(1)
@pytest.mark.parametrize("mode", ["refuse", "silent"])
async def test_a_broker_that_is_away_is_said_so_in_time(
    redis_url: str, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = connections_tried(monkeypatch)
    async with redis_proxy(redis_url, mode) as proxy, a_queue(proxy.url, pause_seconds=600) as queue:
        with machine_gaps() as machine:
            sending = asyncio.ensure_future(queue.send(uuid4()))
            gaps = await _gaps_until(sending)
        assert sending.result() is False
        assert len(tries) == 1, "no retries underneath"
        # A busy machine slows the loop as much as a thread next to it.
        assert max(gaps) < 0.3 + max(machine), "the loop goes on while the broker is waited for"
        assert not any([await queue.send(uuid4()) for _ in range(1_000)])
        assert len(tries) == 1, "it is left alone for a while"
        assert proxy.connections <= 1


def connections_tried(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list that gets an item at each try to reach a server with a client that blocks its thread."""
    tries: list[None] = []
    connect = Connection._connect

    def counted(connection: Connection) -> Any:
        tries.append(None)
        return connect(connection)  # type: ignore[no-untyped-call]  # the library has no types

    monkeypatch.setattr(Connection, "_connect", counted)
    return tries


@contextmanager
def machine_gaps() -> Iterator[list[float]]:
    """The seconds that each short sleep of a thread took."""
    gaps, done = [0.0], threading.Event()

    def watch() -> None:
        before = time.monotonic()
        while not done.wait(0.01):
            now = time.monotonic()
            gaps.append(now - before - 0.01)
            before = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield gaps
    finally:
        done.set()
        thread.join()


async def _gaps_until(done: asyncio.Future[bool]) -> list[float]:
    """The seconds that each short sleep in the loop took."""
    gaps = []
    while not done.done():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        gaps.append(time.monotonic() - before)
    return gaps or [0.0]


@pytest.mark.daily(1)
@pytest.mark.parametrize("mode", ["refuse", "silent"])
async def test_the_broker_is_found_again_after_the_pause(redis_url: str, mode: Any) -> None:
    now = 0.0
    async with redis_proxy(redis_url, "pass") as proxy, a_queue(proxy.url) as queue:
        queue._circuit = Circuit(5, lambda: now)
        assert await queue.send(uuid4())
        await proxy.set(mode)
        assert not await queue.send(uuid4())
        await proxy.set("pass")
        assert not await queue.send(uuid4()), "still pausing"
        for _ in range(10):
            now += 5
            if await queue.send(uuid4()):
                break
        assert await queue.send(uuid4())


@pytest.mark.parametrize(("asks", "task"), LATER_TASK_NAMES.items())
async def test_what_can_wait_stands_behind_everything_else(redis_url: str, asks: JobKind, task: str) -> None:
    conversation_id = uuid4()
    async with a_queue(redis_url) as queue, Redis.from_url(redis_url) as redis:
        assert await queue.send_later(asks, conversation_id)
        assert await queue.send(uuid4())
        (first,) = await waiting(redis_url)
        assert first["headers"]["task"] == TASK_NAME
        (behind,) = [json.loads(one) for one in await redis.lrange(f"{QUEUE_NAME}\x06\x169", 0, -1)]
    args, kwargs, _ = json.loads(base64.b64decode(behind["body"]))
    assert (behind["headers"]["task"], args, kwargs) == (task, [str(conversation_id)], {})


async def test_of_details_only_a_few_wait(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "MAX_WAITING_FOR_LATER", 3)
    async with a_queue(redis_url) as queue, Redis.from_url(redis_url) as redis:
        assert all([await queue.send_later("detail", uuid4()) for _ in range(5)]), "that is no failure of the broker"
        assert await redis.llen(f"{QUEUE_NAME}\x06\x169") == 3
        assert await queue.send(uuid4())


@pytest.mark.daily(1)
@pytest.mark.parametrize("mode", ["refuse", "silent"])
async def test_a_broker_that_is_away_takes_no_details(redis_url: str, mode: Any) -> None:
    async with redis_proxy(redis_url, mode) as proxy, a_queue(proxy.url) as queue:
        assert not await queue.send_later("detail", uuid4())


async def test_a_queue_that_nobody_reads_stops_growing(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "MAX_WAITING_JOBS", 3)
    async with a_queue(redis_url) as queue:
        assert [await queue.send(uuid4()) for _ in range(5)] == [True, True, True, False, False]
        async with Redis.from_url(redis_url) as redis:
            await redis.lpop(QUEUE_NAME)
        assert await queue.send(uuid4()), "being full is no failure of the broker"


@guarded("32-full", is_control_long=True)
async def test_a_full_server_is_a_refusal(redis_url: str, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool) -> None:
    """Control: without the guard around it, whoever sends would fail."""

    async def unguarded(call: Callable[[], Awaitable[Any]], *_: Any, **__: Any) -> Any:
        return await call()

    if not is_guarded:
        monkeypatch.setattr(job_queue, "attempt", unguarded)
    async with Redis.from_url(redis_url) as redis, a_queue(redis_url) as queue:
        before: Any = await redis.config_get("maxmemory*")
        await redis.config_set("maxmemory-policy", "noeviction")
        await redis.config_set("maxmemory", "1")
        try:
            with nullcontext() if is_guarded else pytest.raises(Exception, match="maxmemory"):
                assert not await queue.send(uuid4())
        finally:
            for name, value in before.items():
                await redis.config_set(name, value)


async def test_after_closing_it_refuses(redis_url: str) -> None:
    queue = CeleryJobQueue(redis_url)
    await queue.close()
    assert not await queue.send(uuid4())


def test_a_circuit_lets_one_trial_through_per_pause() -> None:
    now = 0.0
    circuit = Circuit(5, lambda: now)
    assert circuit.allows()
    circuit.failed()
    assert not circuit.allows()
    now = 4.9
    assert not circuit.allows()
    now = 5.0
    assert [circuit.allows(), circuit.allows()] == [True, False]
    now = 10.0
    assert circuit.allows()
    circuit.succeeded()
    assert [circuit.allows(), circuit.allows()] == [True, True]
