"""Finds work whose hint was lost: if Redis, a worker or an API process forgets work, the sweeper finds it in Postgres.

Many sweepers run at once, one in every API process and one per worker. Each row is handled in a transaction of its own
that reads the row again. So it is handled once, and a row that fails delays no other.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar
from uuid import UUID

import structlog

from app.core.model.errors import REMEDIES, NotFoundError
from app.core.model.records import MAX_CLAIMS, Compaction, Turn, Work
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.chat.failed_turn_event import add_failed_event
from app.usecases.compaction.claiming import MAX_WOKEN
from app.usecases.compaction.local_runners import Executor, LocalCompactionRunner, LocalJobRunner
from app.usecases.compaction.spend_guard import SPEND_LIMIT
from app.usecases.ports import Clock, EventBus, JobQueue
from app.usecases.shared.work_records import count_crash, end_works

# The time between two passes varies by this share, so that sweepers which started together do not stay together.
JITTER = 0.2
# A step that hangs is ended after this time, so that sweeping goes on.
STEP_SECONDS = 60.0
# The most rows per step and sweep; the next sweep does the rest.
BATCH = 100
DETAILS = 5  # conversations per sweep
HOUSEKEEPING_SECONDS = 3_600.0
CHORE_SECONDS = 4.0  # the most of a sweep for each chore that has more to do than one step

Row = TypeVar("Row")

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Runner(Executor, Protocol):
    """What the sweeper calls of the compaction service."""

    async def claim_due(self, tenant_id: UUID, conversation_id: UUID, /) -> UUID | None:
        """Queue the first due trigger's compaction, if still due, in a transaction of its own."""

    async def end_quiet_of_limit(self, tenant_id: UUID, conversation_id: UUID, /) -> None:
        """End a conversation's quiet that began because of a limit, if the limits allow calls now."""

    async def give_up(self, uow: UnitOfWork, compaction: Compaction, /) -> None:
        """End a row ``failed``, ``crashed``, with its event and a quiet period, within this transaction."""


class BackgroundService(Protocol):
    """A service that does work which can wait and needs models: writes L1s, verifies states, or makes vectors."""

    async def work(self) -> str:
        """Do one piece of this work, for any conversation. The returned word says what became of it."""


class Chore(Protocol):
    """A service that removes or forgets data, in bounded steps with transactions of their own."""

    async def work(self) -> bool:
        """Do one step, and return whether more is left to do."""


