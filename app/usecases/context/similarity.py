"""How similar a question is to the messages that recall considers: by vectors, if they exist in time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

import structlog

from app.core.model.conversation import Usage
from app.core.model.embedding import BadVectorsError, text_hash, text_to_embed
from app.core.model.errors import DependencyUnavailableError, ModelUnavailableError, NotFoundError
from app.core.model.redaction import redact
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import Ranking
from app.core.retrieval.similarity import cosines, most_vectors
from app.off_loop import off_loop
from app.usecases.compaction.spend_guard import SPEND_LIMIT, SpendGuard
from app.usecases.context.embedding import attempt_of, call_of, embedder_of
from app.usecases.context.recalling import RecallSources, cached_corpus_of
from app.usecases.ports import Embedder
from app.usecases.shared.shell import Shell

By = Literal["words", "words_and_vectors"]
"""The means by which recall compared."""
BY_WORDS: Final[By] = "words"
BY_BOTH: Final[By] = "words_and_vectors"

QUESTIONS: Final = 256
"""How many vectors of questions a process keeps: the calls of one answer ask the same question again."""

log = structlog.get_logger(__name__)


class SimilarityService:
    """Compares questions with messages. It never fails, and no recall waits longer for it than a model call may take.

    Args:
        shell: The ports.
        spending: Each question costs a call; if it allows none, only words are compared.
    """

    def __init__(self, shell: Shell, spending: SpendGuard) -> None:
        self._shell = shell
        self._spending = spending
        self._kept: dict[tuple[UUID, str, bytes], bytes] = {}
        """The vectors of questions, by tenant, model, and hash of the question."""

    async def compared(
        self, tenant_id: UUID, conversation_id: UUID, recall_sources: RecallSources
    ) -> tuple[RecallSources, By | None]:
        """What was gathered, with the cosines of the messages that have a vector; and by which means recall compares.

        The latter is ``None`` if no embedding model is set, or nothing is searched for.
        """
        embedder = embedder_of(self._shell)
        if embedder is None or not recall_sources.question or recall_sources.found is None:
            return recall_sources, None
        try:
            vectors = await self._vectors_to_compare(tenant_id, conversation_id, recall_sources, embedder)
            question_vector = (
                await self._vector_of(tenant_id, conversation_id, recall_sources.question, embedder)
                if vectors
                else None
            )
        except DependencyUnavailableError as error:
            log.warning("recall.by_words", reason=error.stable_code)
            return recall_sources, BY_WORDS
        if question_vector is None:
            return recall_sources, BY_WORDS
        found = await off_loop(cosines, question_vector, vectors)
        return (replace(recall_sources, cosines=found), BY_BOTH) if found else (recall_sources, BY_WORDS)

    async def _vectors_to_compare(
        self, tenant_id: UUID, conversation_id: UUID, recall_sources: RecallSources, embedder: Embedder
    ) -> dict[int, bytes]:
        async with self._shell.uow(tenant_id) as uow:
            dimensions = await uow.embeddings.dimensions(conversation_id, embedder.name)
        if not dimensions:
            return {}
        seqs: Collection[int] = [source.seq for source in recall_sources.found.sources] if recall_sources.found else []
        if len(seqs) > (most := most_vectors(dimensions)):
            seqs = await off_loop(_best_by_words, conversation_id, recall_sources, most)
        async with self._shell.uow(tenant_id) as uow:
            return await uow.embeddings.vectors_by_seq(conversation_id, seqs, embedder.name)

    async def _vector_of(
        self, tenant_id: UUID, conversation_id: UUID, question: str, embedder: Embedder
    ) -> bytes | None:
        text = await off_loop(lambda: text_to_embed(redact(question)))
        if not text:
            return None
        key = (tenant_id, embedder.name, text_hash(text))
        if (kept := self._kept.get(key)) is not None:
            return kept
        async with self._shell.uow(tenant_id) as uow:
            if embedder.metered and await self._spending.time_to_wait_for(uow, "embedding") is not None:
                log.info("recall.by_words", reason=SPEND_LIMIT)
                return None
        started = self._shell.clock.monotonic()
        failure: ModelUnavailableError | None = None
        usage, vectors = Usage(), tuple[bytes, ...]()
        try:
            given = await embedder.embed([text], "query")
            usage, vectors = given.usage, given.vectors
        except ModelUnavailableError as error:
            log.info("recall.by_words", reason=error.reason)
            failure = error
            if isinstance(error, BadVectorsError):
                usage = error.usage
        attempt = attempt_of(embedder, failure, usage, self._shell.clock.monotonic() - started)
        with suppress(DependencyUnavailableError, NotFoundError):  # only a measurement: a recall goes on without it
            async with self._shell.uow(tenant_id) as uow:
                await uow.detail_calls.begin(call_of(self._shell, conversation_id, attempt))
                await uow.commit()
        return self._keep_vector(key, vectors[0]) if vectors else None

    def _keep_vector(self, key: tuple[UUID, str, bytes], vector: bytes) -> bytes:
        if len(self._kept) >= QUESTIONS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = vector
        return vector


def _best_by_words(conversation_id: UUID, recall_sources: RecallSources, count: int) -> Sequence[int]:
    found = recall_sources.found
    if found is None:
        return ()
    corpus = cached_corpus_of(found, conversation_id)
    return Ranking(corpus, completed_question(recall_sources.question, corpus, before=recall_sources.before)).best(
        count
    )
