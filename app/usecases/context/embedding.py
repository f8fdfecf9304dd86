"""Vectors of covered messages, made in the background: a short claim, one call, one commit under the lock.

Nothing waits for the vectors: a message without one is recalled by its words. The texts are redacted before the model
gets them. A text that the model refuses when sent alone is never sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.conversation import Message, Usage
from app.core.model.embedding import BadVectorsError, MessageVector, text_hash, text_to_embed
from app.core.model.errors import (
    DependencyUnavailableError,
    InvalidInputError,
    ModelUnavailableError,
    NotFoundError,
)
from app.core.model.records import Attempt, DetailCall
from app.core.model.redaction import redact_messages
from app.core.model.word_overlap import message_text
from app.off_loop import off_loop
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import TURNED_AWAY
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.ports import Embedder
from app.usecases.shared.shell import Shell

BATCH: Final = 64
"""The most messages of one call."""
CLAIM: Final = timedelta(seconds=120)
"""How long a claim holds: longer than a call takes."""
BACK_OFF: Final = timedelta(minutes=1)
LONG_BACK_OFF: Final = timedelta(minutes=10)
"""The pause after failures that another try will hardly change: a wrong key, an unknown model, unusable answers."""
_MILLISECONDS: Final = 1_000
_OF_THE_TEXT: Final = frozenset({"bad_request", "context_too_long", "bad_vectors"})
"""Refusals for which a single text may be the reason."""

Outcome = Literal["made", "failed", "stale", "not_now", "not_wanted"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The text of a message that the model is given."""

    seq: int
    text: str
    sha256: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """The right to make vectors for a range of a conversation's messages."""

    conversation_id: UUID
    embedder: Embedder
    through: int
    """The last message before the range."""
    to_seq: int
    messages: tuple[Message, ...]
    texts: tuple[_Text, ...]
    known: Mapping[bytes, bytes]
    """Vectors of other messages with the same texts."""

    @property
    def missing(self) -> list[_Text]:
        """The texts that the model has to be asked about, each once."""
        return list({one.sha256: one for one in self.texts if one.sha256 not in self.known}.values())


@dataclass(slots=True, kw_only=True)
class _Answer:
    vectors: dict[bytes, bytes] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    error: ModelUnavailableError | None = None
    """Why there is no answer to store."""


class EmbeddingService:
    """Has a model make vectors.

    Args:
        shell: The ports.
        spending: Calls are made only while it allows them, and count towards its limits.
    """

    def __init__(self, shell: Shell, spending: SpendGuard) -> None:
        self._shell = shell
        self._spending = spending

    async def work(self, conversation_id: UUID | None = None) -> Outcome:
        """Have vectors made of some messages of that conversation, or of any, and send a hint if more are wanted.

        If the database is away, nothing happens; the sweeper asks again.
        """
        embedder = embedder_of(self._shell)
        if embedder is None:
            return "not_wanted"
        try:
            async with self._shell.uow(None) as uow:
                found = await uow.embeddings.due(embedder.name, limit=2, conversation_id=conversation_id)
            if not found:
                return "not_wanted"
            outcome = await self._run(*found[0], embedder)
        except DependencyUnavailableError as error:
            log.warning("embedding.not_now", reason=error.stable_code)
            return "not_now"
        if outcome in {"made", "stale"}:
            self._shell.outbox.send_later("embedding", found[0][1])
        elif len(found) > 1:
            self._shell.outbox.send_later("embedding", found[1][1])
        return outcome

    async def _run(self, tenant_id: UUID, conversation_id: UUID, embedder: Embedder) -> Outcome:
        claim = await self._claim_or_outcome(tenant_id, conversation_id, embedder)
        if not isinstance(claim, _Claim):
            return claim
        answer = await self._ask_all(claim)
        try:
            outcome = await self._store_vectors(tenant_id, claim, answer)
        except NotFoundError:  # the conversation was deleted meanwhile
            return "not_wanted"
        reason = answer.error.reason if answer.error else None
        fields = {"from_seq": claim.through + 1, "to_seq": claim.to_seq, "vectors": len(answer.vectors)}
        log.info("embedding.done", conversation_id=str(conversation_id), outcome=outcome, reason=reason, **fields)
        return outcome

    # --- claiming

    async def _claim_or_outcome(self, tenant_id: UUID, conversation_id: UUID, embedder: Embedder) -> _Claim | Outcome:
        async with self._shell.uow(tenant_id) as uow:
            claimed = await uow.embeddings.claim(conversation_id, embedder.name, pause=CLAIM)
            if claimed is None:
                return "not_wanted"
            through, boundary = claimed
            wait = (
                await self._spending.time_to_wait_for(uow, "embedding", keeps_reserve=True)
                if embedder.metered
                else None
            )
            if wait is not None:
                await uow.embeddings.note_progress(conversation_id, embedder.name, through=through, pause=wait)
            await uow.commit()
            if wait is not None:
                return "not_now"
            to_seq, messages = await _next_messages(uow, conversation_id, through, boundary)
        texts = await off_loop(_texts_to_embed, messages, through)
        async with self._shell.uow(tenant_id) as uow:
            known = await uow.embeddings.vectors_by_hash(embedder.name, {one.sha256 for one in texts}) if texts else {}
        return _Claim(
            conversation_id=conversation_id,
            embedder=embedder,
            through=through,
            to_seq=to_seq,
            messages=tuple(messages),
            texts=texts,
            known=known,
        )

    # --- calling

    async def _ask_all(self, claim: _Claim) -> _Answer:
        answer, missing = _Answer(), claim.missing
        if not missing:
            return answer
        await self._ask(claim.embedder, missing, answer)
        if answer.error is None or answer.error.reason not in _OF_THE_TEXT:
            return answer
        for one in missing if len(missing) > 1 else ():
            await self._ask(claim.embedder, [one], answer)
            if answer.error is not None and answer.error.reason not in _OF_THE_TEXT:
                return answer
        # If the model took other texts, it refused these for what they say. If it refused many, the fault may be its
        # own.
        if answer.vectors or (len(missing) == 1 and (claim.known or claim.through)):
            answer.error = None
        return answer

    async def _ask(self, embedder: Embedder, texts: Sequence[_Text], answer: _Answer) -> None:
        started = self._shell.clock.monotonic()
        answer.error, usage = None, Usage()
        try:
            given = await embedder.embed([one.text for one in texts], "document")
        except ModelUnavailableError as error:
            answer.error = error
            if isinstance(error, BadVectorsError):
                usage = error.usage
        else:
            usage = given.usage
            answer.vectors.update(zip((one.sha256 for one in texts), given.vectors, strict=True))
        took = self._shell.clock.monotonic() - started
        answer.attempts.append(attempt_of(embedder, answer.error, usage, took))

    # --- storing

    async def _store_vectors(self, tenant_id: UUID, claim: _Claim, answer: _Answer) -> Outcome:
        shell, conversation_id, model = self._shell, claim.conversation_id, claim.embedder.name
        async with shell.uow(tenant_id) as uow:
            await uow.conversations.lock(conversation_id)
            for attempt in answer.attempts:
                await uow.detail_calls.begin(call_of(shell, conversation_id, attempt))
            same = await _unchanged(uow, claim)
            # After a failure, too: what is stored is not asked for again.
            await uow.embeddings.put(_vectors_to_store(claim, {**claim.known, **answer.vectors}, same))
            if answer.error is not None:
                pause = _pause_after(answer.error)
                await uow.embeddings.note_progress(conversation_id, model, through=claim.through, pause=pause)
                await uow.commit()
                return "failed"
            is_whole = all(message.seq in same for message in claim.messages)
            through = claim.to_seq if is_whole else claim.through
            await uow.embeddings.note_progress(conversation_id, model, through=through)
            await uow.commit()
        return "made" if is_whole else "stale"


