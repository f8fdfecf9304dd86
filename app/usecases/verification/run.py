"""The verifier: in the background, a model judges what a compaction wrote.

A process claims a verification, makes a few model calls, and stores the verdicts in one transaction. It never takes the
compaction slot, and waits while a compaction has it. A failure changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.claims import Claim
from app.core.model.conversation import Conversation, Message, Usage
from app.core.model.errors import REMEDIES, DependencyUnavailableError, InvalidInputError, NotFoundError
from app.core.model.records import Compaction, Verification, VerificationStatus
from app.core.model.redaction import redact_messages
from app.core.model.schemas import schema_named
from app.core.model.segments import Level, Segment
from app.core.model.state import StateEntry, StateVersion, VerificationCounts
from app.core.model.timings import VERDICTS_WAIT_SECONDS
from app.core.segments.describing import describe
from app.core.state.restored_sentences import with_restored_sentences
from app.core.state.schema_change import next_entry_number
from app.core.text.token_counts import Estimator
from app.core.validation.claims import unshown_sources
from app.core.validation.lost_entries import without_lost_entries
from app.core.validation.narrative_sources import search_words
from app.core.validation.restoring import Restoration
from app.core.validation.verdict_application import VerifiedState, apply_verdicts
from app.core.validation.verifier_prompts import VERIFY_VERSION
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import TURNED_AWAY
from app.usecases.compaction.chunk import chunk_tokens, seqs_of_demands, summarizer_of
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.segmenting import cut_of, extractive_level
from app.usecases.compaction.spend_guard import SPEND_LIMIT, SpendGuard
from app.usecases.history.anchors import settle_claims
from app.usecases.history.holding import renew_layout
from app.usecases.ports import Summarizer
from app.usecases.shared.background_calls import BACK_OFF, COMPACTION_PAUSE, MAX_TRIES, back_off, is_compaction_waiting
from app.usecases.shared.lease import LeaseLostError, keep_work
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute, Results, run_with_retries, through_outage
from app.usecases.shared.shell import Shell
from app.usecases.verification.ending import end
from app.usecases.verification.judging import (
    NO_VERDICTS,
    Judgement,
    Subject,
    VersionSources,
    digest_text,
    judge,
    read_version,
    subject_of,
    with_older,
)
from app.usecases.verification.pending import (
    PENDING,
    WAITING_REASONS,
    gathering_end,
    is_wanted,
    note_version,
    verifier_name,
)
from app.usecases.verification.rewriting import ids_pushed_out, write_entries

MAX_SEARCH_HITS: Final = 200
"""The most earlier messages that are read because they have words of the claims."""
_SLOT_FACTOR: Final = 2
"""At most this many times ``slots`` verifications run, those that take long included."""
LONGEST_OUTAGE: Final = timedelta(days=1)
"""How long a verification waits for a provider that is away, or turns calls away, without using up its tries."""
_HANG_PAUSE: Final = timedelta(hours=1)
"""The pause before the last try if the model kept the others waiting: it may hang for an hour, and calls may cost."""
REWRITTEN_LEVELS: Final[tuple[Level, ...]] = ("L2", "L3")
"""The levels that a summarizer writes with the state."""

Outcome = Literal["changed", "verified", "failed", "skipped", "stale", "not_now", "not_wanted"]
"""``changed``: verdicts led to a new version. ``not_now``: the version is looked at again later. ``not_wanted``: no
version waits to be verified.
"""
HANDLED: Final = frozenset[Outcome]({"changed", "verified", "failed", "skipped", "stale"})
"""Outcomes after which a worker is asked to take the next waiting verification."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claimed:
    """The right to verify a version, for ``Timings.lease_seconds``; each heartbeat renews it."""

    row: Verification
    """The claimed row. Its number of tries tells this claim from any later one."""
    resolved: Resolved
    sources: VersionSources
    summarizer: Summarizer

    @property
    def conversation(self) -> Conversation:
        return self.resolved.conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The answer of a verifier, to be applied."""

    subject: Subject
    judgement: Judgement
    now: datetime

    @property
    def version(self) -> StateVersion:
        """The version of the state that the verdict is about."""
        return self.subject.sources.version


class VerificationService:
    """Has models verify states.

    Calls are made only while ``spending`` allows them. At most ``slots`` run at once over all processes, not counting
    those that take long. The model is the policy's, otherwise ``model``, otherwise the summarizer.
    """

    def __init__(self, shell: Shell, spending: SpendGuard, *, slots: int = 1, model: str | None = None) -> None:
        self._shell = shell
        self._spending = spending
        self._slots = slots
        self._model = model

    async def work(self, conversation_id: UUID | None = None) -> Outcome:
        """Have one state verified, of that conversation or of any, and send a hint if more wait.

        If the database is away, nothing happens; the sweeper asks again.
        """
        try:
            async with self._shell.uow(None) as uow:
                wanting = await uow.verifications.due(limit=2, conversation_id=conversation_id)
            if not wanting:
                return "not_wanted"
            outcome = await self.run(*wanting[0])
        except DependencyUnavailableError as error:
            log.warning("verification.not_now", reason=error.stable_code)
            return "not_now"
        if outcome in HANDLED and len(wanting) > 1:
            self._shell.outbox.send_later("verification", wanting[1][1])
        return outcome

    async def verify_after(self, compaction: Compaction | None) -> None:
        """Verify what a compaction has just written, if it was applied.

        A failure here never makes the compaction fail.
        """
        if compaction is None or compaction.status != "applied":
            return
        try:
            await self.work(compaction.conversation_id)
        except Exception:
            log.exception("verification.crashed", conversation_id=str(compaction.conversation_id))

    async def run(self, tenant_id: UUID, conversation_id: UUID) -> Outcome:
        """Have the newest version of one conversation verified, unless another process works on it.

        A failure of the model is never raised. Two runs at the same time make one verification.
        """
        if await self._is_busy():
            return "not_now"
        if self._shell.verifies:
            await self._prepare_verifier(tenant_id, conversation_id)
        claimed = await self._claim_or_outcome(tenant_id, conversation_id)
        if not isinstance(claimed, _Claimed):
            return claimed
        try:
            async with self._keep_claim(claimed.row):
                return await self._judge_and_store(tenant_id, claimed)
        except LeaseLostError:
            return "stale"

    async def _judge_and_store(self, tenant_id: UUID, claimed: _Claimed) -> Outcome:
        subject = await self._subject(tenant_id, claimed)
        timings, clock = self._shell.timings, self._shell.clock
        subject, judgement = await judge(claimed.summarizer, subject, clock, call_seconds=timings.call_deadline_seconds)
        outcome = await self._store_outcome(tenant_id, claimed, subject, judgement)
        log.info(
            "verification.done",
            conversation_id=str(claimed.conversation.id),
            version=claimed.row.version,
            outcome=outcome,
            claims=len(subject.claims),
            calls=len(judgement.attempts),
            reason=judgement.last.reason if judgement.last else None,
            tries=claimed.row.tries,
        )
        return outcome

    def _keep_claim(self, row: Verification) -> AbstractAsyncContextManager[None]:
        """Renew the claim while the body runs. If this process dies, the claim ends and another takes the work over."""
        shell, seconds = self._shell, self._shell.timings.lease_seconds

        async def beat(uow: UnitOfWork) -> bool:
            return await uow.verifications.renew_claim(row.id, row.tries, seconds=seconds)

        every = shell.timings.heartbeat_seconds
        # Of no tenant, as in ``keep_lease``: the tenant's requests must not hold a heartbeat up.
        return keep_work(
            beat, uow=partial(shell.uow, None), clock=shell.clock, every=every, of=("verification", row.id)
        )

    async def _prepare_verifier(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Build the model that will judge, before the transaction of the claim: it may take seconds."""
        model = self._model
        try:
            async with self._shell.uow(tenant_id) as uow:
                row = await uow.conversations.get(conversation_id)
            policy = self._shell.resolver.policy(row.preset, row.policy, row.preset_version)
            model = verifier_name(self._shell, policy, self._model)
            if model is not None:
                await self._shell.models.prepare(model)
        except NotFoundError:
            return  # there will be nothing to claim
        except InvalidInputError as error:  # the claim is put off for this
            log.warning("verification.model_unavailable", model=model, detail=error.detail)

    async def _is_busy(self) -> bool:
        """Whether compactions wait, or all slots are taken."""
        patience = timedelta(seconds=self._shell.timings.verification_patience_seconds)
        async with self._shell.uow(None) as uow:
            if await is_compaction_waiting(uow):
                return True
            running, recent = await uow.verifications.running(within=patience)
            # A call that takes longer than the patience keeps no slot. Others begin meanwhile, at most as many again.
            return recent >= self._slots or running >= _SLOT_FACTOR * self._slots

    def _verifier(self, resolved: Resolved) -> Summarizer | None:
        name = verifier_name(self._shell, resolved.policy, self._model)
        try:
            return self._shell.models.summarizer(name) if name else summarizer_of(self._shell, resolved)
        except InvalidInputError:
            return None

    # --- claiming

    async def _claim_or_outcome(self, tenant_id: UUID, conversation_id: UUID) -> _Claimed | Outcome:
        async with self._shell.uow(tenant_id) as uow:
            try:
                conversation = await uow.conversations.lock(conversation_id)
            except NotFoundError:
                return "not_wanted"
            is_due = await uow.verifications.due(limit=1, conversation_id=conversation_id)
            row = await uow.verifications.open_of(conversation_id)
            if row is None or not is_due:
                return "not_wanted"
            try:
                resolved = self._shell.resolver(conversation)
            except InvalidInputError:  # the chat model's key is missing, for now
                found: _Claimed | Outcome = await self._put_off(uow, row, BACK_OFF)
            else:
                found = await self._claim_row(uow, resolved, row)
            await uow.commit()
        return found

    async def _claim_row(self, uow: UnitOfWork, resolved: Resolved, row: Verification) -> _Claimed | Outcome:
        """Claim the row; or end it or put it off, and return that outcome."""
        conversation = resolved.conversation
        number = conversation.state_version
        version = await uow.states.get(conversation.id, number) if number else None
        if version is None or version.verified != PENDING:
            return await self._end_without_changes(uow, row, "stale", "superseded")
        until = gathering_end(self._shell, row, conversation.last_message_at)
        if until is not None:
            await uow.verifications.update(row.id, after=until)
            return "not_now"
        row = replace(row, version=version.version, reason=None if row.reason in WAITING_REASONS else row.reason)
        if row.tries >= MAX_TRIES:
            return await self._end_without_changes(uow, row, "failed", row.reason or "given_up")
        summarizer = self._verifier(resolved)
        if not is_wanted(self._shell, resolved.policy) or (summarizer and not summarizer.profile.metered):
            return await self._end_without_changes(uow, row, "skipped", "off")
        wait, reason = await self._pause_and_reason(uow, resolved, row) if summarizer else (BACK_OFF, row.reason)
        if summarizer is None or wait is not None:
            return await self._put_off(uow, replace(row, reason=reason), wait or BACK_OFF)
        return await self._begin(uow, resolved, row, version, summarizer)

    async def _pause_and_reason(
        self, uow: UnitOfWork, resolved: Resolved, row: Verification
    ) -> tuple[timedelta | None, str | None]:
        """How long to wait for a compaction or for the spending limit, and the row's reason meanwhile."""
        if await uow.compactions.in_flight(resolved.conversation.id):
            return COMPACTION_PAUSE, row.reason
        wait = await self._spending.time_to_wait(
            uow, resolved, metered=True, keeps_reserve=True, purpose="verification"
        )
        return wait, SPEND_LIMIT

    async def _begin(
        self,
        uow: UnitOfWork,
        resolved: Resolved,
        row: Verification,
        version: StateVersion,
        summarizer: Summarizer,
    ) -> _Claimed:
        claimed = replace(row, status="running", tries=row.tries + 1)
        await uow.verifications.update(
            row.id,
            status=claimed.status,
            reason=claimed.reason,
            version=claimed.version,
            tries=claimed.tries,
            after=timedelta(seconds=self._shell.timings.lease_seconds),
            asked_at=timedelta(),
        )
        sources = await read_version(uow, resolved.conversation.id, version, chunk_tokens(summarizer.profile))
        return _Claimed(row=claimed, resolved=resolved, sources=sources, summarizer=summarizer)

    async def _put_off(self, uow: UnitOfWork, row: Verification, wait: timedelta) -> Outcome:
        await uow.verifications.update(row.id, status="queued", reason=row.reason, after=wait)
        return "not_now"

    async def _end_without_changes(
        self, uow: UnitOfWork, row: Verification, status: VerificationStatus, reason: str | None
    ) -> Outcome:
        """End a row without verdicts: its version, and earlier ones that wait, were judged by code only."""
        await end(uow, self._shell, row, status=status, reason=reason)
        await uow.states.end_waiting(row.conversation_id, before=row.version + 1)
        return "failed" if status == "failed" else "stale" if status == "stale" else "skipped"

    async def _subject(self, tenant_id: UUID, claimed: _Claimed) -> Subject:
        """The claims, with excerpts of the earlier messages that may prove them."""
        subject = await off_loop(subject_of, claimed.sources)
        if not subject.messages:
            return subject
        first, id_ = subject.messages[0].seq, claimed.conversation.id
        words = await off_loop(search_words, subject.claims, subject.messages)
        async with self._shell.uow(tenant_id) as uow:
            found = (
                await uow.messages.sources(id_, stems=words, limit=MAX_SEARCH_HITS, neighbours=False) if words else None
            )
            seqs = {source.seq for source in found.sources if source.seq < first} if found else set[int]()
            rested = unshown_sources(subject.claims, [message.seq for message in subject.messages])
            earlier = await uow.messages.at_seqs(id_, sorted({*rested, *seqs}))
        return await off_loop(with_older, subject, earlier, chunk_tokens(claimed.summarizer.profile))

    # --- storing

    async def _store_outcome(
        self, tenant_id: UUID, claimed: _Claimed, subject: Subject, judgement: Judgement
    ) -> Outcome:
        """Apply the verdicts, unless messages were erased or another process has the claim by now.

        A running compaction is waited for: a new version now would make all of its work useless. So is a database that
        is away, since the verdicts were paid for.
        """
        clock = self._shell.clock
        deadline = clock.monotonic() + VERDICTS_WAIT_SECONDS
        judged = _Judged(subject=subject, judgement=judgement, now=clock.now())
        once = partial(self._store_outcome_once, tenant_id, claimed, judged, deadline)
        while True:
            outcome = await through_outage(partial(run_with_retries, once), clock, until=deadline)
            if outcome is not None:
                return outcome
            await clock.sleep(self._shell.timings.poll_seconds)

    async def _store_outcome_once(
        self,
        tenant_id: UUID,
        claimed: _Claimed,
        judged: _Judged,
        deadline: float,
        results: Results,
    ) -> Outcome | None:
        """The transaction; ``None`` while a compaction runs."""
        async with self._shell.uow(tenant_id) as uow:
            try:
                present = await uow.conversations.lock(claimed.conversation.id)
            except NotFoundError:
                return "stale"
            row = await uow.verifications.open_of(present.id)
            if row is None or (row.id, row.tries) != (claimed.row.id, claimed.row.tries):
                return "stale"
            row = replace(row, attempts=(*row.attempts, *judged.judgement.attempts))
            compaction = await uow.compactions.in_flight(present.id)
            waits = judged.judgement.verdicts and compaction is not None and compaction.status == "running"
            if waits and self._shell.clock.monotonic() <= deadline:
                return None
            outcome = await self._write_outcome(
                uow, present, row, claimed, judged, results, compaction_still_runs=bool(waits)
            )
            await uow.commit()
        return outcome

    async def _write_outcome(
        self,
        uow: UnitOfWork,
        present: Conversation,
        row: Verification,
        claimed: _Claimed,
        judged: _Judged,
        compute: Compute,
        *,
        compaction_still_runs: bool,
    ) -> Outcome:
        """Write what the judgement leads to. While a compaction still runs, queue the verification again instead."""
        subject, judgement = judged.subject, judged.judgement
        if claimed.conversation.content_epoch != present.content_epoch or compaction_still_runs:
            return await self._queue_again(uow, row, COMPACTION_PAUSE if compaction_still_runs else None)
        if not subject.claims or not subject.messages:
            ended = await self._end_without_changes(
                uow, replace(row, version=judged.version.version), "skipped", "nothing_to_verify"
            )
            await self._note_current_version(uow, present.id)
            return ended
        if not judgement.verdicts:
            failed = await self._end_without_verdicts(uow, row, judgement)
            await self._note_current_version(uow, present.id)
            return failed
        claims, changed = await self._apply_verdicts(uow, present, judged, compute)
        await end(uow, self._shell, row, status="done", claims=claims, changed=changed)
        await self._note_current_version(uow, present.id)
        return "changed" if changed else "verified"

    async def _queue_again(self, uow: UnitOfWork, row: Verification, wait: timedelta | None) -> Outcome:
        """Queue the row for another try; without ``wait`` at once, and this try does not count."""
        tries = row.tries - (wait is None)
        await uow.verifications.update(row.id, status="queued", after=wait, tries=tries, attempts=row.attempts)
        return "stale"

    async def _end_without_verdicts(self, uow: UnitOfWork, row: Verification, judgement: Judgement) -> Outcome:
        """End the row after calls without verdicts, or queue it again if the model was unavailable.

        While a provider is away or turns calls away, that uses up no try, for a day.
        """
        last, attempts = judgement.last, row.attempts
        if last is None or last.outcome != "error":
            return await self._end_without_changes(uow, row, "failed", last.reason if last else NO_VERDICTS)
        hangs = last.reason == "timeout" and row.tries == MAX_TRIES - 1
        pause = _HANG_PAUSE if hangs else back_off(row.tries)
        if last.reason in TURNED_AWAY and self._shell.clock.now() < row.created_at + LONGEST_OUTAGE:
            row = replace(row, tries=row.tries - 1)
            # There may be hundreds of such calls; the newest tells the reason.
            attempts = (*(one for one in attempts[:-1] if one.metered), attempts[-1])
            pause = back_off(MAX_TRIES if row.reason in TURNED_AWAY else 1)
        elif last.reason in REMEDIES or row.tries >= MAX_TRIES:
            return await self._end_without_changes(uow, row, "failed", last.reason)
        await uow.verifications.update(
            row.id,
            status="queued",
            reason=last.reason,
            tries=row.tries,
            after=pause,
            attempts=attempts,
        )
        return "failed"

    async def _note_current_version(self, uow: UnitOfWork, conversation_id: UUID) -> None:
        """Queue a verification of the current version, if it needs one."""
        present = await uow.conversations.get(conversation_id)
        await note_version(uow, self._shell, conversation_id, await uow.states.get(present.id, present.state_version))

    # --- the verdicts

    async def _apply_verdicts(
        self, uow: UnitOfWork, present: Conversation, judged: _Judged, compute: Compute
    ) -> tuple[int, bool]:
        """Apply verdicts to the current version.

        Returns how many claims were judged, and whether that led to a new version.
        """
        version, current = judged.version, await uow.states.get(present.id, present.state_version)
        demands = await seqs_of_demands(uow, present.id, current)
        verified = await _with_verdicts_applied(self._shell.resolver(present), current, judged, demands, compute)
        counts = _counts(verified, judged.judgement)
        moves_anchors = await settle_claims(uow, present, verified)
        await uow.states.mark_verified(present.id, version.version, counts)
        # What remains of the earlier versions was judged together with this one.
        await uow.states.end_waiting(present.id, before=version.version)
        if current.state_schema != version.state_schema:
            if moves_anchors:
                await self._renew_layout(uow, present, compute)
            return counts.claims, False
        is_same = current.version == version.version
        if is_same:
            current = replace(current, verified="model", verification=counts)
        rewrites_segments = await _rewrite_contradicted_segments(
            uow, present, judged, verified.contradicted_digests, compute
        )
        if rewrites_segments or (
            verified.is_changed and not verified.is_doubt_only and verified.entries != current.entries
        ):
            await write_entries(
                self._shell,
                uow,
                present,
                current,
                verified.entries,
                verified.repairs,
                returning=ids_pushed_out(current) - verified.ended_ids,
                compute=compute,
            )
            return counts.claims, True
        if moves_anchors:
            await self._renew_layout(uow, present, compute)
        if verified.is_doubt_only:
            # What is served stays unchanged until the next compaction, since a new version would cost the cached
            # prefix.
            repairs = (*current.repairs, *(one.redacted() for one in verified.repairs))
            await uow.states.rewrite(present.id, replace(current, entries=verified.entries, repairs=repairs))
        return counts.claims, False

    async def _renew_layout(self, uow: UnitOfWork, present: Conversation, compute: Compute) -> None:
        resolved = self._shell.resolver(present)
        await refresh_sizes(uow, await renew_layout(uow, self._shell, resolved, compute=compute))


