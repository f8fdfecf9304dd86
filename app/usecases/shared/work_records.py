"""Records which conversation a process works on, so that one whose texts crash processes is found and set aside.

A record exists only during work on texts, not while the process waits for a model: a process that is killed then was
not crashed by a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from app.core.model.errors import ConversationSetAsideError, DatabaseReadOnlyError, DependencyUnavailableError
from app.core.model.records import CrashCount, Work, WorkKind
from app.core.model.timings import Timings
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.ports import Clock, NewId
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.retries import through_outage

MAX_CRASHES: Final = 2
"""With this many crashes a conversation is set aside. One may be the machine's fault; two in a row, with the same work
not done in between, are blamed on the conversation.
"""
READS: Final = frozenset[WorkKind]({"context", "search", "expansion"})
"""Kinds of work that only read; they go on without a record while the database takes no writes."""
REMOVAL_SECONDS: Final = 0.05
"""Seconds that the record of ended work is kept, so that one statement removes several records."""


class WorkRecord:
    """A piece of work that is on record, except while it waits for something else (``waiting``)."""

    def __init__(self, records: WorkRecords, work: Work) -> None:
        self._records = records
        self.work = work

    @asynccontextmanager
    async def waiting(self, *, until: float = 0) -> AsyncIterator[None]:
        """Take the work off the record during the block.

        If the database is away at the end of a block that succeeded, it is waited for until that time by the monotonic
        clock, since what the block got may have been paid for.
        """
        self._records.remove(self.work)
        try:
            yield
        except BaseException:
            await self._begin_again()
            raise
        await through_outage(self._begin_again, self._records.clock, until=until)

    async def _begin_again(self) -> None:
        self.work = replace(self.work, id=self._records.new_id())  # the earlier row may still exist
        await self._records.begin(self.work)


@dataclass(slots=True)
class WorkRecords:
    """The work records of one process.

    Args:
        uow: Opens units of work; those of the record are short and their own.
        clock: Time.
        new_id: Makes ids.
        process: The id of this process; no other has it, not even one that replaces it.
        timings: How often a record is renewed, and how long it stays without being renewed.
    """

    uow: UnitOfWorkFactory
    clock: Clock
    new_id: NewId
    process: UUID
    timings: Timings
    _ended_ids: set[UUID] = field(default_factory=set)
    _removal_task: asyncio.Task[None] | None = None
    _active: set[WorkRecord] = field(default_factory=set)
    _renewal_task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def record_work(self, tenant_id: UUID, conversation_id: UUID, kind: WorkKind) -> AsyncIterator[WorkRecord]:
        """Record work on a conversation's texts during the block.

        While the database takes no writes, ``READS`` go on without a record.

        Raises:
            ConversationSetAsideError: Processes ended during work on the conversation; nothing is begun.
            DependencyUnavailableError: The work cannot be recorded; nothing is begun.
        """
        work = Work(
            id=self.new_id(), tenant_id=tenant_id, conversation_id=conversation_id, process=self.process, kind=kind
        )
        before, is_recorded = None, False
        named = {"conversation_id": str(conversation_id), "kind": kind}
        with optional_write("work.not_recorded", **named) if kind in READS else nullcontext():
            before, is_recorded = await self.begin(work), True
        record = WorkRecord(self, work)
        if not is_recorded:
            await self._refuse_set_aside(work)
            yield record
            return
        self._renew_with_others(record)
        try:
            yield record
        finally:
            self._active.discard(record)
            self.remove(record.work)
        if before is not None and before.kind == kind:
            await self._forget_crashes(work)

    async def begin(self, work: Work) -> CrashCount | None:
        """Put work on record. Returns the crashes of its conversation so far. Raises ``ConversationSetAsideError``."""
        try:
            async with self.uow(work.tenant_id) as uow:
                crashes = await uow.works.begin(work, seconds=self._lease_seconds)
        except DatabaseReadOnlyError:  # there is no row
            raise
        except BaseException:  # the answer was lost, or the caller was cancelled: the row may exist
            self.remove(work)
            raise
        if crashes is not None and crashes.set_aside_at is not None:
            self.remove(work)
            raise set_aside_error(crashes)
        return crashes

    async def _refuse_set_aside(self, work: Work) -> None:
        async with self.uow(work.tenant_id) as uow:
            crashes = await uow.works.crashes(work.conversation_id)
        if crashes is not None and crashes.set_aside_at is not None:
            raise set_aside_error(crashes)

    def remove(self, work: Work) -> None:
        """Have the record removed soon, by a task of its own."""
        self._ended_ids.add(work.id)
        if self._removal_task is None or self._removal_task.done():
            self._removal_task = asyncio.create_task(self._remove(), context=Context())  # for all requests

    async def drain(self) -> None:
        """Wait until the records of ended work are removed. Called when the process ends."""
        if self._renewal_task is not None and not self._active:
            self._renewal_task.cancel()
        if self._removal_task is not None:
            await asyncio.wait([self._removal_task], timeout=self.timings.heartbeat_seconds)
            self._removal_task.cancel()

    @property
    def _lease_seconds(self) -> float:
        # Longer than a hanging process can live, so that only ended processes are counted.
        return self.timings.lease_seconds + self.timings.watchdog_seconds

    async def _remove(self) -> None:
        """Remove the records of ended work in batches. While the database is away, try again."""
        while self._ended_ids:
            await self.clock.sleep(REMOVAL_SECONDS)
            ended = frozenset(self._ended_ids)
            try:
                async with self.uow(None) as uow:
                    await uow.works.end(ended)
            except DependencyUnavailableError:
                await self.clock.sleep(self.timings.heartbeat_seconds)
            else:
                self._ended_ids -= ended

    def _renew_with_others(self, record: WorkRecord) -> None:
        self._active.add(record)
        # One task for the process, since most work is over before its record is due.
        if self._renewal_task is None or self._renewal_task.done():
            self._renewal_task = asyncio.create_task(self._renew(), context=Context())  # without request and user

    async def _renew(self) -> None:
        while True:
            await self.clock.sleep(self.timings.heartbeat_seconds)
            if not self._active:
                return
            for record in tuple(self._active):
                with suppress(DependencyUnavailableError):
                    async with self.uow(None) as uow:  # the tenant's requests must not hold it up
                        await uow.works.renew(record.work.id, seconds=self._lease_seconds)

    async def _forget_crashes(self, work: Work) -> None:
        """Forget crashes of this kind of work, after it succeeded."""
        with suppress(DependencyUnavailableError):
            async with self.uow(work.tenant_id) as uow:
                await uow.works.forget_crashes(work.conversation_id, kind=work.kind)
                await uow.commit()


def set_aside_error(crashes: CrashCount) -> ConversationSetAsideError:
    """The error that a client gets, with what can be done about it."""
    at = crashes.set_aside_at.isoformat() if crashes.set_aside_at else None
    return ConversationSetAsideError(
        f"{crashes.count} processes ended one after the other while they worked on this conversation (the last time:"
        f" {crashes.kind}), so it is set aside and the others go on; its messages can be read. An operator takes it"
        " back with POST /conversations/{id}/release or `throughline conversations release`",
        extra={"reason": crashes.kind, "set_aside_at": at},
    )


async def end_works(uow: UnitOfWork, work: Work, timings: Timings) -> bool:
    """Remove the records that a process left of its work on a conversation, and those of processes that ended with it.

    Returns whether there were any.
    """
    # Each process renews its records by a beat of its own, so leases of the same length may end a beat apart.
    return await uow.works.end_all_like(work, within=timedelta(seconds=2 * timings.heartbeat_seconds))


async def is_set_aside(uow: UnitOfWork, conversation_id: UUID) -> bool:
    """Whether the conversation is set aside: its texts must not be worked on until an operator releases it."""
    crashes = await uow.works.crashes(conversation_id)
    return crashes is not None and crashes.set_aside_at is not None


async def count_crash(uow: UnitOfWork, work: Work, clock: Clock, timings: Timings) -> CrashCount | None:
    """Count a process that crashed during this work, and set the conversation aside if it was one too many.

    Processes that ended at once, as when their machine was switched off, count as one. Runs in a transaction of its
    own. Returns ``None`` if the crash was already counted.
    """
    await uow.conversations.lock(work.conversation_id)
    if not await end_works(uow, work, timings):
        return None
    crashes = await uow.works.count_crash(work, most=MAX_CRASHES)
    if crashes.count == MAX_CRASHES:
        data = {"reason": crashes.kind, "crashes": crashes.count}
        await uow.events.add(work.conversation_id, "conversation.set_aside", data, clock.now())
    return crashes
