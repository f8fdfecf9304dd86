"""Loads the messages from which a context recalls some; the core decides whether to, chooses them and places them.

Also leaves out of a context the sections that a caller does not want, and records what was recalled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby, islice
from typing import Final
from uuid import UUID

from app.core.context.assembly import AssembledContext, ContextInputs, Section, exceeds_budget
from app.core.context.drafts import NO_DETAIL, block_sizes, first_draft, outline_of
from app.core.model.conversation import Layout, Message
from app.core.model.fieldwise import from_same_fields
from app.core.model.segments import Expansion, Level
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.question import question_of
from app.core.retrieval.question_completion import needs_context
from app.core.retrieval.ranking import RecalledMessage
from app.core.retrieval.recall_decision import decide_recall_without_history
from app.core.retrieval.related_words import forms_of
from app.core.retrieval.rendering import RECALLED_TAG, Passage, Recall
from app.core.state.digest_selection import NO_DIGESTS, Digests
from app.core.text.memo import Latest
from app.core.text.parts import own_parts
from app.storage.repositories.message_search import FoundMessages
from app.storage.unit_of_work import UnitOfWork

CANDIDATES: Final = 500
"""How many messages with words of the question are read, without their neighbours, where a conversation is too long to
be read whole. With five talks in one conversation, 500 find as much evidence in the same room as 600 and 1 500 do, and
300 find three points less (docs/search.md); so they do among 100 000 messages (docs/experiments/speed.md)."""
MAX_CANDIDATES: Final = 1_500
"""How many are read for budgets that hold many messages. A conversation with no more messages is read whole."""
CHOICE: Final = 3
"""Candidates for each message that the budget has room for: with one each there would be no choice."""
RELATED: Final = 16
"""How many words of the same meaning are sought in addition to the question's own; each is one more search in the
index.
"""
BEFORE_CHARACTERS: Final = 1_000
"""Characters of each message before a question that are read for words that the question refers back to."""
QUESTION_CHARACTERS: Final = 4_000
"""A longer question is cut to its beginning and its end, half of this each, so that a pasted book costs little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSections:
    """Which sections of the context a caller wants; the gauge does not count the others."""

    state: bool = True
    anchors: bool = True
    digests: bool = True
    held: bool = True
    recalled: bool = True
    levels: tuple[Level, ...] | None = None
    """The levels that digests may show; ``None`` = those of the stored layout."""


EVERYTHING: Final = WantedSections()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """What a caller wants recalled."""

    query: str | None = None
    """A question of the caller: messages are recalled for it whatever the policy says."""
    passages: tuple[Passage, ...] = ()
    """Texts of the caller that are served together with recalled messages."""
    in_turn: bool = False
    """Whether the context is for a turn: then the last user message is the question, if the policy says so."""
    recall: bool | None = None
    """Whether a turn recalls; ``None`` = as the policy says."""
    wanted: WantedSections = EVERYTHING
    record_id: UUID | None = None
    """The id of the expansion that records what a turn recalls; ``None`` = nothing is recorded."""

    def fills(self, budget: int | None) -> bool:
        """Whether recalled messages may fill the whole budget; else they get a share of it, if that is free."""
        return self.query is not None and budget is not None

    def makes_room(self, budget: int | None) -> bool:
        """Whether other sections may be dropped or laid out again to make room for recalled messages.

        That is so even where the context fits as a whole.
        """
        return self.fills(budget) or bool(self.passages) or self.wanted.levels is not None


NO_RECALL_REQUEST: Final = RecallRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSources:
    """What was read for a question. ``with_recall_sources`` makes a ``Recall`` of it and its corpus."""

    question: str
    is_explicit: bool
    found: FoundMessages | None
    passages: tuple[Passage, ...]
    before: tuple[str, ...] = ()
    """What was said just before the question."""
    cosines: Mapping[int, float] = field(default_factory=dict)
    """The cosine between the vectors of the question and of each message, by ``seq``."""


def recall_question(material: ContextInputs, recall_request: RecallRequest, *, budget: int | None) -> str:
    """The question that messages are recalled for; empty where none can be recalled, or none are needed."""
    everything_is_served = material.conversation.boundary_seq == 0 and not exceeds_budget(material, budget=budget)
    if everything_is_served or not recall_request.wanted.recalled:
        return ""
    if recall_request.query is not None:
        return _shortened_question(recall_request.query)
    wanted = recall_request.recall if recall_request.recall is not None else material.policy.recall == "auto"
    if not (recall_request.in_turn and wanted):
        return ""
    text = _shortened_question(_text_being_answered(material.tail))
    return "" if decide_recall_without_history(text, question_of(text, ())) else text


