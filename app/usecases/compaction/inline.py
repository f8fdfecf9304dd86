"""The compaction inside a turn: it is run, waited for, or taken over, all within ``sync_deadline``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from app.core.model.conversation import QuietPeriod
from app.core.model.errors import (
    REMEDIES,
    SEND_AGAIN,
    ContextOverWindowError,
    DependencyUnavailableError,
    NotFoundError,
)
from app.core.model.policies.policy import Trigger
from app.core.model.records import NOT_NUMBERED, Compaction, Event, RanIn
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import claim_running, numbers_of
from app.usecases.compaction.ending import FAILURES, WAIT_TIMED_OUT
from app.usecases.compaction.job import IN_TURN, LAST_TRY
from app.usecases.compaction.repeating import would_repeat
from app.usecases.compaction.run import CompactionService
from app.usecases.compaction.spend_guard import SPEND_LIMIT
from app.usecases.shared.lease import Lease, LeaseLostError
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell
from app.usecases.shared.stopping import unless_stopped
from app.usecases.shared.work_records import is_set_aside

EVENT_PAGE = 100

SendNewEvents = Callable[[], Awaitable[None]]
"""Sends the events that came since it was last called."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineClaim:
    """What a turn found when its trigger fired: its own row, or a row in flight."""

    trigger: Trigger
    row: Compaction
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineOutcome:
    """How the compaction ended. A failure is only a warning here.

    Whether the turn can go on is decided when its context is assembled (``ContextOverWindowError``).
    """

    row: Compaction | None = None
    warnings: tuple[str, ...] = ()

    def followed_by(self, later: InlineOutcome) -> InlineOutcome:
        """This outcome and a later one combined: the later compaction, and each warning once."""
        warnings = tuple(dict.fromkeys((*self.warnings, *later.warnings)))
        return InlineOutcome(row=later.row or self.row, warnings=warnings)

    def explained(self, error: ContextOverWindowError) -> ContextOverWindowError:
        """The error of a context that this compaction was to make fit, with the reason why it could not.

        The turn may be sent again, unless the reason is one that stays until something is changed.
        """
        row = self.row
        if row is None or row.reason == "not_smaller" or not (row.in_flight or row.status in FAILURES):
            return error
        reason = "deadline" if row.in_flight else row.reason or row.status
        told = ContextOverWindowError(
            f"no summary could be made ({reason}; {REMEDIES.get(reason, SEND_AGAIN)}), and {error.detail}; the message"
            " is stored",
            extra={**error.extra, "reason": reason},
        )
        told.retryable = reason not in REMEDIES
        return told


async def send_nothing() -> None:
    """Does nothing: for turns without a stream."""


