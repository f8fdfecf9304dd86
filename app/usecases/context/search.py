"""Search: the original messages that match a query, best first, whether or not they were compacted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.model.conversation import Role
from app.core.model.errors import FieldError, InvalidInputError
from app.core.model.word_overlap import message_text
from app.core.retrieval.corpus import Source
from app.core.retrieval.search import Query, RankedMessage, has_phrases, query_of, rank_messages, snippet
from app.core.text.speakers import name_in
from app.core.text.stemming import stem_language
from app.off_loop import off_loop
from app.storage.repositories.message_search import FoundMessages
from app.usecases.shared.shell import Service

CANDIDATES: Final = 200
"""How many messages are looked at; one query finds no more than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that matches."""

    message_id: UUID
    seq: int
    snippet: str
    """A passage of the original, unchanged."""
    score: float
    role: Role
    created_at: datetime
    said_by: str = ""
    """The name that the message carries, as it is served; empty if it has none."""
    segment_id: str | None = None
    """The id of the current segment that contains it; ``None`` in the tail."""


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page begins. Messages stored or erased after the first page was read do not shift the later pages."""

    through_seq: int
    skip: int
    """How many hits the pages before have."""
    last_seq: int = 0
    """The last of these hits; 0 if there is none."""

    def place_in(self, ranked: Sequence[RankedMessage]) -> int:
        """The number of hits before the page. If the last one was erased, there is one fewer."""
        found = (place for place, item in enumerate(ranked, 1) if item.source.seq == self.last_seq)
        return next(found, max(self.skip - 1, 0) if self.last_seq else self.skip)


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of hits, and where the next one begins."""

    hits: list[SearchHit]
    following: PageStart | None


class SearchService(Service):
    """Finds messages of a conversation by words."""

    async def find(
        self, tenant_id: UUID, conversation_id: UUID, text: str, *, limit: int, place: PageStart | None = None
    ) -> SearchPage:
        """One page of the messages that match.

        Raises:
            NotFoundError: There is no such conversation.
            InvalidInputError: The query has no word to search for.
        """
        query = query_of(text)
        if not query.text:
            message = "q cannot be empty"
            raise InvalidInputError(message, errors=[FieldError(field="q", message=message)])
        async with self._shell.work_records.record_work(tenant_id, conversation_id, "search"):
            return await self._search_page(tenant_id, conversation_id, query, limit=limit, place=place)

    async def _search_page(
        self, tenant_id: UUID, conversation_id: UUID, query: Query, *, limit: int, place: PageStart | None
    ) -> SearchPage:
        begin = place or await self._first_page_start(tenant_id, conversation_id)
        ranked = await self._ranked(tenant_id, conversation_id, query, begin.through_seq)
        first = begin.place_in(ranked)
        shown = ranked[first : first + limit]
        hits = await self._hits(tenant_id, conversation_id, query, shown)
        end, is_more = first + len(shown), len(ranked) > first + limit
        return SearchPage(hits, PageStart(begin.through_seq, end, shown[-1].source.seq) if is_more else None)

    async def _first_page_start(self, tenant_id: UUID, conversation_id: UUID) -> PageStart:
        async with self._shell.uow(tenant_id) as uow:
            return PageStart((await uow.conversations.get(conversation_id)).last_seq, 0)

    async def _ranked(
        self, tenant_id: UUID, conversation_id: UUID, query: Query, through_seq: int
    ) -> list[RankedMessage]:
        if query.stems and not query.phrases:
            async with self._shell.uow(tenant_id) as uow:
                await uow.conversations.get(conversation_id)
                found = await uow.messages.sources(
                    conversation_id,
                    stems=query.stems,
                    text=query.text,
                    limit=CANDIDATES,
                    neighbours=False,
                    through_seq=through_seq,
                )
            if ranked := await off_loop(_ranked_by_words, query, found):
                return ranked
        ranked = await self._ranked_literally(tenant_id, conversation_id, query, query.literal_stems, through_seq)
        if ranked or not query.literal_stems:
            return ranked
        # A phrase may begin or end within a word, and then no message has the stem of that piece.
        return await self._ranked_literally(tenant_id, conversation_id, query, (), through_seq)

    async def _ranked_literally(
        self, tenant_id: UUID, conversation_id: UUID, query: Query, stems: Sequence[str], through_seq: int
    ) -> list[RankedMessage]:
        """The messages that have the literal part of the query, looked for among those that have the ``stems``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            sources = await uow.messages.containing(
                conversation_id, query.literal, stems=stems, limit=CANDIDATES, through_seq=through_seq
            )
        return await off_loop(_ranked_by_literal_part, query, sources)

    async def _hits(
        self, tenant_id: UUID, conversation_id: UUID, query: Query, shown: list[RankedMessage]
    ) -> list[SearchHit]:
        """The hits, without messages that were erased meanwhile."""
        async with self._shell.uow(tenant_id) as uow:
            found = await uow.messages.at_seqs(conversation_id, [item.source.seq for item in shown])
            segments = await uow.segments.covering(conversation_id, [message.seq for message in found])

        def show() -> list[SearchHit]:
            by_seq = {message.seq: message for message in found}
            return [
                SearchHit(
                    message_id=message.id,
                    seq=message.seq,
                    snippet=snippet(message_text(message), query.in_language(item.language)),
                    score=item.score,
                    role=message.role,
                    created_at=message.created_at,
                    said_by=name_in(message.metadata),
                    segment_id=segments.get(message.seq),
                )
                for item in shown
                if (message := by_seq.get(item.source.seq))
            ]

        return await off_loop(show)


def _ranked_by_words(query: Query, found: FoundMessages) -> list[RankedMessage]:
    language = stem_language([source.text for source in found.sources], found.language)
    return rank_messages(query, found.sources, documents=found.documents, total=found.total, language=language)


def _ranked_by_literal_part(query: Query, found: list[Source]) -> list[RankedMessage]:
    sources = sorted(
        (source for source in found if has_phrases(source.text, query.literal)), key=lambda source: source.seq
    )
    ranked = rank_messages(query, sources)
    seen = {item.source.seq for item in ranked}
    return ranked + [RankedMessage(source, 0.0) for source in reversed(sources) if source.seq not in seen]
