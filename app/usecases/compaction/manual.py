"""``POST …/compact`` and what belongs to it: run now or in the worker, join, preview, retry, and read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from app.core.model.errors import (
    CompactionInProgressError,
    ConflictError,
    DependencyUnavailableError,
    InvalidInputError,
    NotFoundError,
    NotRetriedError,
    RateLimitedError,
    SummarizerFailedError,
    full_reason,
)
from app.core.model.records import ERASURE_TRIGGER, Compaction, FoldRequest, Page
from app.core.model.redaction import redact
from app.core.planning.compaction import CompactionPlan, NothingToFold
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import UNLIMITED_TOKENS, plan, read_tail, summarizer_of
from app.usecases.compaction.claiming import claim_queued, claim_running, new_compaction
from app.usecases.compaction.ending import FAILURES
from app.usecases.compaction.inline import SendNewEvents, send_nothing
from app.usecases.compaction.job import UNLIMITED
from app.usecases.compaction.run import CompactionService
from app.usecases.compaction.spend_guard import SPEND_LIMIT, SpendGuard, limited
from app.usecases.history.due_anchors import find_due_anchors
from app.usecases.shared.caller import audit
from app.usecases.shared.compaction_views import CompactionView, views_of
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.lease import Lease
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

RETRY_AFTER = 5.0
REPEATABLE_STATUSES = FAILURES | {"superseded"}
"""Statuses of a compaction that changed nothing: a waiting call gets an error, and may be repeated with its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactInput:
    """What the client of a manual call wants.

    If neither ``keep_tail_messages`` nor ``up_to_message_id`` is given, the policy's ``manual_keep`` says what is kept.
    Without ``up_to_message_id`` everything before the kept messages is folded.
    """

    focus: str | None = None
    up_to_message_id: UUID | None = None
    keep_tail_messages: int | None = None
    dry_run: bool = False
    wait: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether the call names neither focus nor range, so that it may join any compaction in flight."""
        return self.focus is None and self.up_to_message_id is None and self.keep_tail_messages is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The row for a manual call: its own, or a row in flight."""

    row: Compaction
    is_own: bool
    answers_call: bool
    """Whether the row's outcome answers the call. Otherwise the call waits for its end, and claims again."""
    joined: bool
    """``joined`` in the response: false for the call's own row, also when the call is repeated with its key."""


