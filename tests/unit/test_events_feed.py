"""The feed with virtual time and tables in memory delivers each event once, in order, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Self, cast
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Conversation
from app.core.model.errors import InvalidInputError, NotFoundError
from app.core.model.records import Event
from app.core.model.timings import DEFAULT_TIMINGS
from app.storage.unit_of_work import UnitOfWork
from app.usecases.history.events import PAGE, EventFeed
from tests.fakes import FakeClock, FakeEventBus, settle
from tests.profiles import examples

TENANT = uuid4()


class Tables:
    """One conversation and its events; it counts open units of work."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bus = FakeEventBus(self.clock)
        self.id = uuid4()
        self.events: list[Event] = []
        self.deleted = False
        self.open = 0
        self.reads = 0

    def feed(self) -> EventFeed:
        return EventFeed(lambda tenant: cast("UnitOfWork", _Work(self, tenant)), self.bus, self.clock)

    def add(self, count: int = 1) -> list[Event]:
        new = [
            Event(conversation_id=self.id, number=number, type="message.created", data={}, occurred_at=self.clock.now())
            for number in range(len(self.events) + 1, len(self.events) + 1 + count)
        ]
        self.events += new
        return new

    async def append(self, count: int = 1) -> None:
        await self.bus.publish(self.add(count))


class _Work:
    """The two repositories that the feed reads, in a unit of work that yields to the loop as a real one does."""

    def __init__(self, tables: Tables, tenant: UUID | None) -> None:
        self._tables = tables
        self._tenant = tenant
        self.conversations = self.events = self

    async def __aenter__(self) -> Self:
        self._tables.open += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._tables.open -= 1

    async def get(self, conversation_id: UUID) -> Conversation:
        await asyncio.sleep(0)
        if self._tables.deleted or (self._tenant, conversation_id) != (TENANT, self._tables.id):
            raise NotFoundError("No such conversation.")
        now = self._tables.clock.now()
        last = len(self._tables.events)
        return Conversation(id=conversation_id, tenant_id=TENANT, last_event=last, created_at=now, updated_at=now)

    async def after(self, conversation_id: UUID, number: int, *, limit: int) -> list[Event]:
        self._tables.reads += 1
        found = [] if self._tables.deleted else self._tables.events[number : number + limit]
        await asyncio.sleep(0)
        return found

    async def count_and_first(self, conversation_id: UUID, after: int, through: int) -> tuple[int, int | None]:
        await asyncio.sleep(0)
        these = [event.number for event in self._tables.events if after < event.number <= through]
        return len(these), next(iter(these), None)


class Reader:
    """Follows in a task and keeps what came, with heartbeats as ``None``."""

    def __init__(self, tables: Tables, after: int = 0, tenant: UUID = TENANT) -> None:
        self.items: list[Event | None] = []
        self._tables = tables
        self.task = asyncio.create_task(self._read(tables.feed().follow(tenant, tables.id, after)))

    async def _read(self, feed: AsyncIterator[Event | None]) -> None:
        async for item in feed:
            assert self._tables.open == 0, "a database session is held between reads"
            self.items.append(item)

    @property
    def numbers(self) -> list[int]:
        return [item.number for item in self.items if item is not None]

    @property
    def heartbeats(self) -> int:
        return self.items.count(None)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_replays_what_came_after_and_then_forwards() -> None:
    tables = Tables()
    await tables.append(5)
    reader = Reader(tables, after=2)
    await settle()
    assert reader.numbers == [3, 4, 5]
    await tables.append(2)
    await settle()
    assert reader.numbers == [3, 4, 5, 6, 7]
    await reader.stop()
    assert tables.bus.subscribers == 0


async def test_replays_more_than_a_page_without_waiting() -> None:
    tables = Tables()
    await tables.append(2 * PAGE + 1)
    reader = Reader(tables)
    while len(reader.numbers) < len(tables.events) and tables.reads < 10:
        await settle()
    assert reader.numbers == list(range(1, 2 * PAGE + 2))
    assert tables.clock.monotonic() == 0
    await reader.stop()


async def test_an_event_between_subscription_and_replay_comes_once() -> None:
    tables = Tables()
    await tables.append()
    async with aclosing(tables.feed().follow(TENANT, tables.id, 0)) as feed:
        assert await anext(feed) is None
        await tables.append()
        first, second = await anext(feed), await anext(feed)
        assert first is not None
        assert second is not None
        assert [first.number, second.number] == [1, 2]
        third = asyncio.ensure_future(anext(feed))
        await settle()
        assert not third.done()
        await tables.append()
        found = await third
        assert found is not None
        assert found.number == 3


async def test_the_first_item_says_that_the_arguments_are_good() -> None:
    tables = Tables()
    async with aclosing(tables.feed().follow(TENANT, tables.id, 0)) as feed:
        assert await anext(feed) is None
        assert tables.bus.subscribers == 1
        assert tables.reads == 0


async def test_with_redis_away_the_table_is_polled() -> None:
    tables = Tables()
    tables.bus.away = True
    reader = Reader(tables)
    await tables.clock.advance(1)
    await tables.append()
    await settle()
    assert reader.numbers == []
    await tables.clock.advance(DEFAULT_TIMINGS.event_poll_seconds)
    assert reader.numbers == [1]
    await reader.stop()


