"""The only code that performs a compaction. The turn, the worker and the manual route differ in how they claim it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog

from app.domain.apply import apply_candidate
from app.domain.errors import DependencyUnavailableError, DomainError, NotFoundError
from app.domain.policy import evaluate, evaluate_append, quiet_after
from app.domain.records import Compaction, CompactionStatus, RanIn
from app.ports import UnitOfWork
from app.services.chunk import Chunk, Nothing, read_chunk, summarizer_of
from app.services.claims import claim_background, record_event, refresh_sizes
from app.services.ending import end_row
from app.services.ladder import Climb, climb
from app.services.lease import Lease, LeaseLostError, check_held, held
from app.services.saving import save_chunk
from app.services.shell import Shell

JOB_DEADLINE = 300.0  # seconds for a whole job outside a turn

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a job one caller does."""

    attempts: int | None = None
    """Model calls per chunk; ``None`` = the policy's."""
    chunks: int | None = None
    """Chunks before the rest is queued; ``None`` = all."""


UNLIMITED = Limits()


class CompactionService:
    """Plans, asks, checks, saves; one chunk after the other, each in its own short transactions."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def execute(self, compaction_id: UUID, ran_in: RanIn = "worker") -> Compaction | None:
        """Take a queued (or orphaned) row and run it to its end; ``None`` when somebody else has it, or it is gone.

        With the database away it is left to its lease: the sweeper sends it again.
        """
        try:
            row = await self.take(compaction_id, ran_in)
            return await self._in_time(row) if row is not None else None
        except DependencyUnavailableError as error:
            log.warning("compaction.left_to_its_lease", compaction_id=str(compaction_id), reason=error.stable_code)
            return None

    async def _in_time(self, row: Compaction) -> Compaction:
        try:
            async with asyncio.timeout(JOB_DEADLINE):
                return await self.run(row)
        except TimeoutError:
            return await self.end(Lease.of(row), status="failed", reason="deadline")

    async def take(self, compaction_id: UUID, ran_in: RanIn) -> Compaction | None:
        """Claim a queued or orphaned row for this process."""
        shell = self._shell
        async with shell.uow(None) as uow:
            try:
                found = await uow.compactions.get(compaction_id)
            except NotFoundError:
                return None
            if not await uow.compactions.takeable(compaction_id):
                return None
        async with shell.uow(found.tenant_id) as uow:
            await uow.conversations.lock(found.conversation_id)
            token = shell.new_id()
            row = await uow.compactions.take(compaction_id, lease_token=token, ran_in=ran_in, owner=shell.owner)
            if row is None:
                return None
            await record_event(uow, row, "compaction.started", shell.clock.now())
            await uow.commit()
        await shell.outbox.deliver(uow.committed_events)
        return row

    async def run(self, row: Compaction, limits: Limits = UNLIMITED) -> Compaction:
        """Run a claimed row, chunk by chunk, until nothing is left to fold or the limits are reached.

        Cancelled, it leaves the row to its lease; the caller decides what becomes of it.
        """
        lease = Lease.of(row)
        done = 0
        try:
            async with held(lease, uow=self._shell.uow, clock=self._shell.clock):
                while row.in_flight:
                    row = await self._step(lease, limits)
                    done += 1
                    if row.in_flight and done == limits.chunks:
                        return await self.hand_over(lease)
        except (LeaseLostError, NotFoundError):
            log.info("compaction.lease_lost", compaction_id=str(lease.compaction_id))
            return await self._current(row)
        except DomainError:
            raise
        except Exception:  # a defect of ours must cost a compaction, never a turn
            log.exception("compaction.crashed", compaction_id=str(lease.compaction_id))
            return await self.end(lease, status="failed", reason="internal_error")
        return row

    async def hand_over(self, lease: Lease) -> Compaction:
        """Put a row back for the worker, without counting it as a crash."""
        async with self._shell.uow(lease.tenant_id) as uow:
            await uow.compactions.requeue(lease.compaction_id, lease.token, count=False)
            row = await uow.compactions.get(lease.compaction_id)
            await uow.commit()
        await self._shell.outbox.deliver((), [row.id] if row.status == "queued" else [])
        return row

    async def end(
        self, lease: Lease, *, status: CompactionStatus, reason: str | None, climbed: Climb | None = None
    ) -> Compaction:
        """End a held row that applies nothing (more); one that is no longer held is returned as it is."""
        async with self._shell.uow(lease.tenant_id) as uow:
            await uow.conversations.lock(lease.conversation_id)
            row = await uow.compactions.get(lease.compaction_id)
            if row.lease_token != lease.token or not row.in_flight:
                return row
            ended = await end_row(self._shell, uow, row, status=status, reason=reason, climbed=climbed)
            await uow.commit()
        await self._shell.outbox.deliver(uow.committed_events)
        return ended

    async def claim_due(self, tenant_id: UUID, conversation_id: UUID) -> UUID | None:
        """Queue what is due for a conversation by its policy's first due trigger, for the sweeper."""
        shell, now = self._shell, self._shell.clock.now()
        async with shell.uow(tenant_id) as uow:
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            sizes = resolved.sizes(now)
            trigger = evaluate_append(resolved.policy, resolved.budgets, **sizes) or evaluate(
                resolved.policy, resolved.budgets, moment="before_call", **sizes
            )
            await refresh_sizes(uow, resolved)
            claimed = None
            if trigger is not None and await uow.turns.running(conversation_id) is None:
                claimed = await claim_background(uow, resolved, shell, trigger)
            await uow.commit()
        await shell.outbox.deliver(uow.committed_events)
        return claimed

    async def give_up(self, uow: UnitOfWork, compaction: Compaction, /) -> None:
        """End a row that crashed its process too often, in the caller's transaction: an event, a quiet period."""
        await uow.conversations.lock(compaction.conversation_id)
        await end_row(self._shell, uow, compaction, status="failed", reason="crashed")

    async def _step(self, lease: Lease, limits: Limits) -> Compaction:
        """One chunk, or the end of the row."""
        chunk = await read_chunk(self._shell, lease)
        if isinstance(chunk, Nothing):
            return await self._nothing(lease, chunk)
        summarizer = summarizer_of(self._shell, chunk.resolved)
        applying = chunk.applying()
        climbed = await climb(
            summarizer,
            chunk.request(summarizer.profile),
            apply=lambda candidate: apply_candidate(candidate, applying),
            attempts=limits.attempts or chunk.resolved.policy.calls_per_chunk,
            clock=self._shell.clock,
        )
        if climbed.applied is None:
            return await self.end(lease, **_refusal(chunk, climbed), climbed=climbed)
        return await save_chunk(self._shell, lease, chunk, climbed, climbed.applied)

    async def _nothing(self, lease: Lease, nothing: Nothing) -> Compaction:
        """Nothing (more) to fold: the end of the row, and quiet until there is something new."""
        resolved = nothing.resolved
        async with self._shell.uow(lease.tenant_id) as uow:
            await uow.conversations.lock(lease.conversation_id)
            row = check_held(await uow.compactions.get(lease.compaction_id), lease)
            ended = await end_row(self._shell, uow, row, status="skipped", reason=nothing.found.reason)
            if row.trigger != "manual":
                quiet = quiet_after(
                    resolved.policy,
                    resolved.budgets,
                    seen_seq=resolved.conversation.last_seq,
                    predicted_tokens=nothing.found.predicted_tokens,
                )
                await uow.conversations.update(row.conversation_id, quiet=replace(quiet, reason=nothing.found.reason))
            await uow.commit()
        await self._shell.outbox.deliver(uow.committed_events)
        return ended

    async def _current(self, row: Compaction) -> Compaction:
        """The row as it stands; a conversation deleted meanwhile took it along."""
        try:
            async with self._shell.uow(row.tenant_id) as uow:
                return await uow.compactions.get(row.id)
        except NotFoundError:
            return replace(row, status="superseded", reason="stale")


def _refusal(chunk: Chunk, climbed: Climb) -> dict[str, Any]:
    """The status that a row ends with when no attempt was accepted."""
    if climbed.failed_by_model:
        return {"status": "failed", "reason": climbed.reason}
    saved_too_little = all(attempt.reason == "not_smaller" for attempt in climbed.attempts)
    skipped = chunk.row.trigger == "manual" and saved_too_little
    return {"status": "skipped" if skipped else "rejected", "reason": climbed.reason}