async def read_recall_sources(
    uow: UnitOfWork, material: ContextInputs, recall_request: RecallRequest, question: str, *, budget: int | None = None
) -> RecallSources:
    """Read the messages to choose from; their number has a limit, however long the history is."""
    found, before = None, texts_before_question(material.tail, recall_request)
    if question:
        limit, conversation = candidate_limit(material, recall_request, budget), material.conversation
        stems = search_stems(question, before)
        known = _CORPORA.get(conversation.id)
        found = await uow.messages.sources(
            conversation.id, stems=stems, text=question, limit=limit, known=known[0] if known else None
        )
        found = found if recall_request.query is not None else _messages_before_answer(found, material.tail)
    return RecallSources(
        question=question,
        is_explicit=recall_request.query is not None,
        found=found,
        passages=recall_request.passages,
        before=before,
    )


def search_stems(question: str, before: Sequence[str] = ()) -> list[str]:
    """The stems of the question, then those of words with the same meaning and of words that it refers back to."""
    known = question_of(question, ())
    referred_to = [stem for text in before if needs_context(question, known) for stem in question_of(text, ()).stems]
    own = list(known.stems)
    alike = (other for stem in own for other in sorted(forms_of(stem)))
    others = dict.fromkeys(chain(referred_to, alike))
    return [*own, *islice((other for other in others if other not in own), RELATED)]


def candidate_limit(material: ContextInputs, recall_request: RecallRequest, budget: int | None) -> int:
    """How many messages are read to choose from, without their neighbours; more where the budget has more room."""
    total = material.conversation.total
    recall_tokens = (1.0 if recall_request.fills(budget) else material.policy.recall_share) * (
        budget or material.budgets.budget
    )
    return limit_for_places(recall_tokens * total.messages / max(total.tokens, 1))


def limit_for_places(places: float) -> int:
    """How many messages are read to choose from, where there is room for that many in the context."""
    return min(max(CANDIDATES, round(CHOICE * places)), MAX_CANDIDATES)


_CORPORA: Final = Latest[UUID, tuple[FoundMessages, Corpus]]()
"""The corpora of conversations that are read whole."""


def corpus_of(found: FoundMessages, before: Corpus | None = None) -> Corpus:
    """The corpus of the messages that were read; ``before`` as for ``Corpus``."""
    return Corpus(found.sources, documents=found.documents, total=found.total, language=found.language, before=before)


def cached_corpus_of(found: FoundMessages, conversation_id: UUID) -> Corpus:
    """The corpus of the messages that were read. That of a whole conversation is cached, and extended as it grows."""
    if found.documents:
        return corpus_of(found)  # others for each question
    known = _CORPORA.get(conversation_id)
    if known is not None and known[0] == found:
        return known[1]
    corpus = corpus_of(found, known[1] if known else None)
    _CORPORA.keep(conversation_id, (found, corpus), corpus.size)
    return corpus


def corpus_of_sources(recall_sources: RecallSources, conversation_id: UUID) -> Corpus:
    """The corpus of what was read for a question; much computing, so call it off the event loop."""
    return cached_corpus_of(recall_sources.found, conversation_id) if recall_sources.found else Corpus(())


def with_recall_sources(material: ContextInputs, recall_sources: RecallSources, corpus: Corpus) -> ContextInputs:
    """The material with a ``Recall`` of what was read for a question."""
    return replace(material, recall=from_same_fields(Recall, recall_sources, corpus=corpus))


def with_wanted_sections(material: ContextInputs, wanted: WantedSections) -> ContextInputs:
    """The material without the sections that are not wanted; a choice of levels needs the material's segments."""
    if wanted == EVERYTHING:
        return material
    has_digests = wanted.digests and wanted.levels != ()
    if not has_digests:
        material = replace(material, segments=(), segments_total=0, detail=NO_DETAIL)
    elif wanted.levels is not None:
        levels = tuple(level for level in material.policy.levels if level in wanted.levels)
        detail = replace(material.detail, may_expand=False)
        material = replace(material, policy=material.policy.model_copy(update={"levels": levels}), detail=detail)
    if not wanted.anchors:
        material = replace(material, anchors=(), anchors_unread=0)
    conversation = material.conversation
    if conversation.layout is not None:
        layout = _wanted_layout(material, conversation.layout, wanted)
        state = conversation.compressed_state if wanted.state else None
        conversation = replace(conversation, layout=layout, compressed_state=state)
    material = replace(material, conversation=conversation)
    return material if wanted.held else _without_held(material)