class InlineCompaction:
    """Brings a turn below its threshold, or says why it could not."""

    def __init__(self, shell: Shell, compaction: CompactionService, ran_in: RanIn = "turn") -> None:
        self._shell = shell
        self._compaction = compaction
        self._ran_in: RanIn = ran_in

    async def claim(self, uow: UnitOfWork, resolved: Resolved, trigger: Trigger) -> InlineClaim | None:
        """Claim the slot in the turn's own transaction, or find the row that has it.

        ``None`` if a compaction would change nothing.
        """
        row = await self._claim_running(uow, resolved, trigger)
        if row is not None:
            return InlineClaim(trigger=trigger, row=row, own=True)
        row = await uow.compactions.in_flight(resolved.conversation.id)
        return InlineClaim(trigger=trigger, row=row, own=False) if row else None

    async def settle_with_events(
        self,
        resolved: Resolved,
        claim: InlineClaim | None,
        *,
        stop: asyncio.Event,
        after: int,
        on_events: Callable[[Sequence[Event]], None],
    ) -> InlineOutcome:
        """``run_or_wait`` for the claim, if there is one; tell the conversation's compaction events after ``after``.

        The event that a compaction began is sent before the turn waits for it, even if it began earlier. Once ``stop``
        is set the turn stops waiting, and the worker does the rest.
        """
        if claim is None:
            return InlineOutcome()
        send_new_events = self.sender(claim.row.tenant_id, claim.row.conversation_id, after, on_events)
        if claim.row.status == "running" and not claim.own:
            on_events([_started_event(claim.row)])
        await send_new_events()
        outcome = await unless_stopped(stop, self.run_or_wait(resolved, claim, send_new_events))
        if outcome is None:
            outcome = await self._left_to_worker(claim.row)
        await send_new_events()
        return outcome

    async def _left_to_worker(self, row: Compaction) -> InlineOutcome:
        try:
            return InlineOutcome(row=await self._hand_to_worker(row))
        except (DependencyUnavailableError, LeaseLostError, NotFoundError):
            return InlineOutcome(row=row)

    def sender(
        self, tenant_id: UUID, conversation_id: UUID, after: int, on_events: Callable[[Sequence[Event]], None]
    ) -> SendNewEvents:
        """Sends the conversation's compaction events after number ``after``, if the database is there."""

        async def send_new_events() -> None:
            nonlocal after
            with suppress(DependencyUnavailableError):
                is_page_full = True
                while is_page_full:
                    async with self._shell.uow(tenant_id) as uow:
                        events = await uow.events.after(conversation_id, after, limit=EVENT_PAGE)
                    on_events([event for event in events if event.type.startswith("compaction.")])
                    after = events[-1].number if events else after
                    is_page_full = len(events) == EVENT_PAGE

        return send_new_events

    async def run_or_wait(
        self, resolved: Resolved, claim: InlineClaim, send_new_events: SendNewEvents = send_nothing
    ) -> InlineOutcome:
        """Run the compaction or wait for it, at most ``sync_deadline`` seconds.

        A failed compaction never raises here.
        """
        row, seconds = claim.row, resolved.policy.sync_deadline
        deadline = self._shell.clock.monotonic() + seconds
        try:
            try:
                async with asyncio.timeout(seconds):
                    row = await self._settled_row(claim, deadline, send_new_events)
            except TimeoutError:
                row = await self._hand_to_worker(row)
                await self._quiet_while_job_may_run(resolved, row)
                return InlineOutcome(row=row, warnings=("compaction_deadline",))
        except (DependencyUnavailableError, LeaseLostError, NotFoundError):  # the conversation may have been deleted
            log.warning("compaction.inline_unavailable", compaction_id=str(row.id))
            return InlineOutcome(row=row, warnings=("compaction_unavailable",))
        except Exception:  # a defect in any code may cost a compaction, but not a turn
            log.exception("compaction.inline_crashed", compaction_id=str(row.id))
            return InlineOutcome(row=row, warnings=("compaction_unavailable",))
        return InlineOutcome(row=row, warnings=_warnings(row))

    async def _settled_row(
        self, claim: InlineClaim, deadline: float, send_new_events: SendNewEvents = send_nothing
    ) -> Compaction:
        if claim.own:
            return await self._compaction.run(claim.row, IN_TURN.until(deadline))
        row = await self._wait_for_row(claim, deadline, send_new_events)
        again = await self._claim_if_still_due(claim)
        if again is None:
            return row
        await send_new_events()
        return await self._compaction.run(again, LAST_TRY.until(deadline))

    async def _wait_for_row(self, claim: InlineClaim, deadline: float, send_new_events: SendNewEvents) -> Compaction:
        """Wait until the row has ended, has brought the turn below its threshold, or may be taken over."""
        row = claim.row
        async with self._shell.bus.subscribe(row.conversation_id) as wake_up:
            while True:
                taken = await self._compaction.take(row.id, self._ran_in)
                if taken is not None:
                    await send_new_events()
                    return await self._compaction.run(taken, IN_TURN.until(deadline))
                was_queued = row.status == "queued"
                async with self._shell.uow(row.tenant_id) as uow:
                    row = await uow.compactions.get(row.id)
                    resolved = self._shell.resolver(await uow.conversations.get(row.conversation_id))
                if was_queued and row.status == "running":
                    await send_new_events()
                if not row.in_flight or not _at_threshold(resolved, claim.trigger):
                    return row
                await wake_up.wait(self._shell.timings.poll_seconds)

    async def _claim_if_still_due(self, claim: InlineClaim) -> Compaction | None:
        async with self._shell.uow(claim.row.tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.lock(claim.row.conversation_id))
            if not _at_threshold(resolved, claim.trigger):
                return None
            row = await self._claim_running(uow, resolved, claim.trigger)
            await uow.commit()  # also without a row: the quiet period may have been stored
        return row

    async def _claim_running(self, uow: UnitOfWork, resolved: Resolved, trigger: Trigger) -> Compaction | None:
        if await is_set_aside(uow, resolved.conversation.id) or await would_repeat(uow, resolved, trigger):
            return None
        return await claim_running(
            uow, resolved, self._shell, trigger=trigger.name, request=trigger.request(), ran_in=self._ran_in
        )

    async def _hand_to_worker(self, row: Compaction) -> Compaction:
        async with self._shell.uow(row.tenant_id) as uow:
            row = await uow.compactions.in_flight(row.conversation_id) or await uow.compactions.get(row.id)
        mine = row.status == "running" and row.ran_in == self._ran_in and row.owner == self._shell.owner
        return await self._compaction.hand_over(Lease.of(row)) if mine else row

    async def _quiet_while_job_may_run(self, resolved: Resolved, row: Compaction) -> None:
        if resolved.policy.on_failure == "keep_full":
            # Nothing may be left out of such a context, so the turn can only wait.
            return
        until = self._shell.clock.now() + timedelta(seconds=self._shell.timings.job_seconds)
        async with self._shell.uow(row.tenant_id) as uow:
            await uow.conversations.lock(row.conversation_id)
            if (await uow.compactions.get(row.id)).in_flight:
                quiet = QuietPeriod(until=until, reason=WAIT_TIMED_OUT)
                await uow.conversations.update(row.conversation_id, quiet=quiet)
            await uow.commit()


def _started_event(row: Compaction) -> Event:
    # This copy goes only into the stream, without a number: the stored event was sent before.
    return Event(
        conversation_id=row.conversation_id,
        number=NOT_NUMBERED,
        type="compaction.started",
        data=numbers_of(row),
        occurred_at=row.started_at or row.requested_at,
    )


def _at_threshold(resolved: Resolved, trigger: Trigger) -> bool:
    return trigger.at.reached(resolved.budgets, tokens=resolved.tokens, messages=resolved.messages)


def _warnings(row: Compaction) -> tuple[str, ...]:
    if row.status in FAILURES:
        return (f"compaction_failed:{row.reason}",)
    return (f"compaction_skipped:{SPEND_LIMIT}",) if row.reason == SPEND_LIMIT else ()
