"""Has a model write L1s in the background after a compaction: one short claim, one call, one commit.

Compactions come first: nothing is written while any waits, and only few L1s at once. A failure is tried again later,
three times at most. Until an L1 is written, and for ever if that fails, the L1 made by code stays.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.conversation import Conversation, Message, Usage
from app.core.model.errors import (
    REMEDIES,
    DependencyUnavailableError,
    InvalidInputError,
    ModelUnavailableError,
    NotFoundError,
)
from app.core.model.model_io import DetailRequest, Proposal
from app.core.model.records import Attempt, DetailCall
from app.core.model.redaction import redact, redact_messages
from app.core.model.segments import Segment, SegmentLevel
from app.core.segments.hashing import content_hash
from app.core.summarizer.detail_prompts import DETAIL_VERSION
from app.core.text.token_counts import estimate_text
from app.core.validation.detail_checks import DetailReport, check_detail
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import TURNED_AWAY
from app.usecases.compaction.chunk import chunk_tokens, summarizer_of
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.ports import Summarizer
from app.usecases.shared.background_calls import BACK_OFF, COMPACTION_PAUSE, MAX_TRIES, back_off, is_compaction_waiting
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import through_short_outage
from app.usecases.shared.shell import Shell

SHARE: Final = 0.25
"""The share of the originals' tokens that an L1 should have."""
MIN_TARGET_TOKENS: Final = 60
MAX_TARGET_TOKENS: Final = 600
WORTH: Final = 100
"""The least tokens of a segment for which a model is worth asking: code takes nearly all of a shorter one."""
OUTPUT_PER_TARGET: Final = 4  # output tokens asked for per target token, since reasoning counts as output
MIN_OUTPUT_TOKENS: Final = 2_048
MAX_SETTLED_SEGMENTS: Final = 50  # segments that are settled without a call in one run
_OF_THE_REQUEST: Final = frozenset({"bad_request", "context_too_long"})
"""Reasons for which the same request would always fail again."""
MAX_CANDIDATES: Final = 1_000  # how many waiting segments of a conversation are searched for one to write

Outcome = Literal["written", "kept", "refused", "failed", "stale", "not_now", "not_wanted"]
"""``kept``: the present L1 stays for good. ``not_now``: the segment is looked at again later."""
HANDLED: Final = frozenset[Outcome]({"written", "kept", "refused", "failed"})
"""Outcomes after which a worker is asked to take the next waiting segment."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detailed:
    """The outcome for one segment's L1."""

    outcome: Outcome
    reason: str | None = None
    """The stable word for what was wrong with the model's answer, or why there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """The right to ask once about a segment, for ``Timings.detail_claim_seconds``."""

    call_id: UUID
    conversation: Conversation
    resolved: Resolved
    segment: Segment
    messages: tuple[Message, ...]
    summarizer: Summarizer
    tries: int
    """The number of this try, by which a claim is recognised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    attempt: Attempt
    text: str = ""