class Sweeper:
    """One sweeper of one process.

    Args:
        uow: opens units of work; all are over all tenants.
        queue: takes compactions for the workers.
        compaction: claims, runs and gives up compactions.
        bus: takes events after their commit.
        clock: time.
        owner: the name under which this process holds leases.
        rng: the jitter.
        detailing: has L1s written; without it nobody is asked to.
        verifying: has states verified; likewise.
        embedding: has vectors made, where ``embedding_model`` says of which model; likewise.
        timings: how often it sweeps, and how long what waits is left to others.
        chores: some seconds of each are done in every sweep, in bounded steps.
        housekeeping: one step an hour, and in every sweep while more is left.
    """

    def __init__(
        self,
        uow: UnitOfWorkFactory,
        queue: JobQueue,
        compaction: Runner,
        bus: EventBus,
        clock: Clock,
        owner: str,
        rng: random.Random,
        detailing: BackgroundService | None = None,
        verifying: BackgroundService | None = None,
        embedding: BackgroundService | None = None,
        embedding_model: Callable[[], str | None] = lambda: None,
        timings: Timings = DEFAULT_TIMINGS,
        chores: Sequence[Chore] = (),
        housekeeping: Chore | None = None,
    ) -> None:
        self._uow = uow
        self._queue = queue
        self._compaction = compaction
        self._bus = bus
        self._clock = clock
        self._owner = owner
        self._rng = rng
        self._timings = timings
        self._chores = [_named_step(chore, clock) for chore in chores]
        self._housekeeping = housekeeping
        self._resend_after = timedelta(seconds=timings.resend_seconds)
        self._refused_since: float | None = None
        self._housekeeping_at = clock.monotonic()
        self._has_hastened = False
        self._was_away = False
        """Whether the last sweep did not reach the database, or could not write."""
        self._clock_ahead = self._seconds_ahead()
        self._all_limits_checked = False
        self._limit_checked_through: tuple[UUID, UUID] | None = None
        self._stand_in = LocalCompactionRunner(
            uow, compaction, needed=self._broker_is_away, waited=self._resend_after, owner=owner
        )
        self._sends_details, self._sends_verifications = detailing is not None, verifying is not None
        self._embedding_model = embedding_model
        background_services = (verifying, detailing, embedding)
        self._background_runners = [
            LocalJobRunner(one.work, needed=self._broker_is_away) for one in background_services if one
        ]

    async def run(self) -> None:
        """Sweep until cancelled. Errors do not end it.

        When it is cancelled, the jobs that it runs itself are cancelled too.
        """
        try:
            while True:
                await self.sweep()
                await self._clock.sleep(self._timings.sweep_seconds * self._rng.uniform(1 - JITTER, 1 + JITTER))
        finally:
            await self._stand_in.stop()
            for lane in self._background_runners:
                await lane.stop()

    async def sweep(self) -> None:
        """One pass: every step is tried, whether or not the one before failed.

        The first pass after an outage of the database ends no work whose lease is over, and has nobody take it over,
        since all leases are over: processes that live renew theirs at once. So does the first after the machine slept.
        """
        was_away, self._was_away = self._was_away, not await self._run_step(self._reach_database)
        judges_leases = not (self._has_slept() or was_away or self._was_away)
        if judges_leases:
            await self._run_step(self._recover_crashed)
        await self._run_step(self._send_waiting)
        await self._run_step(self._check_limits)
        await self._run_step(self._claim_due)
        if judges_leases:
            await self._run_step(self._end_dead_turns)
            await self._run_step(self._count_crashes)
        for chore in self._chores:
            await self._run_step(chore)
        await self._run_step(self._keep_house)
        if self._sends_verifications and judges_leases:
            await self._run_step(self._send_verifications)
        if self._sends_details:
            await self._run_step(self._send_details)
        await self._run_step(self._send_embeddings)
        if self._broker_is_away():
            self._stand_in.start()
            for lane in self._background_runners:
                lane.start()

    async def release(self) -> int:
        """Put all rows of this owner back into the queue without counting a try, and return how many. Logs errors."""
        released = 0

        async def step() -> None:
            nonlocal released
            async with self._uow(None) as uow:
                released = await uow.compactions.release_owner(self._owner)
                await uow.commit()
            if released:
                _log.info("sweeper.released", rows=released, owner=self._owner)

        await self._run_step(step)
        return released

    async def _run_step(self, step: Callable[[], Awaitable[None]]) -> bool:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await step()
        except Exception as error:  # noqa: BLE001 - the next sweep tries again
            _log.warning("sweeper.step_failed", step=step.__name__.lstrip("_"), error=type(error).__name__)
            return False
        return True

    def _has_slept(self) -> bool:
        """Whether the machine slept since the last pass, or its clock was set, for longer than leases are safe from."""
        before, self._clock_ahead = self._clock_ahead, self._seconds_ahead()
        return self._clock_ahead - before > self._timings.lease_seconds - self._timings.heartbeat_seconds

    def _seconds_ahead(self) -> float:
        # The monotonic clock stands still while a machine sleeps.
        return self._clock.now().timestamp() - self._clock.monotonic()

    async def _reach_database(self) -> None:
        async with self._uow(None) as uow:
            await uow.works.end(())  # a write: without writes no lease is renewed either

    async def _recover_crashed(self) -> None:
        async with self._uow(None) as uow:
            rows = await uow.compactions.expired(limit=BATCH)
        await _each(rows, self._recover, "sweeper.recovery_failed", lambda row: {"compaction_id": str(row.id)})

    async def _recover(self, found: Compaction) -> None:
        """Recover one row under the conversation's lock.

        A row that another sweeper has already handled is left alone, and so is one whose process has renewed its lease
        since: it was only away from the database.
        """
        async with self._uow(found.tenant_id) as uow:  # with its tenant, which is the first column of every key
            await uow.conversations.lock(found.conversation_id)
            row = await uow.compactions.get(found.id)
            if row.lease_token is None or (row.lease_token, row.lease_until) != (found.lease_token, found.lease_until):
                return
            if row.claims >= MAX_CLAIMS:
                await self._compaction.give_up(uow, row)
            else:
                await uow.compactions.requeue(row.id, row.lease_token, count=True)
            await uow.commit()
        await self._bus.publish(uow.committed_events)
        _log.warning("sweeper.recovered", compaction_id=str(row.id), claims=row.claims, lost_by=row.owner)

    async def _send_waiting(self) -> None:
        # One at a time: the row is locked while it is sent, so that no other sweeper sends it too.
        for _ in range(BATCH):
            async with self._uow(None) as uow:
                rows = await uow.compactions.unsent(older_than=self._resend_after, limit=1)
                if not rows or not await self._send(rows[0].id):
                    return
                await uow.compactions.mark_sent([rows[0].id])
                await uow.commit()

    async def _check_limits(self) -> None:
        """Look once, from the start on, at the compactions that wait for something that may have been changed since.

        An earlier process had reached a limit, or had a key or a model that did not work; this process may have other
        settings. Each sweep looks at some of those that wait for a limit, until all were looked at.
        """
        if self._all_limits_checked:
            return
        if self._limit_checked_through is None:
            async with self._uow(None) as uow:
                await uow.conversations.end_quiet(list(REMEDIES), limit=MAX_WOKEN)
                await uow.commit()
        async with self._uow(None) as uow:
            found = await uow.conversations.quiet_for(SPEND_LIMIT, limit=BATCH, after=self._limit_checked_through)
        await _each(
            found,
            lambda ids: self._compaction.end_quiet_of_limit(*ids),
            "sweeper.limit_not_checked",
            lambda ids: {"conversation_id": str(ids[1])},
        )
        self._limit_checked_through = found[-1] if found else self._limit_checked_through
        self._all_limits_checked = len(found) < BATCH

    async def _claim_due(self) -> None:
        async with self._uow(None) as uow:
            due = await uow.conversations.due(limit=BATCH)
        for tenant_id, conversation_id in due:
            try:
                compaction_id = await self._compaction.claim_due(tenant_id, conversation_id)
            except Exception as error:  # noqa: BLE001 - one conversation must not hold up the others
                _log.warning("sweeper.claim_failed", conversation_id=str(conversation_id), error=type(error).__name__)
                continue
            if compaction_id is not None and await self._send(compaction_id):
                async with self._uow(None) as uow:
                    await uow.compactions.mark_sent([compaction_id])
                    await uow.commit()

    async def _send_details(self) -> None:
        # Only a few: each one that is written asks for the next.
        async with self._uow(None) as uow:
            wanting = await uow.segments.wanting_detail(limit=BATCH)
        conversations = list(dict.fromkeys(conversation_id for _, conversation_id, _ in wanting))
        for conversation_id in conversations[:DETAILS]:
            if not self._was_taken(taken=await self._queue.send_later("detail", conversation_id)):
                return

    async def _send_verifications(self) -> None:
        await self._hasten_verifications()
        async with self._uow(None) as uow:
            # Only a few: each one that is done asks for the next.
            wanting = await uow.verifications.due(limit=DETAILS)
        for _, conversation_id in wanting:
            if not self._was_taken(taken=await self._queue.send_later("verification", conversation_id)):
                return

    async def _hasten_verifications(self) -> None:
        """Run once at start: look again at verifications that an earlier process put off because of a limit.

        The limits of this process may be others.
        """
        if self._has_hastened:
            return
        async with self._uow(None) as uow:
            await uow.verifications.make_due(None, SPEND_LIMIT)
            await uow.commit()
        self._has_hastened = True

    async def _send_embeddings(self) -> None:
        model = self._embedding_model()
        if model is None:
            return
        async with self._uow(None) as uow:
            # Only a few: a conversation that has begun goes on by itself.
            wanting = await uow.embeddings.due(model, limit=DETAILS)
        for _, conversation_id in wanting:
            if not self._was_taken(taken=await self._queue.send_later("embedding", conversation_id)):
                return

    async def _end_dead_turns(self) -> None:
        async with self._uow(None) as uow:
            turns = await uow.turns.expired(limit=BATCH)
        await _each(turns, self._end_turn, "sweeper.turn_not_ended", lambda turn: {"turn_id": str(turn.id)})

    async def _end_turn(self, found: Turn) -> None:
        async with self._uow(found.tenant_id) as uow:
            await uow.conversations.lock(found.conversation_id)
            turn = await uow.turns.fail_expired(found.id)
            if turn is None:
                return
            await add_failed_event(uow, turn, self._clock.now())
            await uow.commit()
        await self._bus.publish(uow.committed_events)
        _log.warning("sweeper.turn_ended", turn_id=str(turn.id))

    async def _count_crashes(self) -> None:
        async with self._uow(None) as uow:
            works = await uow.works.abandoned(limit=BATCH)
        await _each(
            works,
            self._count_crash,
            "sweeper.crash_not_counted",
            lambda work: {"kind": work.kind, "conversation_id": str(work.conversation_id)},
        )

    async def _count_crash(self, work: Work) -> None:
        async with self._uow(work.tenant_id) as uow:
            try:
                crashes = await count_crash(uow, work, self._clock, self._timings)
            except NotFoundError:  # it was deleted
                crashes = None
                await end_works(uow, work, self._timings)
            await uow.commit()
        await self._bus.publish(uow.committed_events)
        if crashes is not None:
            fields = {"kind": crashes.kind, "crashes": crashes.count, "set_aside": crashes.set_aside_at is not None}
            _log.error("sweeper.process_ended_over", conversation_id=str(work.conversation_id), **fields)

    async def _keep_house(self) -> None:
        if self._housekeeping is None or self._clock.monotonic() < self._housekeeping_at:
            return
        if not await self._housekeeping.work():
            self._housekeeping_at = self._clock.monotonic() + HOUSEKEEPING_SECONDS

    async def _send(self, compaction_id: UUID) -> bool:
        return self._was_taken(taken=await self._queue.send(compaction_id))

    def _was_taken(self, *, taken: bool) -> bool:
        if taken:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = self._clock.monotonic()
        return taken

    def _broker_is_away(self) -> bool:
        since = self._refused_since
        return since is not None and self._clock.monotonic() - since > self._timings.stand_in_seconds


async def _each(
    rows: Iterable[Row],
    handle: Callable[[Row], Awaitable[None]],
    failed: str,
    fields_of: Callable[[Row], dict[str, str]],
) -> None:
    """Handle each row.

    If one fails, it is logged under the name ``failed`` with what ``fields_of`` returns, and the others go on.
    """
    for row in rows:
        try:
            await handle(row)
        except Exception as error:  # noqa: BLE001 - the next sweep tries again
            _log.warning(failed, **fields_of(row), error=type(error).__name__)


def _named_step(chore: Chore, clock: Clock) -> Callable[[], Awaitable[None]]:
    async def step() -> None:
        end = clock.monotonic() + CHORE_SECONDS
        while await chore.work() and clock.monotonic() < end:
            pass

    # A failure is logged with the name of the step.
    step.__name__ = type(chore).__name__
    return step
