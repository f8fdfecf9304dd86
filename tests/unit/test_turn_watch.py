"""The watch over a running turn looks at its row when something is said, but not for the turn's own end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from app.infrastructure.wake_ups import Signal
from app.usecases.chat.turn_watch import Watch, watched

LATER = 60.0


class Row:
    """The turn's row, and how many times a heartbeat looked at it."""

    def __init__(self) -> None:
        self.looked = 0

    @asynccontextmanager
    async def opened(self, _: UUID) -> AsyncIterator[Any]:
        """A unit of work over the row."""

        async def heartbeat(_: UUID) -> Any:
            self.looked += 1
            return SimpleNamespace(followed_at=None, interrupt_requested=False)

        async def commit() -> None:
            return None

        yield SimpleNamespace(turns=SimpleNamespace(heartbeat=heartbeat), commit=commit)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def watching(row: Row, signal: Signal, every: float) -> AsyncIterator[Watch]:
    @asynccontextmanager
    async def subscribe(_: UUID) -> AsyncIterator[Signal]:
        yield signal

    handle = SimpleNamespace(note_follower_elsewhere=lambda _: None, is_unfollowed_for=lambda _: False)
    turn = SimpleNamespace(id=UUID(int=1), conversation_id=UUID(int=2), tenant_id=UUID(int=3))
    given: dict[str, Any] = {"uow": row.opened, "bus": SimpleNamespace(subscribe=subscribe)}
    async with watched(
        cast("Any", turn), cast("Any", handle), **given, every=every, unfollowed_seconds=math.inf
    ) as watch:
        await settled()
        yield watch


async def test_its_own_end_makes_it_look_at_nothing() -> None:
    row, signal = Row(), Signal()
    async with watching(row, signal, LATER) as watch:
        signal.set()
        await settled()
        assert row.looked == 1
        watch.storing = True
        signal.set()
        await settled()
        assert row.looked == 1


async def test_time_makes_it_look_while_the_end_is_stored() -> None:
    row = Row()
    async with watching(row, Signal(), 0.01) as watch:
        watch.storing = True
        async with asyncio.timeout(LATER):
            while row.looked < 2:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
