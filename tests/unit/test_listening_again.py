"""A task that listens to Redis for others is replaced when it has ended; so is a worker's sweeping task."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from redis.asyncio import Redis

from app.infrastructure.clock import SystemClock
from app.infrastructure.metrics import ProcessMeter
from app.infrastructure.turn_streams import RedisTurnStreams
from app.infrastructure.wake_ups import WakeUpHub
from app.usecases.shared.background import Background
from worker.parent import ParentLoop

NOWHERE = "unix:///nowhere/v.sock"


def listeners(name: str) -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == name]


async def ended(name: str) -> None:
    [task] = listeners(name)
    task.cancel()
    await asyncio.wait([task])


async def test_who_subscribes_after_the_listener_ended_is_heard() -> None:
    hub = WakeUpHub(Redis.from_url(NOWHERE), lambda conversation_id: [str(conversation_id)])
    async with hub.subscribe(uuid4()):
        await ended("wake-ups")
        async with hub.subscribe(uuid4()):
            assert len(listeners("wake-ups")) == 1
    await hub.close()


async def test_who_follows_a_turn_after_the_reader_ended_is_told() -> None:
    streams = RedisTurnStreams(NOWHERE)
    async with streams.follow(uuid4()):
        await ended("turn-streams")
        async with streams.follow(uuid4()):
            assert len(listeners("turn-streams")) == 1
    await streams.close()


def test_the_sweeper_of_a_worker_is_begun_again() -> None:
    swept = threading.Semaphore(0)

    async def sweep() -> None:
        swept.release()
        raise RuntimeError

    async def nothing() -> int:
        return 0

    async def built() -> Any:
        sweeper = SimpleNamespace(run=sweep, release=nothing)
        return SimpleNamespace(sweeper=sweeper, background=Background(SystemClock(), ProcessMeter()), close=nothing)

    parent = ParentLoop(cast(Any, built))
    parent.start()
    assert swept.acquire(timeout=30)
    assert swept.acquire(timeout=30)
    parent.stop()


def test_a_worker_that_ends_before_it_was_ready_has_no_sweeper_to_stop() -> None:
    parent = ParentLoop()
    parent.begin_release()
    parent.stop()