async def test_heartbeats_come_every_fifteen_seconds_of_silence_only() -> None:
    tables = Tables()
    reader = Reader(tables)
    await settle()
    assert reader.items == [None]
    await tables.clock.advance(DEFAULT_TIMINGS.event_heartbeat_seconds - 0.1)
    assert reader.items == [None]
    await tables.clock.advance(0.2)
    assert reader.items == [None, None]
    await tables.clock.advance(10)
    await tables.append()
    await tables.clock.advance(DEFAULT_TIMINGS.event_heartbeat_seconds - 0.1)
    assert reader.heartbeats == 2
    await tables.clock.advance(0.2)
    assert reader.heartbeats == 3
    await tables.clock.advance(10 * DEFAULT_TIMINGS.event_heartbeat_seconds)
    assert reader.heartbeats == 13
    await reader.stop()


async def test_one_wake_up_costs_one_read() -> None:
    tables = Tables()
    reader = Reader(tables)
    await settle()
    before = tables.reads
    await tables.append(3)
    await settle()
    assert (tables.reads - before, reader.numbers) == (1, [1, 2, 3])
    await reader.stop()


async def test_an_unknown_or_foreign_conversation_is_not_found() -> None:
    tables = Tables()
    for tenant, conversation in ((uuid4(), tables.id), (TENANT, uuid4())):
        with pytest.raises(NotFoundError):
            await anext(tables.feed().follow(tenant, conversation, 0))
    assert tables.bus.subscribers == 0


@pytest.mark.parametrize("after", [-1, 3, 2**63, 10**30])
@pytest.mark.case("50")
async def test_an_event_id_that_never_was_is_refused_with_the_range(after: int) -> None:
    tables = Tables()
    await tables.append(2)
    with pytest.raises(InvalidInputError) as caught:
        await anext(tables.feed().follow(TENANT, tables.id, after))
    (error,) = caught.value.errors
    assert error.field == "after"
    assert "0 to 2" in error.message
    assert tables.bus.subscribers == 0


async def test_the_last_event_id_itself_is_good() -> None:
    tables = Tables()
    await tables.append(2)
    reader = Reader(tables, after=2)
    await tables.append()
    await settle()
    assert reader.numbers == [3]
    await reader.stop()


@pytest.mark.parametrize("woken", [True, False])
async def test_ends_quietly_when_the_conversation_is_deleted(*, woken: bool) -> None:
    tables = Tables()
    await tables.append(2)
    reader = Reader(tables)
    await settle()
    tables.deleted = True
    if woken:
        await tables.bus.hint(tables.id, "deleted")
        await settle()
    else:
        await tables.clock.advance(DEFAULT_TIMINGS.event_heartbeat_seconds + DEFAULT_TIMINGS.event_poll_seconds)
    assert reader.task.done()
    assert reader.task.exception() is None
    assert reader.numbers == [1, 2]
    assert tables.bus.subscribers == 0


async def test_ends_when_the_database_has_lost_events_that_were_sent() -> None:
    """A replica that was promoted without the last seconds gives their numbers to other events."""
    tables = Tables()
    await tables.append(5)
    reader = Reader(tables)
    await settle()
    del tables.events[2:]
    await tables.append()
    await settle()
    assert reader.task.done()
    assert reader.numbers == [1, 2, 3, 4, 5]


@pytest.mark.case("48")
async def test_a_slow_reader_gets_everything_when_it_comes_back() -> None:
    tables = Tables()
    async with aclosing(tables.feed().follow(TENANT, tables.id, 0)) as feed:
        await anext(feed)
        for _ in range(1_000):
            await tables.append()
        numbers = [item.number for item in [await anext(feed) for _ in range(1_000)] if item]
    assert numbers == list(range(1, 1_001))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("append unseen"), st.integers(1, 5)),
        st.tuples(st.just("pass"), st.integers(0, 20)),
        st.tuples(st.just("turns of the loop"), st.integers(0, 4)),
        st.tuples(st.just("hint"), st.just(1)),
        st.tuples(st.just("reconnect"), st.just(1)),
    ),
    max_size=40,
)


@examples(1.5)
@given(before=st.integers(0, 8), after=st.integers(0, 8), steps=STEPS)
@pytest.mark.case("47")
def test_any_interleaving_gives_each_event_once_in_order(before: int, after: int, steps: list[tuple[str, int]]) -> None:
    asyncio.run(_interleave(before, min(after, before), steps))


async def _interleave(before: int, after: int, steps: Sequence[tuple[str, int]]) -> None:
    tables = Tables()
    tables.add(before)
    readers = [Reader(tables, after)]
    await settle()
    for action, amount in steps:
        match action:
            case "append":
                await tables.append(amount)
            case "append unseen":
                tables.add(amount)
            case "pass":
                await tables.clock.advance(amount / 4)
            case "turns of the loop":
                for _ in range(amount):
                    await asyncio.sleep(0)
            case "hint":
                await tables.bus.hint(tables.id, "interrupt")
            case _:
                await readers[-1].stop()
                seen = [number for reader in readers for number in reader.numbers]
                readers.append(Reader(tables, seen[-1] if seen else after))
    await tables.clock.advance(DEFAULT_TIMINGS.event_poll_seconds)
    await readers[-1].stop()
    numbers = [number for reader in readers for number in reader.numbers]
    assert numbers == list(range(after + 1, len(tables.events) + 1))
