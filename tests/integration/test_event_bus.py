"""Redis pub/sub as a wake-up: it uses one connection, is prompt, and never blocks anybody."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
import redis
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

from app.circuit import Circuit
from app.core.model.records import Event
from app.devserver import EmbeddedServers
from app.infrastructure import wake_ups
from app.infrastructure.event_bus import RedisEventBus
from app.infrastructure.wake_ups import Signal
from app.usecases.ports import WakeUp
from tests.cases import guarded
from tests.proxy import redis_proxy

PATIENCE: Final = 20.0
MOMENT = datetime(2026, 11, 20, 5, 14, 26, 120_000, tzinfo=UTC)


def an_event(conversation_id: UUID, number: int = 1, **data: Any) -> Event:
    return Event(
        conversation_id=conversation_id, number=number, type="compaction.applied", data=data, occurred_at=MOMENT
    )


@asynccontextmanager
async def a_bus(url: str, **timings: float) -> AsyncIterator[RedisEventBus]:
    bus = RedisEventBus(url, **timings)
    try:
        yield bus
    finally:
        await bus.close()


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[RedisEventBus]:
    async with a_bus(redis_url) as bus:
        yield bus


@pytest.fixture
async def other(redis_url: str) -> AsyncIterator[RedisEventBus]:
    """The bus of another process."""
    async with a_bus(redis_url) as bus:
        yield bus


async def until(condition: Any, seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the condition is the server's
            await asyncio.sleep(0.01)


async def quiet(bus: RedisEventBus, *wake_ups: WakeUp) -> None:
    """Return when everything on its way to a process has come, and each wake-up is used up.

    Messages on one connection come in order, so the confirmation of a new subscription comes last.
    """
    async with bus.subscribe(uuid4()) as last:
        assert await last.wait(PATIENCE)
    for wake_up in wake_ups:
        await wake_up.wait(0)


async def subscriptions(redis: Redis, conversation_id: UUID) -> int:
    names = [f"throughline:{kind}:{conversation_id}" for kind in ("conversation", "hint")]
    return sum(count for _, count in await redis.pubsub_numsub(*names))


async def test_publishes_the_public_form_in_order(bus: RedisEventBus, redis_url: str) -> None:
    conversation_id = uuid4()
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5)))
    async with Redis.from_url(redis_url) as redis, redis.pubsub() as client:
        await client.subscribe(f"throughline:conversation:{conversation_id}")
        await client.get_message(timeout=PATIENCE)
        first = an_event(conversation_id, 41, compaction_id=uuid4(), tokens_after=1_200)
        await bus.publish([first, Event(**{**_fields(first), "number": 42, "occurred_at": elsewhere})])
        messages = [await client.get_message(timeout=PATIENCE) for _ in range(2)]
    bodies = [json.loads(message["data"]) for message in messages if message]
    assert bodies[0] == {
        "id": "41",
        "type": "compaction.applied",
        "conversation_id": str(conversation_id),
        "occurred_at": "2026-11-20T05:14:26.120000Z",
        "data": {"compaction_id": str(first.data["compaction_id"]), "tokens_after": 1_200},
        "notification": None,
    }
    assert (bodies[1]["id"], bodies[1]["occurred_at"]) == ("42", "2026-11-20T05:14:26.120000Z")


def _fields(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in ("conversation_id", "number", "type", "data", "occurred_at")}


async def test_events_and_hints_wake_those_who_wait_for_that_conversation(
    bus: RedisEventBus, other: RedisEventBus
) -> None:
    one, two = uuid4(), uuid4()
    async with bus.subscribe(one) as first, bus.subscribe(one) as second, bus.subscribe(two) as foreign:
        for wake_up in (first, second, foreign):
            assert await wake_up.wait(PATIENCE), "the subscription taking effect is a wake-up"
        await quiet(bus, first, second, foreign)
        await other.publish([an_event(one)])
        assert await first.wait(PATIENCE)
        assert await second.wait(PATIENCE)
        await other.hint(one, "interrupt")
        assert await first.wait(PATIENCE)
        assert await second.wait(PATIENCE)
        assert not await foreign.wait(0.2)
        assert not await first.wait(0.01), "a wake-up is used up"


async def test_clients_never_see_hints(bus: RedisEventBus, redis_url: str) -> None:
    conversation_id = uuid4()
    async with Redis.from_url(redis_url) as redis, redis.pubsub() as client:
        await client.subscribe(f"throughline:conversation:{conversation_id}")
        await client.get_message(timeout=PATIENCE)
        await bus.hint(conversation_id, "interrupt")
        assert await client.get_message(timeout=0.2) is None


async def test_nothing_published_right_after_subscribing_goes_unnoticed(
    bus: RedisEventBus, other: RedisEventBus
) -> None:
    """A reader that waits after its reading is woken also by events from before the server knew of the subscription."""
    for _ in range(30):
        conversation_id = uuid4()
        async with bus.subscribe(conversation_id) as wake_up:
            await other.publish([an_event(conversation_id)])
            assert await wake_up.wait(PATIENCE)


@pytest.mark.control("49")
async def test_control_with_a_listener_each_there_is_a_connection_each(redis_url: str) -> None:
    async with AsyncExitStack() as stack, Redis.from_url(redis_url) as redis:
        before = {client["id"] for client in await redis.client_list(_type="pubsub")}
        for _ in range(5):
            bus = await stack.enter_async_context(a_bus(redis_url))
            wake_up = await stack.enter_async_context(bus.subscribe(uuid4()))
            assert await wake_up.wait(PATIENCE)
        ours = [client for client in await redis.client_list(_type="pubsub") if client["id"] not in before]
        assert len(ours) == 5


@pytest.mark.long
@pytest.mark.case("49")
async def test_many_subscribers_share_one_connection_and_leave_nothing_behind(
    bus: RedisEventBus, redis_url: str
) -> None:
    conversations = [uuid4() for _ in range(1_000)]
    async with Redis.from_url(redis_url) as redis:
        before = {client["id"] for client in await redis.client_list(_type="pubsub")}
        async with AsyncExitStack() as stack:
            waiting = [await stack.enter_async_context(bus.subscribe(key)) for key in conversations for _ in range(2)]
            assert all(await asyncio.gather(*(wake_up.wait(PATIENCE) for wake_up in waiting)))
            ours = [client for client in await redis.client_list(_type="pubsub") if client["id"] not in before]
            assert len(ours) == 1
            assert int(ours[0]["sub"]) == 2 * len(conversations)
        await until(lambda: _none_left(redis, conversations))


async def _none_left(redis: Redis, conversations: list[UUID]) -> bool:
    return sum([await subscriptions(redis, key) for key in conversations]) == 0


async def test_the_last_subscriber_ends_the_subscription(bus: RedisEventBus, redis_url: str) -> None:
    conversation_id = uuid4()
    async with Redis.from_url(redis_url) as redis:

        async def count_is(expected: int) -> bool:
            return await subscriptions(redis, conversation_id) == expected

        async with bus.subscribe(conversation_id):
            async with bus.subscribe(conversation_id) as inner:
                assert await inner.wait(PATIENCE)
                await until(lambda: count_is(2))
            await asyncio.sleep(0.1)
            assert await count_is(2)
        await until(lambda: count_is(0))
        async with bus.subscribe(conversation_id) as again:
            assert await again.wait(PATIENCE), "subscribing anew works"


class Remembering(Signal):
    """A wake-up that keeps everything until it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: asyncio.Queue[None] = asyncio.Queue()

    def set(self) -> None:
        self._kept.put_nowait(None)

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - as in the original
        with suppress(TimeoutError):
            await asyncio.wait_for(self._kept.get(), timeout)
            return True
        return False