def _vectors_to_store(claim: _Claim, vectors: Mapping[bytes, bytes], same: Collection[int]) -> list[MessageVector]:
    return [
        MessageVector(
            conversation_id=claim.conversation_id,
            seq=one.seq,
            model=claim.embedder.name,
            sha256=one.sha256,
            vector=vectors[one.sha256],
        )
        for one in claim.texts
        if one.seq in same and one.sha256 in vectors
    ]


def embedder_of(shell: Shell) -> Embedder | None:
    """The configured embedding model; ``None`` if there is none or it cannot be built."""
    try:
        return shell.models.embedder()
    except InvalidInputError as error:
        log.warning("embedding.model_unavailable", detail=error.detail)
        return None


def call_of(shell: Shell, conversation_id: UUID, attempt: Attempt) -> DetailCall:
    """The record of an ended call."""
    now = shell.clock.now()
    return DetailCall(
        id=shell.new_id(), conversation_id=conversation_id, called_at=now, attempt=attempt, purpose="embedding"
    )


def attempt_of(embedder: Embedder, error: ModelUnavailableError | None, usage: Usage, seconds: float) -> Attempt:
    """The attempt that records a call: usage, time and error."""
    reason = error.reason if error else None
    return Attempt(
        model=embedder.name,
        outcome="error" if error else "accepted",
        reason=reason,
        duration_ms=round(seconds * _MILLISECONDS),
        usage=usage,
        metered=embedder.metered and reason not in TURNED_AWAY,
    )


async def _next_messages(
    uow: UnitOfWork, conversation_id: UUID, through: int, boundary: int
) -> tuple[int, list[Message]]:
    count = BATCH
    while True:
        # The message before each is read too: it may name the secret that the first message of the range gives.
        first, last = through + 1, min(through + count, boundary)
        most = READ_BYTES if count > 1 else None
        found = await uow.messages.between(conversation_id, max(first - 1, 1), last, max_bytes=most)
        everything = await uow.messages.between(conversation_id, first, first) if most else []
        if not everything or any(message.seq == first for message in found):
            return last, found
        count //= 2


def _texts_to_embed(messages: Sequence[Message], through: int) -> tuple[_Text, ...]:
    texts = ((message.seq, text_to_embed(message_text(message))) for message in redact_messages(messages))
    return tuple(_Text(seq=seq, text=text, sha256=text_hash(text)) for seq, text in texts if seq > through and text)


async def _unchanged(uow: UnitOfWork, claim: _Claim) -> frozenset[int]:
    """The messages whose text is unchanged; the conversation is locked."""
    if not claim.messages:
        return frozenset()
    first, last = claim.messages[0].seq, claim.messages[-1].seq
    now = {message.seq: message for message in await uow.messages.between(claim.conversation_id, first, last)}
    return frozenset(
        before.seq
        for before in claim.messages
        if (after := now.get(before.seq)) is not None
        and (after.status, after.content, after.parts) == (before.status, before.content, before.parts)
    )


def _pause_after(error: ModelUnavailableError) -> timedelta:
    if not error.retryable or error.reason in _OF_THE_TEXT:
        return LONG_BACK_OFF
    return max(BACK_OFF, timedelta(seconds=min(error.retry_after or 0, LONG_BACK_OFF.total_seconds())))
