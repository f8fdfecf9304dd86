"""Asks a verifier about a version: reads the material, splits it into calls, asks, and reads the answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.anchors import Anchor
from app.core.model.claims import Claim
from app.core.model.conversation import Message, Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ModelProfile, Proposal, VerificationRequest
from app.core.model.records import Attempt
from app.core.model.redaction import redact, redact_message, redact_messages
from app.core.model.schemas import schema_named
from app.core.model.segments import EXTRACTIVE, Segment
from app.core.model.state import StateEntry, StateVersion
from app.core.model.timings import VERIFIER_CALLS
from app.core.model.word_overlap import message_text
from app.core.state.apply import served
from app.core.state.schema_change import record_in_schema
from app.core.text.budget import first_fitting
from app.core.text.token_counts import estimate_text
from app.core.validation.claims import MAX_CLAIMS, DigestText, claim_batches, claims_of, part_claims, unshown_sources
from app.core.validation.evidence import background_entries, evidence_messages
from app.core.validation.lost_entries import lost_entries
from app.core.validation.narrative_sources import narrative_sources
from app.core.validation.quotes import ShownTexts
from app.core.validation.verdict_application import doubtful_items
from app.core.validation.verdicts import Verdict, verdicts_of
from app.core.validation.verifier_prompts import VERIFY_VERSION, request_halves, shown_texts, verdict_output_tokens
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import BLOCKED, TURNED_AWAY
from app.usecases.compaction.chunk import chunk_tokens
from app.usecases.ports import Clock, Summarizer
from app.usecases.verification.pending import PENDING

CUT_OFF: Final = "cut_off"
NO_VERDICTS: Final = "no_verdicts"
MAX_VERSIONS: Final = 50
"""How many versions, from the newest, are searched."""
EXCERPT: Final = 2_000  # characters of an earlier message
OLDER_PART: Final = 4
"""Earlier messages may take up at most this fraction (one part in so many) of what a call may read."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSources:
    """A version and what it was made from, as stored in the database."""

    version: StateVersion
    before: StateVersion | None
    """The version that was verified last, or the one that the summarizer continued."""
    judged: tuple[StateVersion, ...]
    """The versions that are judged together, the newest first; ``version`` is the first of them. What those of another
    schema have on record is in the fields of its schema."""
    messages: tuple[Message, ...]
    """The messages that the summarizer was shown."""
    digests: tuple[DigestText, ...]
    anchors: tuple[Anchor, ...] = ()
    """The anchors about which a summarizer claims something."""

    def missing_from(self, present: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
        """Entries of the judged versions that ``present`` contains neither as served nor as removed."""
        return lost_entries(present, [version.entries for version in self.judged], self.version.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is judged, as claims without secrets."""

    sources: VersionSources
    messages: tuple[Message, ...]
    claims: tuple[Claim, ...]
    older: Mapping[int, Message] = field(default_factory=dict)
    """Excerpts of earlier messages on which claims rest."""
    narrative_sources: tuple[int, ...] = ()
    """The ``seq`` of those on which sentences of narratives rest."""

    def requests(self, profile: ModelProfile) -> list[VerificationRequest]:
        """The calls, each about some of the claims.

        There are at most as many as allowed, since each is made from the whole chunk.
        """
        if not self.messages:
            return []
        return [self._request(claims, profile) for claims in claim_batches(self.claims)[:VERIFIER_CALLS]]

    def with_parts(self, judgement: Judgement, profile: ModelProfile) -> tuple[Subject, list[VerificationRequest]]:
        """The subject with the single sentences of unsupported items as claims, and the call that asks about them."""
        items = doubtful_items(self.claims, judgement.verdicts, judgement.shown)
        parts = part_claims(items, last_number=len(self.claims))
        claims = replace(self, claims=(*self.claims, *parts))
        return claims, [self._request(parts, profile)] if parts else []

    def _request(self, claims: Sequence[Claim], profile: ModelProfile) -> VerificationRequest:
        """One call: the claims, and the evidence for judging them."""
        before = self.sources.before
        messages = evidence_messages(claims, self.messages)
        older = tuple(self.older[seq] for seq in self._older_source_seqs(claims) if seq in self.older)
        return VerificationRequest(
            messages=messages,
            claims=tuple(claims),
            previous=background_entries(claims, (*messages, *older), served(before.entries)) if before else (),
            older=older,
            max_output_tokens=min(verdict_output_tokens(claims), profile.output_limit),
            chunk_tokens=chunk_tokens(profile),
        )

    def _older_source_seqs(self, claims: Sequence[Claim]) -> list[int]:
        has_unsourced = any(claim.names_no_sources for claim in claims)
        named = unshown_sources(claims, [message.seq for message in self.messages])
        return sorted({*named, *(self.narrative_sources if has_unsourced else ())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of the calls."""

    attempts: tuple[Attempt, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    shown: ShownTexts = field(default_factory=dict)
    """What the verifier saw of each message."""

    @property
    def last(self) -> Attempt | None:
        """The last call."""
        return self.attempts[-1] if self.attempts else None

    def with_further(self, further: Judgement) -> Judgement:
        """This judgement and a further one combined."""
        return Judgement(
            attempts=(*self.attempts, *further.attempts),
            verdicts=(*self.verdicts, *further.verdicts),
            shown=_joined_texts(self.shown, further.shown),
        )


async def read_version(
    uow: UnitOfWork, conversation_id: UUID, version: StateVersion, most_tokens: int
) -> VersionSources:
    """A version with what it was made from.

    Waiting versions are judged together, the oldest first, as many as one call can read. A version that folds nothing
    is judged with the one before it. The result may end before the requested version.
    """
    versions, base = await _versions_judged_together(uow, conversation_id, version)
    versions = _oldest_readable(versions, base, most_tokens)
    version = versions[0]
    start = base.boundary_seq if base else 0
    messages = await uow.messages.between(conversation_id, start + 1, version.boundary_seq)
    judged_count = next(
        (place for place, one in enumerate(versions) if place and one.verified == "model"), len(versions)
    )
    judged = versions[:judged_count]
    segments = await uow.segments.named(conversation_id, [id_ for one in judged for id_ in one.segment_ids])
    claimed = await uow.anchors.claimed(conversation_id, through_seq=version.boundary_seq, limit=MAX_CLAIMS)
    return VersionSources(
        version=version,
        before=versions[judged_count] if judged_count < len(versions) else base,
        judged=tuple(_record_in_schema(one, version.state_schema) for one in judged),
        messages=tuple(one for one in messages if one.is_part_of_talk),
        digests=tuple(digest for segment in segments if (digest := digest_text(segment)) is not None),
        anchors=tuple(claimed),
    )


def _record_in_schema(version: StateVersion, name: str) -> StateVersion:
    if version.state_schema == name:
        return version
    return record_in_schema(version, schema_named(name), source=schema_named(version.state_schema))


async def _versions_judged_together(
    uow: UnitOfWork, conversation_id: UUID, version: StateVersion
) -> tuple[tuple[StateVersion, ...], StateVersion | None]:
    since, base = [version], await uow.states.remembered_parent_of(conversation_id, version)
    while base is not None and len(since) < MAX_VERSIONS:
        folds_nothing = since[-1].boundary_seq == base.boundary_seq
        if not folds_nothing and base.verified != PENDING:
            break
        since.append(base)
        base = await uow.states.remembered_parent_of(conversation_id, base)
    return tuple(since), base


def _oldest_readable(
    since: tuple[StateVersion, ...], base: StateVersion | None, most_tokens: int
) -> tuple[StateVersion, ...]:
    before = base.covered.tokens if base else 0
    weights = [version.covered.tokens - before for version in since]
    return since[sum(weight > most_tokens for weight in weights[:-1]) :]


def digest_text(segment: Segment) -> DigestText | None:
    """The text that a model wrote about a segment; ``None`` if code wrote it."""
    brief = segment.levels.get("L2")
    if brief is None or brief.made_by == EXTRACTIVE:
        return None
    return DigestText(
        id=segment.id, topic=segment.topic, brief=brief.text, from_seq=segment.from_seq, to_seq=segment.to_seq
    )


def subject_of(sources: VersionSources) -> Subject:
    """The claims, and the messages without secrets; only computing, over a whole chunk."""
    claims = claims_of(
        sources.before.entries if sources.before else (),
        (*sources.version.entries, *sources.missing_from(sources.version.entries)),
        digests=sources.digests,
        repairs=[repair for version in reversed(sources.judged) for repair in version.repairs],
        anchors=[replace(anchor, content=redact(anchor.content)) for anchor in sources.anchors],
    )
    return Subject(sources=sources, claims=claims, messages=redact_messages(sources.messages))


def with_older(subject: Subject, messages: Sequence[Message], most_tokens: int) -> Subject:
    """The subject with excerpts of the earlier messages on which claims rest, as far as there is room.

    First come the sources that entries name, then what narratives retell; of both the newest first.
    """
    named = unshown_sources(subject.claims, [message.seq for message in subject.messages])
    narrative_seqs = narrative_sources(subject.claims, subject.messages, messages)
    wanted = [message for message in messages if message.seq in {*named, *narrative_seqs}]
    excerpts = (
        replace(message, content=message_text(redact_message(message))[:EXCERPT], parts=())
        for message in sorted(wanted, key=lambda one: (one.seq not in named, -one.seq))
    )
    shown = first_fitting(excerpts, most_tokens // OLDER_PART, lambda one: estimate_text(one.content))
    return replace(subject, older={one.seq: one for one in shown}, narrative_sources=narrative_seqs)


async def judge(
    summarizer: Summarizer, subject: Subject, clock: Clock, *, call_seconds: float
) -> tuple[Subject, Judgement]:
    """Ask about all claims, in at most ``VERIFIER_CALLS`` calls; a failure of the model is never raised.

    If an item of several sentences is contradicted or not stated anywhere, one more call asks about each of its
    sentences, so that the true ones can stay. The returned subject includes these claims.
    """
    profile = summarizer.profile
    judgement = await _judgement(summarizer, subject.requests(profile), clock, call_seconds, VERIFIER_CALLS)
    calls_left = VERIFIER_CALLS - len(judgement.attempts)
    if not calls_left or not judgement.verdicts or (judgement.last and _asks_no_more(judgement.last)):
        return subject, judgement
    subject, requests = await off_loop(subject.with_parts, judgement, profile)
    further = await _judgement(summarizer, requests, clock, call_seconds, calls_left)
    return subject, judgement.with_further(further)


async def _judgement(
    summarizer: Summarizer, requests: Sequence[VerificationRequest], clock: Clock, call_seconds: float, most_calls: int
) -> Judgement:
    """Ask about some claims. If the output limit cuts an answer off, ask once more in two halves.

    A verifier that blocks a request, or does not answer, is not asked further.
    """
    waiting = deque((request, True) for request in requests)
    attempts: list[Attempt] = []
    verdicts: list[Verdict] = []
    shown: dict[int, tuple[str, ...]] = {}
    while waiting and len(attempts) < most_calls:
        request, may_be_halved = waiting.popleft()
        attempt, found = await _ask_verifier(summarizer, request, clock, call_seconds)
        attempts.append(attempt)
        parts = request_halves(request) if attempt.reason == CUT_OFF and may_be_halved else ()
        if parts and len(attempts) + len(parts) <= most_calls:
            waiting.extendleft((part, False) for part in reversed(parts))
            continue
        if found:
            verdicts += found
            shown = _joined_texts(shown, await off_loop(shown_texts, request))
        if _asks_no_more(attempt):
            break
    return Judgement(attempts=tuple(attempts), verdicts=tuple(verdicts), shown=shown)


def _asks_no_more(attempt: Attempt) -> bool:
    return attempt.outcome == "error" or attempt.reason == BLOCKED


def _joined_texts(shown: ShownTexts, further: ShownTexts) -> dict[int, tuple[str, ...]]:
    seqs = (*shown, *further)
    return {seq: tuple(dict.fromkeys((*shown.get(seq, ()), *further.get(seq, ())))) for seq in seqs}


async def _ask_verifier(
    summarizer: Summarizer, request: VerificationRequest, clock: Clock, call_seconds: float
) -> tuple[Attempt, tuple[Verdict, ...]]:
    """Make one call, and return the verdicts that can be read in its answer."""
    started = clock.monotonic()
    proposal: Proposal | None = None
    verdicts: tuple[Verdict, ...] = ()
    reason: str | None = None
    try:
        async with asyncio.timeout(call_seconds):
            proposal = await summarizer.ask(request)
        verdicts = await off_loop(verdicts_of, proposal.text, request.claims)
        reason = _failure_reason(proposal, verdicts)
    except ModelUnavailableError as error:
        reason = error.reason
    except TimeoutError:
        reason = "timeout"
    except Exception:  # a defect may cost a verification, but must not disturb the worker
        log.exception("verification.crashed")
        proposal, verdicts, reason = None, (), "internal_error"
    outcome: Literal["accepted", "refused", "error"] = "accepted" if verdicts else "refused"
    attempt = Attempt(
        model=proposal.model if proposal else summarizer.profile.name,
        outcome=outcome if proposal else "error",
        reason=reason,
        duration_ms=round((clock.monotonic() - started) * 1000),
        usage=proposal.usage if proposal else Usage(),
        metered=summarizer.profile.metered and reason not in TURNED_AWAY,
        prompt_version=VERIFY_VERSION,
    )
    return attempt, verdicts if reason in {None, CUT_OFF} else ()


def _failure_reason(proposal: Proposal, verdicts: Sequence[Verdict]) -> str | None:
    if proposal.finish == "blocked":
        return BLOCKED
    if proposal.finish == "length":
        return CUT_OFF
    return None if verdicts and not proposal.called_tool else NO_VERDICTS