async def _with_verdicts_applied(
    resolved: Resolved, current: StateVersion, judged: _Judged, demands: frozenset[int], compute: Compute
) -> VerifiedState:
    before = judged.subject.sources.before
    # Nothing was erased since then, so the earlier version is unchanged.
    is_alike = before is not None and before.state_schema == current.state_schema
    earlier = before.entries if before is not None and is_alike else ()
    cap, estimator = resolved.budgets.state_cap, resolved.policy.estimator
    return await compute(_verified_state, current, judged, earlier, demands, cap, estimator)


def _verified_state(
    current: StateVersion,
    judged: _Judged,
    before: Sequence[StateEntry],
    demands: frozenset[int],
    cap: int,
    estimator: Estimator,
) -> VerifiedState:
    judgement, missing = judged.judgement, judged.subject.sources.missing_from(current.entries)
    entries = (*current.entries, *missing)
    restoring = Restoration(
        schema=schema_named(current.state_schema),
        version=current.version + 1,
        next_entry=next_entry_number(entries, current.next_entry),
        boundary_seq=current.boundary_seq,
        messages=judged.subject.messages,
        demands=demands,
    )
    found = apply_verdicts(
        entries,
        judged.subject.claims,
        judgement.verdicts,
        shown_texts=judgement.shown,
        before=before,
        restoration=restoring if current.state_schema == judged.version.state_schema else None,
    )
    found = without_lost_entries(found, missing)
    return with_restored_sentences(
        restoring.schema,
        found,
        version=restoring.version,
        next_entry=next_entry_number(found.entries, restoring.next_entry),
        cap=cap,
        estimator=estimator,
    )


