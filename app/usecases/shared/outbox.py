"""Sends what a committed transaction asks for: events to the bus, compaction ids to the broker.

Both are only hints: listeners and workers read in Postgres what there is to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

import structlog

from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Event
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.ports import EventBus, JobKind, JobQueue
from app.usecases.shared.background import begin_task

APPLIED: Final = "compaction.applied"

log = structlog.get_logger(__name__)


class Outbox:
    """Sends events and jobs after a commit.

    Errors of the bus or broker are not raised, and no caller waits for the broker.
    """

    def __init__(self, *, bus: EventBus, queue: JobQueue, uow: UnitOfWorkFactory) -> None:
        self._bus = bus
        self._queue = queue
        self._uow = uow
        self._tasks: set[asyncio.Task[None]] = set()

    def delivering(self, begin: UnitOfWorkFactory) -> UnitOfWorkFactory:
        """Units of work that deliver what they have committed when they end."""

        def begin_delivering(tenant_id: UUID | None) -> UnitOfWork:
            uow = begin(tenant_id)
            uow.deliver = self.deliver
            return uow

        return begin_delivering

    async def deliver(self, events: Sequence[Event], jobs: Iterable[UUID] = (), *, waits: bool = True) -> None:
        """Publish events, before this returns if ``waits``; hand jobs to the broker in the background.

        The events are published also if the caller is cancelled meanwhile, since it has committed already. That
        happens: a heartbeat that finds its compaction ended cancels the run that has just ended it.
        """
        for compaction_id in jobs:
            begin_task(self._send(compaction_id), self._tasks)
        for conversation_id in {event.conversation_id for event in events if event.type == APPLIED}:
            begin_task(self._send_hints_after_compaction(conversation_id), self._tasks)
        if events:
            publishing = begin_task(self._bus.publish(events), self._tasks)
            if waits:
                await asyncio.shield(publishing)

    def send_later(self, kind: JobKind, id_: UUID) -> None:
        """Tell workers, in the background, that a conversation or a provider's cache has work of this kind."""
        begin_task(self._send_later(kind, id_), self._tasks)

    async def drain(self) -> None:
        """Wait at most three seconds for what is being sent; the sweeper sends the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=3)

    async def _send_hints_after_compaction(self, conversation_id: UUID) -> None:
        """Tell workers that a model is to verify the new state, or to write about segments, if that is the case."""
        try:
            async with self._uow(None) as uow:
                unverified = await uow.verifications.due(limit=1, conversation_id=conversation_id)
                wanting = await uow.segments.wanting_detail(limit=1, conversation_id=conversation_id)
        except DependencyUnavailableError:  # the sweeper finds the work
            return
        if unverified:
            await self._send_later("verification", conversation_id)
        if wanting:
            await self._send_later("detail", conversation_id)

    async def _send_later(self, kind: JobKind, id_: UUID) -> None:
        if not await self._queue.send_later(kind, id_):
            log.info("outbox.not_sent", wanted=kind, id=str(id_))

    async def _send(self, compaction_id: UUID) -> None:
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        if not await self._queue.send(compaction_id, request_id):
            log.warning("compaction.not_sent", compaction_id=str(compaction_id))
            return
        try:
            async with self._uow(None) as uow:
                await uow.compactions.mark_sent([compaction_id])
                await uow.commit()
        except DependencyUnavailableError:  # the sweeper sends it again; sending twice does no harm
            log.warning("compaction.sent_not_marked", compaction_id=str(compaction_id))
