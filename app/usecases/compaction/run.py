"""Performs the compactions of stored conversations. The turn, the worker and the manual route claim them differently.

Only the messages that a client of OpenAI's API sends to be compacted are not stored: ``openai.compacting`` folds them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from app.core.model.conversation import QuietPeriod
from app.core.model.errors import DependencyUnavailableError, DomainError, InvalidInputError, NotFoundError
from app.core.model.records import ERASURE_TRIGGER, Compaction, CompactionStatus, RanIn
from app.core.planning.compaction import NothingToFold
from app.core.planning.triggers import quiet_after
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import NOT_ASKED, TURNED_AWAY, AttemptsResult, turned_away
from app.usecases.compaction.chunk import (
    UNLIMITED_TOKENS,
    Chunk,
    NoChunk,
    before_running_turn,
    fallback_of,
    plan,
    read_tail,
    summarizer_of,
)
from app.usecases.compaction.claiming import MAX_WOKEN, record_event, refresh_sizes
from app.usecases.compaction.due_triggers import claim_at_rest
from app.usecases.compaction.ending import add_calls, end_row
from app.usecases.compaction.job import UNLIMITED, Job, JobLimits
from app.usecases.compaction.narrative_rewriting import rewrite_narrative
from app.usecases.compaction.saving import save_chunk
from app.usecases.compaction.spend_guard import SPEND_LIMIT, SpendGuard
from app.usecases.history.due_anchors import find_due_anchors
from app.usecases.history.holding import renew_layout
from app.usecases.shared.lease import Lease, LeaseLostError, check_held, keep_lease
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

LOOK_AGAIN_SECONDS = 10.0
"""After how long a process that found nobody turned away looks again: it reads all who wait for any model."""
MAX_UNRECORDED_RUNS = 256  # the callers of earlier ones were cancelled too, and will not ask

log = structlog.get_logger(__name__)


class CompactionService:
    """Plans, asks, checks and saves, one chunk after the other, each in its own short transactions."""

    def __init__(self, shell: Shell, spending: SpendGuard) -> None:
        self._shell = shell
        self._spending = spending
        self._unrecorded: dict[UUID, AttemptsResult] = {}
        """The calls of cancelled runs by lease, until the code that cancelled a run ends its row or hands it over."""
        self._found_nobody: dict[str, float] = {}
        """When, by the monotonic clock, nobody was found who waits for a model that answers, by its name."""

    async def execute(self, compaction_id: UUID, ran_in: RanIn = "worker") -> Compaction | None:
        """Take a queued (or orphaned) row and run it to its end; ``None`` if another process has it or it is gone.

        If the database is away, the row is left until its lease ends; the sweeper sends it again.
        """
        try:
            row = await self.take(compaction_id, ran_in)
            return await self._run_in_time(row) if row is not None else None
        except NotFoundError:  # its conversation was deleted meanwhile
            return None
        except DependencyUnavailableError as error:
            log.warning("compaction.left_to_its_lease", compaction_id=str(compaction_id), reason=error.stable_code)
            return None

    async def in_turn(self, hinted: UUID) -> UUID:
        """The compaction to run after a hint: the one whose tenant's turn it is; the hinted one if none is queued.

        A tenant's thousand compactions are thousand hints before another's one. A hint only means that there is work.
        """
        try:
            async with self._shell.uow(None) as uow:
                return await uow.compactions.next_in_turn(hinted) or hinted
        except DependencyUnavailableError:
            return hinted

    async def _run_in_time(self, row: Compaction) -> Compaction:
        """Run a row for at most the time of one job.

        A long history that was never folded is first searched for anchors. If that takes the whole time, before any
        model was asked, it is not a failure: the next job goes on where this one stopped.
        """
        due_from, _ = await self._reading_progress(row)
        try:
            async with asyncio.timeout(self._shell.timings.job_seconds):
                return await self.run(row)
        except TimeoutError:
            lease = Lease.of(row)
            reached, has_folded = await self._reading_progress(row)
            if reached != due_from and not (has_folded or lease.token in self._unrecorded):
                return await self.hand_over(lease)
            return await self.end(lease, status="failed", reason="deadline")

    async def _reading_progress(self, row: Compaction) -> tuple[int | None, bool]:
        try:
            async with self._shell.uow(row.tenant_id) as uow:
                conversation = await uow.conversations.get(row.conversation_id)
        except NotFoundError:
            return None, True
        return conversation.anchors_due_from, conversation.state_version > 0

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
        return row

    async def run(self, row: Compaction, limits: JobLimits = UNLIMITED) -> Compaction:
        """Run a claimed row, chunk by chunk, until nothing is left to fold or the limits are reached.

        If the run is cancelled, the row keeps its lease, and the caller decides what becomes of it.
        """
        lease = Lease.of(row)
        job = Job.of(self._shell, lease, limits)
        done = 0
        try:
            async with keep_lease(
                lease, uow=self._shell.uow, clock=self._shell.clock, every=self._shell.timings.heartbeat_seconds
            ):
                while row.in_flight:
                    row = await self._work_on_record(row, job)
                    done += 1
                    if row.in_flight and done == limits.chunks:
                        return await self.hand_over(lease)
        except (LeaseLostError, NotFoundError):
            await self._record_calls(lease, job.unsaved_result)
            found = await self._row_as_stored(row)
            # This is done also for a run that has just ended its row, since its heartbeat then finds it ended; the
            # status tells.
            log.info("compaction.lease_lost", compaction_id=str(lease.compaction_id), status=found.status)
            return found
        except DependencyUnavailableError:
            raise
        except DomainError as error:  # a model that cannot be built may cost a compaction, but not a turn
            log.warning("compaction.impossible", compaction_id=str(lease.compaction_id), reason=error.stable_code)
            reason = "model_unavailable" if isinstance(error, InvalidInputError) else error.stable_code
            return await self.end(lease, status="failed", reason=reason, attempted=job.unsaved_result)
        except asyncio.CancelledError:
            self._keep_unrecorded_calls(lease, job.unsaved_result)
            raise
        except Exception:  # the same holds for a defect
            log.exception("compaction.crashed", compaction_id=str(lease.compaction_id))
            return await self.end(lease, status="failed", reason="internal_error", attempted=job.unsaved_result)
        return row

    async def hand_over(self, lease: Lease) -> Compaction:
        """Put a row back for the worker, without counting it as a crash."""
        attempted = self._unrecorded.pop(lease.token, None)
        async with self._shell.uow(lease.tenant_id) as uow:
            if attempted is not None:
                await uow.conversations.lock(lease.conversation_id)
                await add_calls(uow, await uow.compactions.get(lease.compaction_id), attempted)
            await uow.compactions.requeue(lease.compaction_id, lease.token, count=False)
            row = await uow.compactions.get(lease.compaction_id)
            if row.status == "queued":
                uow.jobs.append(row.id)
            await uow.commit()
        return row

    async def end(
        self, lease: Lease, *, status: CompactionStatus, reason: str | None, attempted: AttemptsResult | None = None
    ) -> Compaction:
        """End a held row that applies nothing (more). A row that is no longer held only gets the calls."""
        attempted = attempted or self._unrecorded.pop(lease.token, None)
        async with self._shell.uow(lease.tenant_id) as uow:
            await uow.conversations.lock(lease.conversation_id)
            row = await uow.compactions.get(lease.compaction_id)
            if row.lease_token == lease.token and row.in_flight:
                ended = await end_row(self._shell, uow, row, status=status, reason=reason, attempted=attempted)
            else:
                ended = await add_calls(uow, row, attempted) if attempted else row
            await uow.commit()
        return ended

    async def claim_due(self, tenant_id: UUID, conversation_id: UUID) -> UUID | None:
        """For the sweeper: queue a compaction of a conversation, for the first trigger of its policy that is due."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            await refresh_sizes(uow, resolved)
            if await uow.turns.running(conversation_id) is None:
                await claim_at_rest(uow, shell, resolved)
            claimed = uow.jobs.pop() if uow.jobs else None  # the sweeper sends it itself
            await uow.commit()
        return claimed

    async def end_quiet_of_limit(self, tenant_id: UUID, conversation_id: UUID, /) -> None:
        """For the sweeper: end a quiet that began because of a limit, if the limits of this process allow calls now."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.lock(conversation_id)
            if conversation.quiet.reason != SPEND_LIMIT:
                return
            resolved = shell.resolver(conversation)
            metered = summarizer_of(shell, resolved).profile.metered
            if await self._spending.time_to_wait(uow, resolved, metered=metered) is None:
                await uow.conversations.update(conversation_id, quiet=QuietPeriod())
                await uow.commit()

    async def give_up(self, uow: UnitOfWork, compaction: Compaction, /) -> None:
        """End a row that crashed its process too often, in the caller's transaction, with an event and a pause."""
        await uow.conversations.lock(compaction.conversation_id)
        await end_row(self._shell, uow, compaction, status="failed", reason="crashed")

    async def _work_on_record(self, row: Compaction, job: Job) -> Compaction:
        async with self._shell.work_records.record_work(row.tenant_id, row.conversation_id, "compaction") as record:
            job.record = record
            return await self._run_job(row, job)

    async def _run_job(self, row: Compaction, job: Job) -> Compaction:
        wait = await self._spending_wait(job.lease)
        if wait is not None:
            return await self._end_over_limit(job.lease, wait)
        if row.trigger == ERASURE_TRIGGER:
            return await rewrite_narrative(job)
        if refused := await self._refused_at_once(row):
            return await self.end(job.lease, status="failed", reason=refused.reason, attempted=refused)
        return await self._fold_chunk(row, job)

    async def _fold_chunk(self, row: Compaction, job: Job) -> Compaction:
        await find_due_anchors(self._shell, row.tenant_id, row.conversation_id)
        chunk = await job.next_chunk()
        if isinstance(chunk, NoChunk):
            return await self._end_empty(job.lease, chunk)
        asked_about, attempted = await job.run_attempts(chunk)
        if isinstance(asked_about, NoChunk):
            return await self._end_empty(job.lease, asked_about, attempted)
        if attempted.applied is None:
            status = _status_without_accepted(asked_about, attempted)
            return await job.save(partial(self.end, job.lease, **status, attempted=attempted))
        if attempted.withheld:
            log.warning("compaction.withheld", compaction_id=str(row.id), seqs=attempted.withheld)
        saving = partial(save_chunk, self._shell, job.lease, asked_about, attempted, attempted.applied)
        saved = await job.save(saving)
        job.calls = None
        await self._wake_turned_away(attempted)
        return saved

    async def _wake_turned_away(self, attempted: AttemptsResult) -> None:
        """Let the conversations be compacted now that were not, since a model was away that answers again."""
        now = self._shell.clock.monotonic()
        found_nobody = {model: at for model, at in self._found_nobody.items() if at > now - LOOK_AGAIN_SECONDS}
        answered = {one.model for one in attempted.attempts if one.outcome != "error" and one.metered}
        if not (answered := answered - found_nobody.keys()):
            return
        refused = [{"model": model, "reason": NOT_ASKED} for model in answered]
        with suppress(DependencyUnavailableError):
            async with self._shell.uow(None) as uow:
                if woken := await uow.conversations.end_quiet(TURNED_AWAY, limit=MAX_WOKEN, attempts=refused):
                    await uow.commit()
                    log.info("compaction.model_is_back", conversations=woken)
                else:
                    self._found_nobody = found_nobody | dict.fromkeys(answered, now)

    async def _refused_at_once(self, row: Compaction) -> AttemptsResult | None:
        """The refused calls of a compaction that begins while all its models are known to be away.

        In an outage all who wait are tried again and again: reading the texts would be in vain. One that has nothing to
        fold needs no model, and the caller of a manual one is told whether a model could help at all.
        """
        if row.trigger == "manual" or row.state_version_after is not None:
            return None
        async with self._shell.uow(row.tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.get(row.conversation_id))
        models = summarizer_of(self._shell, resolved), await fallback_of(self._shell, resolved)
        names = [model.profile.name for model in models if model]
        refused = turned_away({name: self._shell.models.seconds_away(name) for name in names})
        if refused is None:
            return None
        async with self._shell.uow(row.tenant_id) as uow:
            request = await before_running_turn(uow, row.conversation_id, row.request)
            planned = plan(resolved, await read_tail(uow, resolved), request, UNLIMITED_TOKENS)
        return None if isinstance(planned, NothingToFold) else refused

    async def _spending_wait(self, lease: Lease) -> timedelta | None:
        async with self._shell.uow(lease.tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.get(lease.conversation_id))
            metered = summarizer_of(self._shell, resolved).profile.metered
            return await self._spending.time_to_wait(uow, resolved, metered=metered)

    async def _end_over_limit(self, lease: Lease, wait: timedelta) -> Compaction:
        """End the row because the hour's calls are used up; the conversation is quiet until calls are possible."""
        async with self._shell.uow(lease.tenant_id) as uow:
            await uow.conversations.lock(lease.conversation_id)
            row = check_held(await uow.compactions.get(lease.compaction_id), lease)
            ended = await end_row(self._shell, uow, row, status="skipped", reason=SPEND_LIMIT)
            if row.trigger != "manual":
                quiet = QuietPeriod(until=self._shell.clock.now() + wait, reason=SPEND_LIMIT)
                await uow.conversations.update(row.conversation_id, quiet=quiet)
            await uow.commit()
        return ended

    async def _end_empty(self, lease: Lease, nothing: NoChunk, attempted: AttemptsResult | None = None) -> Compaction:
        """End the row because there is nothing (more) to fold; the conversation is quiet until something new comes."""
        resolved = nothing.resolved
        async with self._shell.uow(lease.tenant_id) as uow:
            present = self._shell.resolver(await uow.conversations.lock(lease.conversation_id))
            row = check_held(await uow.compactions.get(lease.compaction_id), lease)
            ended = await end_row(
                self._shell, uow, row, status="skipped", reason=nothing.found.reason, attempted=attempted
            )
            if await self._has_smaller_block(uow, present):
                await uow.conversations.update(row.conversation_id, quiet=QuietPeriod())
            elif row.trigger != "manual" and present.has_same_rules(resolved):
                quiet = quiet_after(
                    resolved.policy,
                    resolved.budgets,
                    seen_seq=resolved.conversation.last_seq,
                    predicted_tokens=resolved.conversation.counted(nothing.found.predicted_tokens),
                    lasting_floor=nothing.found.lasting,
                )
                await uow.conversations.update(row.conversation_id, quiet=replace(quiet, reason=nothing.found.reason))
            await uow.commit()
        return ended

    async def _has_smaller_block(self, uow: UnitOfWork, resolved: Resolved) -> bool:
        """Lay the block out again if the context is above the budget; return whether that made it smaller.

        It may have been laid out for a larger budget, by a process with other settings or for another model.
        """
        if resolved.tokens <= resolved.budgets.budget:
            return False
        renewed = await renew_layout(uow, self._shell, resolved)
        await refresh_sizes(uow, renewed)
        return renewed.breakdown.block < resolved.breakdown.block

    async def _record_calls(self, lease: Lease, attempted: AttemptsResult | None) -> None:
        """Record the calls of a run that lost its lease, whoever has the row by now: they were paid for too."""
        if attempted is None:
            return
        with suppress(NotFoundError, DependencyUnavailableError):
            async with self._shell.uow(lease.tenant_id) as uow:
                try:
                    await uow.conversations.lock(lease.conversation_id)
                    row = await uow.compactions.get(lease.compaction_id)
                except NotFoundError:  # the conversation was deleted meanwhile
                    calls = sum(attempt.metered for attempt in attempted.attempts)
                    await uow.spending.add_of_deleted(lease.tenant_id, "compaction", calls, attempted.usage)
                else:
                    await add_calls(uow, row, attempted)
                await uow.commit()

    def _keep_unrecorded_calls(self, lease: Lease, calls: AttemptsResult | None) -> None:
        if calls is not None:
            self._unrecorded[lease.token] = calls
            while len(self._unrecorded) > MAX_UNRECORDED_RUNS:
                del self._unrecorded[next(iter(self._unrecorded))]

    async def _row_as_stored(self, row: Compaction) -> Compaction:
        try:
            async with self._shell.uow(row.tenant_id) as uow:
                return await uow.compactions.get(row.id)
        except NotFoundError:
            # If the conversation was deleted meanwhile, its row was deleted too.
            return replace(row, status="superseded", reason="stale")


def _status_without_accepted(chunk: Chunk, attempted: AttemptsResult) -> dict[str, Any]:
    if attempted.got_no_answer:
        return {"status": "failed", "reason": attempted.reason}
    saved_too_little = {attempted.reason, *(attempt.reason for attempt in attempted.attempts)} == {"not_smaller"}
    skipped = chunk.row.trigger == "manual" and saved_too_little
    return {"status": "skipped" if skipped else "rejected", "reason": attempted.reason}
