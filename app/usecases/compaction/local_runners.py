"""Run queued compactions and other jobs in this process while the message broker is down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol
from uuid import UUID

import structlog

from app.core.model.records import RanIn
from app.storage.unit_of_work import UnitOfWorkFactory

# A compaction takes processor time, and a model call, from the process that serves chats.
LANES = 2
MAX_JOBS = 20  # the most jobs that one sweep starts
IDLE = frozenset({"not_wanted", "not_now"})
"""Outcomes after which there is nothing more to do for now."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Executor(Protocol):
    """An object that performs a claimed compaction."""

    async def execute(self, compaction_id: UUID, *, ran_in: RanIn) -> object:
        """Take the row's lease and run it. Nothing happens if another process holds the lease."""


class LocalJobRunner:
    """Run jobs of one kind in this process, one at a time, while the broker is down.

    ``work`` does one job of any conversation; ``needed`` returns whether the broker is still away.
    """

    def __init__(self, work: Callable[[], Awaitable[str]], *, needed: Callable[[], bool]) -> None:
        self._do = work
        self._needed = needed
        self._lane: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, unless it already runs. Returns at once."""
        if self._lane is None or self._lane.done():
            self._lane = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Cancel the running job; its claim ends soon."""
        if self._lane is not None:
            self._lane.cancel()
            await asyncio.gather(self._lane, return_exceptions=True)

    async def _work(self) -> None:
        try:
            for _ in range(MAX_JOBS):
                if not self._needed() or await self._do() in IDLE:
                    return
        except Exception as error:  # noqa: BLE001 - the next sweep begins again
            _log.warning("sweeper.aside_failed", error=type(error).__name__)


class LocalCompactionRunner:
    """Run queued compactions in two lanes, each one at a time, until nothing waits or the broker is back.

    ``needed`` returns whether the broker is still away. Rows that were sent or requested less than ``waited`` ago are
    left alone.
    """

    def __init__(
        self,
        uow: UnitOfWorkFactory,
        compaction: Executor,
        *,
        needed: Callable[[], bool],
        waited: timedelta,
        owner: str,
    ) -> None:
        self._uow = uow
        self._compaction = compaction
        self._needed = needed
        self._waited = waited
        self._owner = owner
        self._lanes: set[asyncio.Task[None]] = set()
        self._tried: set[UUID] = set()

    def start(self) -> None:
        """Fill the free lanes; returns at once."""
        if not self._lanes:
            self._tried.clear()
        while len(self._lanes) < LANES:
            lane = asyncio.create_task(self._work())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)

    async def stop(self) -> None:
        """Cancel the running compactions; their rows go back into the queue, and no crash is counted."""
        lanes = list(self._lanes)
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while self._needed() and (compaction_id := await self._next_untried()):
                await self._run(compaction_id)
        except Exception as error:  # noqa: BLE001 - the next sweep fills the lane again
            _log.warning("sweeper.stand_in_failed", error=type(error).__name__)

    async def _run(self, compaction_id: UUID) -> None:
        try:
            await self._compaction.execute(compaction_id, ran_in="sweeper")
        except asyncio.CancelledError:
            await self._release_row(compaction_id)
            raise

    async def _release_row(self, compaction_id: UUID) -> None:
        async with self._uow(None) as uow:
            row = await uow.compactions.get(compaction_id)
            if row.status == "running" and row.owner == self._owner and row.lease_token is not None:
                await uow.compactions.requeue(row.id, row.lease_token, count=False)
                await uow.commit()

    async def _next_untried(self) -> UUID | None:
        async with self._uow(None) as uow:
            rows = await uow.compactions.unsent(older_than=self._waited, limit=len(self._tried) + LANES)
        # No row is run again and again: a row that was tried waits until the lanes were empty.
        chosen = next((row.id for row in rows if row.id not in self._tried), None)
        if chosen is not None:
            self._tried.add(chosen)
        return chosen