async def _rewrite_contradicted_segments(
    uow: UnitOfWork, present: Conversation, judged: _Judged, segment_ids: Sequence[str], compute: Compute
) -> bool:
    texts = {claim.target: claim for claim in judged.subject.claims if claim.kind == "digest"}
    rewritten = [await _rewrite_segment(uow, present, texts[id_], judged.now, compute) for id_ in segment_ids]
    return any(rewritten)


async def _rewrite_segment(
    uow: UnitOfWork, present: Conversation, claim: Claim, now: datetime, compute: Compute
) -> bool:
    try:
        segment = await uow.segments.get(present.id, claim.target)
    except NotFoundError:  # an erasure may have given the segment another name
        return False
    digest = digest_text(segment)
    found = await uow.messages.between(present.id, segment.from_seq, segment.to_seq)
    spoken = [one for one in found if one.is_part_of_talk]
    if digest is None or digest.text != claim.text or not spoken:
        return False
    await uow.segments.rewrite(await compute(_segment_by_code, segment, spoken, present.locale, now))
    return True


def _segment_by_code(segment: Segment, spoken: Sequence[Message], locale: str, now: datetime) -> Segment:
    messages = redact_messages(spoken)
    topic = describe(messages).topic
    cut = replace(cut_of(segment), topic=topic)
    wanted = [level for level in REWRITTEN_LEVELS if level in segment.levels]
    made = [extractive_level(level, messages, cut, locale=locale, now=now) for level in wanted]
    levels = {**segment.levels, **{level.level: level for level in made if level is not None}}
    return replace(segment, topic=topic, levels=levels)


def _counts(verified: VerifiedState, judgement: Judgement) -> VerificationCounts:
    model = judgement.last.model if judgement.last else ""
    usage = reduce(Usage.plus, (attempt.usage for attempt in judgement.attempts), Usage())
    return VerificationCounts(model=model, prompt_version=VERIFY_VERSION, usage=usage, **asdict(verified.counts))