class DetailService:
    """Has models write L1s.

    Calls are made only while ``spending`` allows them; at most ``slots`` run at once, over all processes.
    """

    def __init__(self, shell: Shell, spending: SpendGuard, *, slots: int = 1) -> None:
        self._shell = shell
        self._spending = spending
        self._slots = slots
        self._claim = timedelta(seconds=shell.timings.detail_claim_seconds)

    async def work(self, conversation_id: UUID | None = None) -> Outcome:
        """Have one L1 written, for that conversation or for any, and send a hint if more are wanted.

        Segments whose L1 by code is good enough are settled on the way. If the database is away, nothing happens; the
        sweeper asks again.
        """
        outcome: Outcome = "not_wanted"
        try:
            for _ in range(MAX_SETTLED_SEGMENTS):
                wanting = await self._wanting_detail(conversation_id)
                if not wanting:
                    return outcome
                outcome = await self.run(*wanting[0])
                if outcome != "kept":
                    break
        except DependencyUnavailableError as error:
            log.warning("detail.not_now", reason=error.stable_code)
            return "not_now"
        if outcome in HANDLED and len(wanting) > 1:
            self._shell.outbox.send_later("detail", wanting[1][1])
        return outcome

    async def run(self, tenant_id: UUID, conversation_id: UUID, segment_id: str) -> Outcome:
        """Have one segment's L1 written if it is wanted, unless another process works on it or compactions wait.

        A failure of the model is never raised. Two runs at the same time make one call.
        """
        if await self._is_busy():
            return "not_now"
        return (await self._run(tenant_id, conversation_id, segment_id, urgent=False)).outcome

    async def run_now(self, tenant_id: UUID, conversation_id: UUID, segment_id: str) -> Detailed:
        """Have one segment's L1 written for a caller who waits, even if it is not wanted or due, or was given up."""
        return await self._run(tenant_id, conversation_id, segment_id, urgent=True)

    async def _run(self, tenant_id: UUID, conversation_id: UUID, segment_id: str, *, urgent: bool) -> Detailed:
        claimed = await self._claim_or_outcome(tenant_id, conversation_id, segment_id, urgent=urgent)
        if not isinstance(claimed, _Claim):
            return Detailed(outcome=claimed)
        answer = await self._ask(claimed)
        storing = partial(self._outcome_stored, tenant_id, claimed, answer)
        outcome = await through_short_outage(storing, self._shell.clock)
        log.info(
            "detail.done",
            conversation_id=str(conversation_id),
            from_seq=claimed.segment.from_seq,
            to_seq=claimed.segment.to_seq,
            outcome=outcome,
            reason=answer.attempt.reason,
            tries=claimed.tries,
        )
        return Detailed(outcome=outcome, reason=answer.attempt.reason)

    async def _wanting_detail(self, conversation_id: UUID | None) -> list[tuple[UUID, UUID, str]]:
        async with self._shell.uow(None) as uow:
            return await uow.segments.wanting_detail(limit=2, conversation_id=conversation_id)

    async def _is_busy(self) -> bool:
        async with self._shell.uow(None) as uow:
            if await is_compaction_waiting(uow):
                return True
            return await uow.detail_calls.running(self._claim) >= self._slots

    # --- claiming

    async def _claim_or_outcome(
        self, tenant_id: UUID, conversation_id: UUID, segment_id: str, *, urgent: bool
    ) -> _Claim | Outcome:
        async with self._shell.uow(tenant_id) as uow:
            try:
                conversation = await uow.conversations.lock(conversation_id)
                segment = await uow.segments.get(conversation_id, segment_id)
            except NotFoundError:
                return "not_wanted"
            if urgent:
                if await uow.detail_calls.running(self._claim, conversation_id=conversation_id):
                    return "not_now"
                segment = replace(segment, detail_tries=0)
            else:
                wanted = await uow.segments.wanting_detail(limit=MAX_CANDIDATES, conversation_id=conversation_id)
                if not any(id_ == segment_id for _, _, id_ in wanted):
                    return "not_wanted"
            found = await self._claim_or_reason(uow, conversation, segment, urgent=urgent)
            await uow.commit()
            return found

    async def _claim_or_reason(
        self, uow: UnitOfWork, conversation: Conversation, segment: Segment, *, urgent: bool
    ) -> _Claim | Outcome:
        """Make the claim and store it with its call; or return why there is none, and store when to look again."""
        try:
            resolved = self._shell.resolver(conversation)
            summarizer = summarizer_of(self._shell, resolved)
        except InvalidInputError:  # a model's key is missing, for now
            return await self._put_off(uow, segment, BACK_OFF)
        metered = summarizer.profile.metered
        useless = not metered or "L1" not in resolved.policy.levels or segment.tokens < WORTH
        if useless or segment.detail_tries >= MAX_TRIES:
            return await self._stop_wanting(uow, segment)
        if not urgent and await uow.compactions.in_flight(conversation.id):
            return await self._put_off(uow, segment, COMPACTION_PAUSE)
        if wait := await self._spending.time_to_wait(uow, resolved, metered=metered, keeps_reserve=not urgent):
            return await self._put_off(uow, segment, wait)
        spoken = await uow.messages.between(conversation.id, segment.from_seq, segment.to_seq)
        messages = tuple(message for message in spoken if message.is_part_of_talk)
        stored = segment.levels.get("L1")
        is_there = stored is not None and stored.content_hash == _content_hash(messages, summarizer.profile.name)
        if is_there or not messages:
            return await self._stop_wanting(uow, segment)
        return await self._begin_call(uow, resolved, segment, messages, summarizer)

    async def _begin_call(
        self,
        uow: UnitOfWork,
        resolved: Resolved,
        segment: Segment,
        messages: tuple[Message, ...],
        summarizer: Summarizer,
    ) -> _Claim:
        now, tries = self._shell.clock.now(), segment.detail_tries + 1
        call = DetailCall(id=self._shell.new_id(), conversation_id=resolved.conversation.id, called_at=now)
        claimed = {"wants_detail": True, "detail_tries": tries, "detail_after": self._claim}
        await uow.segments.update(segment.conversation_id, segment.id, **claimed)
        await uow.detail_calls.begin(call)
        return _Claim(
            call_id=call.id,
            conversation=resolved.conversation,
            resolved=resolved,
            segment=segment,
            messages=messages,
            summarizer=summarizer,
            tries=tries,
        )

    async def _put_off(self, uow: UnitOfWork, segment: Segment, wait: timedelta) -> Outcome:
        await uow.segments.update(segment.conversation_id, segment.id, detail_after=wait)
        return "not_now"

    async def _stop_wanting(self, uow: UnitOfWork, segment: Segment) -> Outcome:
        await uow.segments.update(segment.conversation_id, segment.id, wants_detail=False, detail_after=None)
        return "kept"

    # --- calling

    async def _ask(self, claim: _Claim) -> _Answer:
        started = self._shell.clock.monotonic()
        request = await off_loop(_request, claim)
        proposal: Proposal | None = None
        report = DetailReport(reason="internal_error")
        try:
            async with asyncio.timeout(self._shell.timings.call_deadline_seconds):
                proposal = await claim.summarizer.ask(request)
            report = await off_loop(check_detail, proposal, request)
        except ModelUnavailableError as error:
            report = DetailReport(reason=error.reason)
        except TimeoutError:
            report = DetailReport(reason="timeout")
        except Exception:  # a defect may cost an L1, but must not disturb the worker
            log.exception("detail.crashed", conversation_id=str(claim.conversation.id))
        duration = round((self._shell.clock.monotonic() - started) * 1000)
        return _Answer(attempt=_attempt(claim, proposal, report, duration), text=report.text)

    # --- storing

    async def _outcome_stored(self, tenant_id: UUID, claim: _Claim, answer: _Answer) -> Outcome:
        async with self._shell.uow(tenant_id) as uow:
            try:
                present = await uow.conversations.lock(claim.conversation.id)
                await uow.detail_calls.end(claim.call_id, answer.attempt)
                outcome = await self._write_outcome(uow, present, claim, answer)
            except NotFoundError:
                return "stale"
            await uow.commit()
            return outcome

    async def _write_outcome(self, uow: UnitOfWork, present: Conversation, claim: _Claim, answer: _Answer) -> Outcome:
        id_, tries = claim.segment.id, claim.tries
        try:
            segment = await uow.segments.get(present.id, id_)
        except NotFoundError:  # an erasure may have given the segment another name
            return "stale"
        if not _is_claim_current(claim, segment):
            return "stale"
        if _erased_meanwhile(claim.conversation, present):
            await uow.segments.update(present.id, id_, detail_tries=tries - 1, detail_after=None)
            return "stale"
        if answer.attempt.outcome == "accepted":
            await uow.segments.put_levels(present.id, id_, [self._level(claim, answer)])
            await uow.segments.update(present.id, id_, wants_detail=False, detail_after=None)
            return "written"
        await self._postpone(uow, claim, answer.attempt)
        return "refused" if answer.attempt.outcome == "refused" else "failed"

    async def _postpone(self, uow: UnitOfWork, claim: _Claim, attempt: Attempt) -> None:
        """Put the segment off after a failed try. While a provider is away, a try does not count.

        A segment whose request can never succeed is not tried again.
        """
        is_away = attempt.reason in TURNED_AWAY and attempt.reason not in REMEDIES
        tries = claim.tries - is_away
        wait = back_off(MAX_TRIES if is_away else tries)
        again = tries < MAX_TRIES and attempt.reason not in _OF_THE_REQUEST
        await uow.segments.update(
            claim.conversation.id,
            claim.segment.id,
            detail_tries=tries,
            wants_detail=again,
            detail_after=wait if again else None,
        )

    def _level(self, claim: _Claim, answer: _Answer) -> SegmentLevel:
        model = answer.attempt.model
        return SegmentLevel(
            level="L1",
            text=answer.text,
            tokens=estimate_text(answer.text),
            made_by=model,
            content_hash=_content_hash(claim.messages, model),
            created_at=self._shell.clock.now(),
        )


