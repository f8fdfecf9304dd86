"""What a process leaves undone when it dies, or when nobody sweeps, is done by others; each with its control."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import aclosing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.job_queue import CeleryJobQueue
from app.settings import Settings
from app.storage.repositories import compactions
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.chat.chat_input import ChatInput
from app.usecases.compaction import run
from app.usecases.compaction.sweeper import Sweeper
from app.usecases.history.events import EventFeed
from app.usecases.shared.outbox import Outbox
from tests.acceptance.chaos import OwnServers
from tests.cases import guarded
from tests.fakes import FakeClock, FakeEventBus
from tests.integration.services import Gate, Service, honest
from tests.integration.test_job_queue import waiting
from tests.integration.test_sweeper import World
from tests.integration.test_turns import JUMP, filled

PATIENCE: Final = 30.0
JOBS: Final = 200


@guarded("31-publish", is_control_long=True)
async def test_what_was_committed_and_never_published_is_heard(
    begin: UnitOfWorkFactory, tenant: UUID, *, is_guarded: bool
) -> None:
    """Control: a reader that only waits to be woken."""
    clock = FakeClock()
    timings = DEFAULT_TIMINGS if is_guarded else replace(DEFAULT_TIMINGS, event_poll_seconds=1e9)
    feed = EventFeed(begin, FakeEventBus(clock), clock, replace(timings, event_heartbeat_seconds=1e9))
    service = Service(begin, tenant)
    conversation_id = await service.conversation()
    async with aclosing(feed.follow(tenant, conversation_id, 0)) as following:
        await anext(following)
        hearing = asyncio.create_task(anext(following))
        await asyncio.sleep(0.05)
        await service.say(conversation_id, 1)  # the reader's bus hears nothing of it
        for _ in range(20):
            await clock.advance(timings.event_poll_seconds if is_guarded else 60)
            await asyncio.sleep(0.01)
        assert hearing.done() == is_guarded
        if not is_guarded:
            hearing.cancel()
            await asyncio.wait([hearing])


async def _sends_nothing(*_: object) -> None:
    """The process dies before it sends anything."""


@guarded("31-publish", is_control_long=True)
async def test_a_job_that_was_committed_and_never_sent_is_sent_by_the_sweeper(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(Sweeper, "_send_waiting", _sends_nothing)
    dying, other = Service(begin, tenant), Service(begin, tenant, owner="process:other")
    conversation_id = await dying.conversation()
    with monkeypatch.context() as death:
        death.setattr(Outbox, "_send", _sends_nothing)
        await dying.say(conversation_id, 60)
    (row,) = await dying.compactions(conversation_id)
    assert dying.queue.ids == []
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE compactions SET queued_at = queued_at - interval '6 s'"))
    await other.container.sweeper.sweep()
    assert (other.queue.ids == [row.id]) == is_guarded


@pytest.mark.long
@guarded("32-queued")
async def test_redis_is_killed_with_two_hundred_jobs_and_nothing_on_disk(
    begin: UnitOfWorkFactory,
    engine: AsyncEngine,
    tenant: UUID,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_guarded: bool,
) -> None:
    """Control: whoever believes that what was sent once is with the broker for ever."""
    world = World(begin, engine, tenant)
    rows = {(await world.queued()).id for _ in range(JOBS)}
    with OwnServers(tmp_path, postgres=False) as servers:
        url = servers.endpoints.redis_url
        queue = CeleryJobQueue(url, pause_seconds=0.1)
        sweeper = world.sweeper(queue=queue)

        async def waiting_ids() -> set[UUID]:
            bodies = [base64.b64decode(one["body"]).decode() for one in await waiting(url)]
            return {UUID(json.loads(body)[0][0]) for body in bodies}

        for _ in range(3):
            await sweeper.sweep()
        assert await waiting_ids() == rows
        servers.kill("Valkey")
        servers.revive()
        with servers.redis as plain:
            plain.flushall()  # the embedded server keeps a file
        await world.execute("UPDATE compactions SET sent_at = sent_at - interval '6 s'")
        if not is_guarded:
            monkeypatch.setattr(Sweeper, "_send_waiting", _sends_nothing)
        async with asyncio.timeout(PATIENCE):
            for _ in range(10):
                await sweeper.sweep()
                await asyncio.sleep(0.2)
        assert await waiting_ids() == (rows if is_guarded else set())
        await queue.close()
    assert {row.id for row in [await world.get(id_) for id_ in rows] if row.status == "queued"} == rows


# --- nobody sweeps


async def left_by_a_dead_worker(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> tuple[Service, UUID]:
    """A conversation above the background threshold, whose worker died in the middle of its compaction."""
    gate = Gate()
    worker, service = Service(begin, tenant, gate, owner="process:dead"), Service(begin, tenant, honest)
    conversation_id = await filled(service, 0.72, sync_deadline=1.0)
    working = asyncio.create_task(worker.container.compaction.execute(service.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE compactions SET lease_until = clock_timestamp() - interval '5 min'"))
    return service, conversation_id


@pytest.mark.long
@guarded("34-no-sweeper")
async def test_without_a_sweeper_a_turn_takes_over_what_a_dead_worker_left(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: if only a sweeper could take a dead worker's row, the turn would wait in vain."""
    service, conversation_id = await left_by_a_dead_worker(begin, tenant, engine)
    if not is_guarded:
        monkeypatch.setattr(compactions, "_can_be_taken", lambda: compactions._QUEUED)
    await service.say(conversation_id, 1)
    handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content=JUMP))
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    assert result.reply.content == "All right."
    assert ("compaction_deadline" in result.warnings) != is_guarded
    (row,) = await service.compactions(conversation_id)
    assert (row.status == "applied") == is_guarded


@pytest.mark.long
@pytest.mark.case("34-no-sweeper")
async def test_a_sweeper_that_comes_back_finds_all_that_was_left(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    service, conversation_id = await left_by_a_dead_worker(begin, tenant, engine)
    await service.container.sweeper.sweep()
    (row,) = await service.compactions(conversation_id)
    assert row.status == "queued"
    done = await service.container.compaction.execute(service.queue.ids[-1])
    assert done is not None
    assert (done.id, done.status, done.claims) == (row.id, "applied", 0)


# --- a lease that is shorter than the model call


SHORT: Final = Settings(lease_seconds=0.45, heartbeat_seconds=0.1, turn_heartbeat_seconds=0.1)


async def swept(service: Service, seconds: float) -> None:
    """Let another process sweep for this long, and run whatever it finds."""
    async with asyncio.timeout(PATIENCE):
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await service.container.sweeper.sweep()
            for id_ in service.queue.ids:
                await service.container.compaction.execute(id_)
            await asyncio.sleep(0.05)


@pytest.mark.long
@guarded("34-lease")
async def test_a_lease_that_is_shorter_than_the_model_call_is_kept(
    engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: without heartbeats another process does the same work again."""
    if not is_guarded:
        monkeypatch.setattr(run, "keep_lease", lambda *_, **__: nullcontext())
    begin, gate = unit_of_work_factory(engine, SHORT.timings), Gate()
    service = Service(begin, tenant, gate, settings=SHORT)
    other = Service(begin, tenant, honest, owner="process:other", settings=SHORT)
    conversation_id = await filled(service, 0.72)
    running = asyncio.create_task(service.container.compaction.execute(service.queue.ids[0]))
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    await swept(other, 2.2 * SHORT.lease_seconds)
    gate.go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    (row,) = await service.compactions(conversation_id)
    assert (row.status, (await service.row(conversation_id)).state_version) == ("applied", 1)
    assert len(other.summarizer.requests) == (0 if is_guarded else 1)