@guarded("48")
async def test_a_slow_subscriber_holds_one_bit(
    bus: RedisEventBus, other: RedisEventBus, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(wake_ups, "Signal", Remembering)
    conversation_id = uuid4()
    async with bus.subscribe(conversation_id) as slow, bus.subscribe(conversation_id) as quick:
        assert await quick.wait(PATIENCE)
        for number in range(200):
            await other.publish([an_event(conversation_id, number)])
        await quiet(bus, quick)
        assert await slow.wait(PATIENCE)
        assert await slow.wait(0.05) != is_guarded


@pytest.mark.parametrize(
    "how",
    ["cut", *(pytest.param(how, marks=pytest.mark.long) for how in ("refused for a while", "silent for a while"))],
)
async def test_wake_ups_come_again_after_redis_was_away(other: RedisEventBus, redis_url: str, how: str) -> None:
    conversation_id = uuid4()
    async with redis_proxy(redis_url) as proxy, a_bus(proxy.url) as bus, bus.subscribe(conversation_id) as wake_up:
        assert await wake_up.wait(PATIENCE)
        await quiet(bus, wake_up)
        if how == "cut":
            proxy.cut()
        else:
            await proxy.set("refuse" if how.startswith("refused") else "silent")
            assert not await wake_up.wait(0.5)
            await proxy.set("pass")
        assert await wake_up.wait(PATIENCE), "the reconnection is a wake-up, for whatever was missed"
        await wake_up.wait(0.1)
        await other.publish([an_event(conversation_id)])
        assert await wake_up.wait(PATIENCE)


@pytest.mark.parametrize(
    "mode", ["refuse", pytest.param("silent", marks=[pytest.mark.long, pytest.mark.case("32-silent")])]
)
async def test_redis_away_never_fails_and_soon_costs_nothing(
    redis_url: str, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with redis_proxy(redis_url, mode) as proxy, a_bus(proxy.url, pause_seconds=600) as bus:
        tries = connections_tried(monkeypatch)
        async with asyncio.timeout(PATIENCE):
            await bus.publish([an_event(uuid4())])
            tried = len(tries)
            assert tried > 0, "control: that is counted"
            for _ in range(1_000):
                await bus.publish([an_event(uuid4())])
                await bus.hint(uuid4(), "interrupt")
            assert len(tries) == tried, "it is left alone for a while"
            async with bus.subscribe(uuid4()) as wake_up:
                started = time.monotonic()
                assert not await wake_up.wait(0.3)
                assert time.monotonic() - started > 0.25
            assert not await bus.ping()


@pytest.mark.long
@pytest.mark.control("32-silent")
async def test_control_whoever_asks_again_each_time_waits_each_time(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Circuit, "allows", lambda _: True)
    async with redis_proxy(redis_url, "silent") as proxy, a_bus(proxy.url, pause_seconds=600) as bus:
        tries = connections_tried(monkeypatch)
        await bus.publish([an_event(uuid4())])
        tried = len(tries)
        await bus.publish([an_event(uuid4())])
        assert len(tries) > tried


def connections_tried(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list that gets an item at each try to reach a server."""
    tries: list[None] = []
    connect = AbstractConnection.connect

    async def counted(connection: AbstractConnection) -> None:
        tries.append(None)
        await connect(connection)  # type: ignore[no-untyped-call]  # the library has no types

    monkeypatch.setattr(AbstractConnection, "connect", counted)
    return tries


async def test_publishing_goes_on_once_redis_answers_a_ping_again(other: RedisEventBus, redis_url: str) -> None:
    conversation_id = uuid4()
    async with redis_proxy(redis_url, "refuse") as proxy, a_bus(proxy.url) as bus:
        await bus.publish([an_event(conversation_id)])
        await proxy.set("pass")
        assert await bus.ping()
        async with other.subscribe(conversation_id) as wake_up:
            assert await wake_up.wait(PATIENCE)
            await quiet(other, wake_up)
            await bus.publish([an_event(conversation_id)])
            assert await wake_up.wait(PATIENCE)


@pytest.mark.case("32-full")
async def test_a_server_that_takes_no_writes_is_away_however_it_answers(tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path, postgres=False) as endpoints, redis.from_url(endpoints.redis_url) as server:
        async with a_bus(endpoints.redis_url) as bus:
            assert await bus.ping()
            server.replicaof("127.0.0.1", "1")  # this is the state after a failover
            assert not await bus.ping()
            server.replicaof("no", "one")
            assert await bus.ping()
            server.config_set("maxmemory", 1)
            assert server.ping(), "control: it answers"
            assert not await bus.ping()


async def test_a_connection_that_went_stale_costs_no_message(other: RedisEventBus, redis_url: str) -> None:
    conversation_id = uuid4()
    async with redis_proxy(redis_url) as proxy, a_bus(proxy.url) as bus, other.subscribe(conversation_id) as wake_up:
        assert await wake_up.wait(PATIENCE)
        await quiet(other, wake_up)
        await bus.publish([an_event(uuid4())])
        proxy.cut()
        await bus.publish([an_event(conversation_id)])
        assert await wake_up.wait(PATIENCE)


async def test_fifty_publishers_at_once_use_a_few_connections(redis_url: str) -> None:
    async with redis_proxy(redis_url) as proxy, a_bus(proxy.url) as bus:
        await asyncio.gather(*(bus.publish([an_event(uuid4(), number)]) for number in range(50)))
        assert 1 <= proxy.connections <= 4


async def test_an_address_without_a_server_is_away(tmp_path: Any) -> None:
    async with a_bus(f"unix://{tmp_path}/none.sock?db=0") as bus:
        assert not await bus.ping()
        await bus.publish([an_event(uuid4())])


async def test_closing_twice_and_unused_is_fine(redis_url: str) -> None:
    bus = RedisEventBus(redis_url)
    await bus.close()
    await bus.close()
