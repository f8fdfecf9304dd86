"""Committed events are sent, even if the request that committed them is cancelled meanwhile; no others are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import cast
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import create_async_engine

from app.core.model.records import Event
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.ports import EventBus
from app.usecases.shared.outbox import Outbox
from tests.builders import START
from tests.fakes import FakeJobQueue


class SlowBus:
    """Publishes when the test lets it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.published: list[Event] = []

    async def publish(self, events: Sequence[Event]) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.published += events


async def test_whoever_does_not_wait_is_not_held_up() -> None:
    bus = SlowBus()
    outbox = Outbox(bus=cast("EventBus", bus), queue=FakeJobQueue(), uow=cast("UnitOfWorkFactory", None))
    event = Event(conversation_id=uuid4(), number=1, type="x", data={}, occurred_at=START)

    await outbox.deliver([event], waits=False)
    assert bus.published == []
    bus.go_on.set()
    await outbox.drain()

    assert bus.published == [event]


async def test_events_of_a_cancelled_caller_are_published() -> None:
    bus = SlowBus()
    outbox = Outbox(bus=cast("EventBus", bus), queue=FakeJobQueue(), uow=cast("UnitOfWorkFactory", None))
    event = Event(conversation_id=uuid4(), number=1, type="x", data={}, occurred_at=START)

    delivering = asyncio.create_task(outbox.deliver([event]))
    await bus.begun.wait()
    delivering.cancel()
    with suppress(asyncio.CancelledError):
        await delivering
    assert delivering.cancelled(), "control: the caller was cancelled in the middle"
    bus.go_on.set()
    await outbox.drain()

    assert bus.published == [event]


async def test_a_unit_of_work_delivers_only_what_it_has_committed() -> None:
    job, undone, delivered = uuid4(), uuid4(), list[tuple[list[Event], list[UUID], bool]]()

    async def deliver(events: Sequence[Event], jobs: Sequence[UUID], *, waits: bool) -> None:
        delivered.append((list(events), list(jobs), waits))

    for commits, rolls_back in ((False, False), (True, False), (True, True)):
        async with UnitOfWork(create_async_engine("postgresql+asyncpg://"), None) as unit:
            unit.deliver = deliver
            unit.jobs.append(job)
            if commits:
                await unit.commit()
                unit.jobs.append(undone)
            if rolls_back:
                await unit.roll_back()
    assert delivered == [([], [job], True)] * 2