def _is_claim_current(claim: _Claim, segment: Segment) -> bool:
    return segment.wants_detail and segment.detail_tries == claim.tries


def _erased_meanwhile(read: Conversation, present: Conversation) -> bool:
    return read.content_epoch != present.content_epoch


def _content_hash(messages: tuple[Message, ...], model: str) -> str:
    return content_hash(messages, "L1", model, DETAIL_VERSION)


def _request(claim: _Claim) -> DetailRequest:
    """The request to the model: the messages without secrets, the largest of them elided if they exceed its window."""
    profile = claim.summarizer.profile
    target = int(min(max(SHARE * claim.segment.tokens, MIN_TARGET_TOKENS), MAX_TARGET_TOKENS))
    return DetailRequest(
        topic=redact(claim.segment.topic),
        messages=redact_messages(claim.messages),
        target_tokens=target,
        max_output_tokens=min(max(OUTPUT_PER_TARGET * target, MIN_OUTPUT_TOKENS), profile.output_limit),
        locale=claim.conversation.locale,
        instructions=claim.resolved.policy.instructions,
        shown_tokens=chunk_tokens(profile),
    )


def _attempt(claim: _Claim, proposal: Proposal | None, report: DetailReport, duration: int) -> Attempt:
    outcome: Literal["accepted", "refused", "error"] = "accepted" if report.reason is None else "refused"
    return Attempt(
        model=proposal.model if proposal else claim.summarizer.profile.name,
        outcome=outcome if proposal else "error",
        reason=report.reason,
        duration_ms=duration,
        usage=proposal.usage if proposal else Usage(),
        metered=claim.summarizer.profile.metered and report.reason not in TURNED_AWAY,
    )