def _wanted_layout(material: ContextInputs, layout: Layout, wanted: WantedSections) -> Layout:
    digests = Digests(element=layout.digests, segments=layout.segments)
    if not wanted.digests or wanted.levels == ():
        digests = NO_DIGESTS
    elif wanted.levels is not None:
        whole = first_draft(material)

        def added(element: str) -> int:
            return block_sizes(material, replace(whole, digests=Digests(element=element)))[2]

        digests = material.digest_source.select(layout.digest_tokens, added)
    return replace(
        layout,
        text=layout.text if wanted.state else "",
        anchors=layout.anchors if wanted.anchors else "",
        anchors_behind_marker=layout.anchors_behind_marker if wanted.anchors else 0,
        digests=digests.element,
        segments=digests.segments,
    )


def _without_held(material: ContextInputs) -> ContextInputs:
    tail = tuple(replace(message, protected_reason="compressible") for message in material.tail)
    return replace(material, held=(), tail=tail)


def split_by_segment(context: AssembledContext, segments: Mapping[int, str]) -> AssembledContext:
    """The context with its section of recalled messages split into one for each segment, with the same tokens in all.

    ``segments`` are the ids of segments by the ``seq`` of a message.
    """
    sections = [one for section in context.sections for one in _split_by_segment(section, context.recalled, segments)]
    return replace(context, sections=tuple(sections))


def _split_by_segment(
    section: Section, recalled: Sequence[RecalledMessage], segments: Mapping[int, str]
) -> Iterator[Section]:
    if section.kind != RECALLED_TAG:
        yield section
        return
    weights = {one.source.seq: one.source.tokens for one in recalled}
    total = sum(weights.values())
    spent = done = 0
    for segment_id, group in groupby(section.seqs, key=segments.get):
        seqs = tuple(group)
        spent += sum(weights[seq] for seq in seqs)
        through = section.tokens * spent // total if total else 0
        yield replace(section, seqs=seqs, tokens=through - done, level="full", segment_id=segment_id)
        done = through


def expansion_of(
    context: AssembledContext, *, id_: UUID, conversation_id: UUID, now: datetime, duration_ms: int
) -> Expansion:
    """The record of an automatic recall: numbers, no text."""
    tokens = sum(section.tokens for section in context.sections if section.kind == RECALLED_TAG)
    return Expansion(
        id=id_,
        conversation_id=conversation_id,
        way="automatic",
        level="full",
        passages=len(context.recalled),
        tokens=tokens,
        duration_ms=duration_ms,
        created_at=now,
    )


def _shortened_question(text: str) -> str:
    half = QUESTION_CHARACTERS // 2
    return text if len(text) <= QUESTION_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _messages_before_answer(found: FoundMessages, tail: Sequence[Message]) -> FoundMessages:
    asking = _message_being_answered(tail)
    if asking is None:
        return found
    # Between the calls of an answer the same messages are recalled as at its beginning.
    sources = [source for source in found.sources if source.seq <= asking.seq]
    return replace(found, sources=sources, total=found.total - (len(found.sources) - len(sources)))


def texts_before_question(tail: Sequence[Message], recall_request: RecallRequest) -> tuple[str, ...]:
    """The two newest messages before the question, which may be stored already; each cut to its beginning."""
    asking = _message_being_answered(tail)
    is_stored = asking is not None and recall_request.query in {None, asking.content}
    newest_first = (
        message.content[:BEFORE_CHARACTERS]
        for message in reversed(tail)
        if message.content and not (is_stored and asking and message.seq >= asking.seq)
        if not _belongs_to_a_call(message)
    )
    return tuple(islice(newest_first, 2))[::-1]


def _message_being_answered(tail: Sequence[Message]) -> Message | None:
    last = next((message for message in reversed(tail) if not _belongs_to_a_call(message)), None)
    return last if last is not None and last.role == "user" else None


def _text_being_answered(tail: Sequence[Message]) -> str:
    asking = _message_being_answered(tail)
    if asking is None:
        return ""
    parts = own_parts(asking.content, asking.parts)
    texts = (str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return "\n".join(text for text in (asking.content, *texts) if text)


def _belongs_to_a_call(message: Message) -> bool:
    return message.role == "tool" or (message.role == "assistant" and bool(outline_of(message).calls))