class ManualCompaction:
    """Runs manual calls. A failed call is always an error and changes nothing."""

    def __init__(self, shell: Shell, compaction: CompactionService, spending: SpendGuard) -> None:
        self._shell = shell
        self._compaction = compaction
        self._spending = spending

    async def compact(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        given: CompactInput,
        *,
        timeout: float,  # noqa: ASYNC109 - the request's own limit, spent on waiting and compacting together
        idem: Idem | None = None,
        on_claimed: SendNewEvents = send_nothing,
    ) -> CompactionView:
        """Compact now, join the compaction in flight, queue one, or preview.

        ``on_claimed`` is called when a compaction was begun, joined, or found in the way.

        Raises:
            CompactionInProgressError: A compaction that this call cannot join ran for longer than ``timeout`` seconds.
            RateLimitedError: The hour's model calls are used up; nothing changed.
            SummarizerFailedError: No attempt was accepted; nothing changed.
        """
        if given.dry_run:
            return await self._preview(tenant_id, conversation_id, given)
        deadline = self._shell.clock.monotonic() + timeout
        while True:
            found = await self._claim(tenant_id, conversation_id, given, idem)
            await on_claimed()
            if found.is_own or found.answers_call:
                return await self._view_now_or_at_end(found, given, deadline)
            if not given.wait:
                raise _in_progress()
            await self._follow(found.row, deadline)

    async def retry(self, tenant_id: UUID, compaction_id: UUID, *, idem: Idem | None = None) -> CompactionView:
        """Queue a failed compaction again, as a new row."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, shell.clock.now())
            if before is not None:
                return await self._view(await uow.compactions.get(UUID(before["compaction_id"])))
            failed = await uow.compactions.get(compaction_id)
            if failed.status not in FAILURES:
                raise NotRetriedError(f"only a failed compaction is retried; this one is {failed.status}")
            resolved = shell.resolver(await uow.conversations.lock(failed.conversation_id))
            row = new_compaction(
                resolved,
                shell,
                trigger=failed.trigger,
                request=failed.request,
                ran_in="worker",
                retry_of=failed.id,
            )
            queued = await claim_queued(uow, row, shell.clock.now())
            if queued is None:
                raise _in_progress()
            await self._check_spending(uow, resolved)
            await audit(uow, shell, tenant_id, "compaction.retried", queued.id, retry_of=str(failed.id))
            await record(uow, idem, {"compaction_id": str(queued.id)}, status=202)
            await uow.commit()
        return await self._view(queued)

    async def get(self, tenant_id: UUID, compaction_id: UUID) -> CompactionView:
        """One compaction with its summary."""
        async with self._shell.uow(tenant_id) as uow:
            row = await uow.compactions.get(compaction_id)
        return await self._view(row)

    async def page(
        self,
        tenant_id: UUID,
        page: Page,
        *,
        conversation_id: UUID | None = None,
        status: str | None = None,
        scored: bool = False,
    ) -> tuple[list[CompactionView], str | None]:
        """Compactions of a conversation, or of the tenant; ``scored``: only those with a continuity score."""
        async with self._shell.uow(tenant_id) as uow:
            if conversation_id is not None:
                await uow.conversations.get(conversation_id)
            rows, cursor = await uow.compactions.page(
                page, conversation_id=conversation_id, status=status, scored=scored
            )
            return await views_of(uow, rows), cursor

    async def _claim(self, tenant_id: UUID, conversation_id: UUID, given: CompactInput, idem: Idem | None) -> _Found:
        """Take the conversation's compaction slot, or find the row that has it."""
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, shell.clock.now())
            if before is not None:
                row = await uow.compactions.get(UUID(before["compaction_id"]))
                if not (given.wait and row.status in REPEATABLE_STATUSES):
                    return _Found(row=row, is_own=False, answers_call=True, joined=before["joined"])
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            request = await _request(uow, resolved, given)
            own = await self._claim_own_row(uow, resolved, request, given)
            if own is not None:
                await self._check_spending(uow, resolved)
            in_flight = own or await uow.compactions.in_flight(conversation_id)
            if in_flight is None:
                raise _in_progress()
            found = _Found(
                row=in_flight,
                is_own=own is not None,
                answers_call=in_flight.trigger != ERASURE_TRIGGER and (given.is_plain or in_flight.request == request),
                joined=own is None,
            )
            if found.is_own or found.answers_call:
                await record(uow, idem, {"compaction_id": str(in_flight.id), "joined": found.joined}, status=200)
                await uow.commit()
        return found

    async def _claim_own_row(
        self, uow: UnitOfWork, resolved: Resolved, request: FoldRequest, given: CompactInput
    ) -> Compaction | None:
        if given.wait:
            return await claim_running(uow, resolved, self._shell, trigger="manual", request=request, ran_in="request")
        row = new_compaction(resolved, self._shell, trigger="manual", request=request, ran_in="worker")
        return await claim_queued(uow, row, self._shell.clock.now())

    async def _check_spending(self, uow: UnitOfWork, resolved: Resolved) -> None:
        # This is called after the claim, since a call that joins another spends nothing. An error rolls the claim back.
        await self._spending.check(uow, resolved, metered=summarizer_of(self._shell, resolved).profile.metered)

    async def _view_now_or_at_end(self, found: _Found, given: CompactInput, deadline: float) -> CompactionView:
        if not given.wait:
            return await self._view(found.row, joined=found.joined)
        row = await self._run_until(found.row, deadline) if found.is_own else found.row
        return await self._view_of_ended(await self._follow(row, deadline), joined=found.joined)

    async def _run_until(self, row: Compaction, deadline: float) -> Compaction:
        try:
            async with asyncio.timeout(max(deadline - self._shell.clock.monotonic(), 0)):
                return await self._compaction.run(row, UNLIMITED.until(deadline))
        except TimeoutError:
            return await self._compaction.end(Lease.of(row), status="failed", reason="deadline")
        except asyncio.CancelledError:  # nobody waits for it any more; otherwise it would count as a crash
            with suppress(DependencyUnavailableError, NotFoundError):
                await self._compaction.hand_over(Lease.of(row))
            raise

    async def _follow(self, row: Compaction, deadline: float) -> Compaction:
        """Wait for a row that another process runs, or run a row that nobody runs; return the ended row."""
        if not row.in_flight:
            return row
        async with self._shell.bus.subscribe(row.conversation_id) as wake_up:
            while row.in_flight:
                taken = await self._compaction.take(row.id, "request")
                if taken is not None:
                    row = await self._run_until(taken, deadline)
                    continue
                if self._shell.clock.monotonic() > deadline:
                    raise _in_progress()
                await wake_up.wait(self._shell.timings.poll_seconds)
                async with self._shell.uow(row.tenant_id) as uow:
                    row = await uow.compactions.get(row.id)
        return row

    async def _view_of_ended(self, row: Compaction, *, joined: bool = False) -> CompactionView:
        """The view of an ended row. If the manual call failed, raises its error."""
        if row.reason == SPEND_LIMIT:
            raise await self._spending_limit_error(row)
        if row.status in {"applied", "skipped"}:
            return await self._view(row, joined=joined)
        extra = {"compaction_id": str(row.id), "reason": row.reason}
        if row.status == "superseded":
            async with self._shell.uow(row.tenant_id) as uow:
                await uow.conversations.get(row.conversation_id)  # raises if it was deleted meanwhile
            raise ConflictError("another change of the state came first: look at it, then compact again", extra=extra)
        if row.reason == "empty_summary":
            raise SummarizerFailedError("empty summary response", extra=extra, code="empty_summary")
        raise SummarizerFailedError(
            f"no usable summary ({full_reason(row.reason)}); nothing was changed",
            retry_after=row.attempts[-1].retry_after if row.attempts else None,
            extra=extra,
        )

    async def _spending_limit_error(self, row: Compaction) -> RateLimitedError:
        async with self._shell.uow(row.tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.get(row.conversation_id))
            wait = await self._spending.time_to_wait(uow, resolved, metered=True)
        return limited(wait or timedelta(0))

    async def _view(self, row: Compaction, *, joined: bool = False) -> CompactionView:
        async with self._shell.uow(row.tenant_id) as uow:
            (view,) = await views_of(uow, [row], joined=joined)
        return view

    async def _preview(self, tenant_id: UUID, conversation_id: UUID, given: CompactInput) -> CompactionView:
        await find_due_anchors(self._shell, tenant_id, conversation_id)
        async with self._shell.uow(tenant_id) as uow:
            resolved = self._shell.resolver(await uow.conversations.get(conversation_id))
            request = await _request(uow, resolved, given)
            tail = await read_tail(uow, resolved)
        row = new_compaction(resolved, self._shell, trigger="manual", request=request, ran_in="request")
        return CompactionView(compaction=_with_plan(row, plan(resolved, tail, request, UNLIMITED_TOKENS)), planned=True)


def _with_plan(row: Compaction, planned: CompactionPlan | NothingToFold) -> Compaction:
    if isinstance(planned, NothingToFold):
        return replace(row, reason=planned.reason, tokens_after=planned.predicted_tokens)
    return replace(
        row,
        from_seq=planned.from_seq,
        to_seq=planned.to_seq,
        messages_covered=planned.messages,
        tokens_after=planned.predicted_tokens,
    )


async def _request(uow: UnitOfWork, resolved: Resolved, given: CompactInput) -> FoldRequest:
    """The request of a manual call: fold everything except what is to be kept.

    The focus is redacted, since it is stored.
    """
    focus = None if given.focus is None else redact(given.focus)
    if given.up_to_message_id is None and given.keep_tail_messages is None:
        keep = resolved.policy.manual_keep
        return FoldRequest(
            fold="all",
            keep_turns=keep.turns,
            keep_messages=keep.messages,
            keep_tokens=keep.tokens,
            focus=focus,
        )
    return FoldRequest(
        fold="all",
        keep_messages=given.keep_tail_messages or 0,
        up_to_seq=await _seq_of(uow, resolved.conversation.id, given.up_to_message_id),
        focus=focus,
    )


async def _seq_of(uow: UnitOfWork, conversation_id: UUID, message_id: UUID | None) -> int | None:
    if message_id is None:
        return None
    try:
        return (await uow.messages.get(conversation_id, message_id)).seq
    except NotFoundError:
        raise InvalidInputError.of("up_to_message_id", "no such message in this conversation") from None


def _in_progress() -> CompactionInProgressError:
    return CompactionInProgressError(
        "another compaction of this conversation is in flight: wait for it, or join it without focus, range and keep",
        retry_after=RETRY_AFTER,
    )
