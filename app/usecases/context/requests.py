"""Answers a client's request for a context. Compacts first if that is wanted and due, and records what is recalled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from app.core.context.assembly import AssembledContext, recalled_seqs
from app.core.model.errors import BudgetTooSmallError, IdempotencyInProgressError
from app.core.model.records import Compaction
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.due_triggers import due_before_call
from app.usecases.compaction.inline import InlineClaim, InlineCompaction, InlineOutcome
from app.usecases.context.context import ContextService, TimedContext
from app.usecases.context.recalling import NO_RECALL_REQUEST, RecallRequest, split_by_segment
from app.usecases.shared.compaction_views import CompactionView, views_of
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

Compact = Literal["never", "if_needed"]
OK: Final = 200
IN_REQUEST: Final = "request"
RETRY_AFTER: Final = 2.0
"""After how many seconds a repeated request, whose first one still runs, is told to try again."""
_TRIES: Final = 8
"""The most contexts that are made to find a budget that is enough; nearly always the first or second one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAsk:
    """What a client's request asks for."""

    budget: int | None = None
    """Tokens after the system prompt and the files; ``None`` = the policy's budget, which includes both."""
    recall_request: RecallRequest = NO_RECALL_REQUEST
    compact: Compact = "never"
    """``if_needed``: if a trigger is due before a model call, compact first, as a turn does."""
    counts: bool = False
    """Whether what is recalled is recorded as an expansion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """A context as clients see it."""

    context: AssembledContext
    segments: Mapping[int, str] = field(default_factory=dict)
    """The id of the current segment of each recalled message."""
    compaction: CompactionView | None = None


class ContextRequests:
    """Answers ``GET`` and ``POST …/context``."""

    def __init__(self, shell: Shell, context: ContextService, inline: InlineCompaction) -> None:
        self._shell = shell
        self._context = context
        self._inline = inline

    async def answer(
        self, tenant_id: UUID, conversation_id: UUID, ask: ContextAsk, *, idem: Idem | None = None
    ) -> ContextView:
        """The context. A request that is repeated under the same key compacts and records nothing more.

        Raises:
            BudgetTooSmallError: Not even the last message fits.
            ContextOverWindowError: Under ``keep_full`` the whole context exceeds the window.
        """
        outcome = await self._compacted(tenant_id, conversation_id, ask, idem)
        timed_context = await self._assembled(tenant_id, conversation_id, ask)
        context = replace(timed_context.context, warnings=(*outcome.warnings, *timed_context.context.warnings))
        if not context.recalled and outcome.row is None:
            return ContextView(context=context)
        done = {"compaction_id": str(outcome.row.id) if outcome.row else None}
        async with self._shell.uow(tenant_id) as uow:
            segments = await uow.segments.covering(conversation_id, recalled_seqs(context.recalled))
            views = await views_of(uow, [await uow.compactions.get(outcome.row.id)] if outcome.row else [])
            if ask.counts and context.recalled:
                with optional_write("recall.not_recorded", conversation_id=str(conversation_id)):
                    await self._count_once(uow, conversation_id, timed_context, idem, done)
                    await uow.commit()
        return ContextView(
            context=split_by_segment(context, segments), segments=segments, compaction=next(iter(views), None)
        )

    async def _assembled(self, tenant_id: UUID, conversation_id: UUID, ask: ContextAsk) -> TimedContext:
        assemble = partial(
            self._context.assemble_unrecorded, tenant_id, conversation_id, recall_request=ask.recall_request
        )
        try:
            return await assemble(ask.budget)
        except BudgetTooSmallError as error:
            minimum = await _sufficient(assemble, error.extra["minimum"])
            raise BudgetTooSmallError.needing(minimum, left=error.extra["left"]) from None

    async def _compacted(
        self, tenant_id: UUID, conversation_id: UUID, ask: ContextAsk, idem: Idem | None
    ) -> InlineOutcome:
        """Compact if that is wanted and due. If a request with the same key did so before, return its compaction."""
        if ask.compact == "never":
            if idem is not None:
                with optional_write("idempotency.not_recorded", conversation_id=str(conversation_id)):
                    return await self._compacted_once(tenant_id, conversation_id, ask, idem)
            return InlineOutcome()
        return await self._compacted_once(tenant_id, conversation_id, ask, idem)

    async def _compacted_once(
        self, tenant_id: UUID, conversation_id: UUID, ask: ContextAsk, idem: Idem | None
    ) -> InlineOutcome:
        claim: InlineClaim | None = None
        async with self._shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, self._shell.clock.now())
            if before and before.get("compaction_id"):
                return InlineOutcome(row=await self._finished_row(uow, UUID(before["compaction_id"])))
            if before:
                return InlineOutcome()
            resolved = self._shell.resolver(await uow.conversations.lock(conversation_id))
            if ask.compact == "if_needed":
                claim = await self._claim_if_due(uow, resolved)
            await record(uow, idem, {"compaction_id": str(claim.row.id) if claim else None}, OK)
            await uow.commit()
        return await self._inline.run_or_wait(resolved, claim) if claim else InlineOutcome()

    async def _finished_row(self, uow: UnitOfWork, compaction_id: UUID) -> Compaction:
        row = await uow.compactions.get(compaction_id)
        if row.status == "running" and row.ran_in == IN_REQUEST:
            raise IdempotencyInProgressError("the first request with this key still runs", retry_after=RETRY_AFTER)
        return row

    async def _claim_if_due(self, uow: UnitOfWork, resolved: Resolved) -> InlineClaim | None:
        due = due_before_call(resolved, self._shell)
        return await self._inline.claim(uow, resolved, due) if due else None

    async def _count_once(
        self,
        uow: UnitOfWork,
        conversation_id: UUID,
        timed_context: TimedContext,
        idem: Idem | None,
        done: Mapping[str, Any],
    ) -> None:
        again = await claim_key(uow, idem, self._shell.clock.now())
        if again and again.get("counted"):
            return
        shell = self._shell
        await uow.expansions.add([timed_context.expansion(shell.new_id(), conversation_id, shell.clock.now())])
        await record(uow, idem, {**done, "counted": True}, OK)


async def _sufficient(assemble: Callable[[int], Awaitable[TimedContext]], budget: int) -> int:
    """This budget, or the next one that is enough: with a larger one more is read, which may belong together."""
    for _ in range(_TRIES):
        try:
            await assemble(budget)
        except BudgetTooSmallError as error:
            budget = error.extra["minimum"]
        else:
            break
    return budget
