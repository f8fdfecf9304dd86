"""Beside a running turn: keeps its lease, and hears of an interruption, also one asked for in another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from app.domain.errors import DependencyUnavailableError
from app.domain.records import Turn
from app.ports import EventBus, UnitOfWorkFactory

LOOK = 1.0  # seconds between looks at the row; a hint over the bus makes it sooner

log = structlog.get_logger(__name__)


@asynccontextmanager
async def watched(turn: Turn, *, uow: UnitOfWorkFactory, bus: EventBus) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set once the turn is to stop."""
    stop = asyncio.Event()

    async def look() -> None:
        async with bus.subscribe(turn.conversation_id) as wake_up:
            while not stop.is_set():
                await wake_up.wait(LOOK)
                try:
                    async with uow(turn.tenant_id) as work:
                        row = await work.turns.heartbeat(turn.id)
                        await work.commit()
                except DependencyUnavailableError:
                    log.warning("turn.heartbeat_missed", turn_id=str(turn.id))
                    continue
                if row is None or row.interrupt_requested:
                    stop.set()

    watcher = asyncio.create_task(look())
    try:
        yield stop
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher
