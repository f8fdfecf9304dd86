"""What a context may recall: loads the messages to choose from; the core decides, chooses and puts in place.

Also what is left out of it on request, and the record of what was brought back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby, islice
from typing import Final
from uuid import UUID

from app.core.context.assembly import AssembledContext, Material, Section, exceeds
from app.core.context.drafts import NO_DETAIL, block_sizes, first_draft, outline_of
from app.core.model.conversation import Layout, Message
from app.core.model.segments import Expansion, Level
from app.core.retrieval.choose import Recalled
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.kinds import forms_of
from app.core.retrieval.question import question_of
from app.core.retrieval.recall_decision import decide_recall_without_history
from app.core.retrieval.serving import RECALLED_TAG, Passage, Recall
from app.core.state.digesting import NO_DIGESTS, Digests
from app.core.text.memo import Latest
from app.core.text.parts import own_parts
from app.storage.repositories.narrowing import Narrowed
from app.storage.unit_of_work import UnitOfWork

CANDIDATES: Final = 600
"""Messages that hold the question's words, beside their neighbours, in a conversation too long to look at whole. Of
five talks in one, 300 lose three points of the evidence that 1 500 find within the same room, 600 none (questions of
``bench.narrowing``)."""
MOST_CANDIDATES: Final = 1_500
"""Where the budget holds many: as many as a conversation that is looked at whole."""
CHOICE: Final = 3
"""Candidates for each message that the budget has room for: with one each there would be no choice."""
RELATED: Final = 16
"""Words that mean the same as the question's that are sought with them; each is one more look into the index."""
QUESTION_CHARACTERS: Final = 4_000
"""Of a longer message the first and the last half of this are the question: bounds the work for a pasted book."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which sections a caller wants; what is left out goes, and the gauge says so."""

    state: bool = True
    anchors: bool = True
    digests: bool = True
    held: bool = True
    recalled: bool = True
    levels: tuple[Level, ...] | None = None
    """Which levels digests may show; ``None`` = as they were laid out."""


EVERYTHING: Final = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants recalled."""

    query: str | None = None
    """Explicit: recall always runs, and for this."""
    passages: tuple[Passage, ...] = ()
    """The caller's own, served beside what is recalled."""
    in_turn: bool = False
    """The last user message is the question, if the policy says so."""
    recall: bool | None = None
    """Overrides the policy in a turn."""
    wanted: Wanted = EVERYTHING
    record_id: UUID | None = None
    """In a turn: the id under which what is recalled is recorded as an expansion; ``None`` = it is not."""

    def fills(self, budget: int | None) -> bool:
        """Whether what is recalled may fill a budget; else it takes a share of it, and only of what is free."""
        return self.query is not None and budget is not None

    def makes_room(self, budget: int | None) -> bool:
        """Whether other sections may be dropped or laid out again for it, even where the whole context would fit."""
        return self.fills(budget) or bool(self.passages) or self.wanted.levels is not None


NOTHING: Final = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was read for a question, of which ``with_gathered`` makes a ``Recall`` off the event loop."""

    question: str
    is_explicit: bool
    narrowed: Narrowed | None
    passages: tuple[Passage, ...]
    cosines: Mapping[int, float] = field(default_factory=dict)
    """By ``seq``, how alike question and message are by their vectors."""


def question_in(material: Material, asked: Asked, *, budget: int | None) -> str:
    """What messages are to be found for; empty where nothing can be recalled, or nothing need be."""
    everything_is_served = material.conversation.boundary_seq == 0 and not exceeds(material, budget=budget)
    if everything_is_served or not asked.wanted.recalled:
        return ""
    if asked.query is not None:
        return _shortened_question(asked.query)
    wanted = asked.recall if asked.recall is not None else material.policy.recall == "auto"
    if not (asked.in_turn and wanted):
        return ""
    text = _shortened_question(_text_being_answered(material.tail))
    return "" if decide_recall_without_history(text, question_of(text, ())) else text


async def gather(
    uow: UnitOfWork, material: Material, asked: Asked, question: str, *, budget: int | None = None
) -> Gathered:
    """Read the messages to choose from: a bounded number, whatever the history."""
    narrowed = None
    if question:
        limit, stems, talk = most_looked_at(material, asked, budget), search_stems(question), material.conversation
        known = _CORPORA.get(talk.id)
        narrowed = await uow.messages.sources(
            talk.id, stems=stems, text=question, limit=limit, known=known[0] if known else None
        )
        narrowed = narrowed if asked.query is not None else _messages_before_answer(narrowed, material.tail)
    return Gathered(
        question=question,
        is_explicit=asked.query is not None,
        narrowed=narrowed,
        passages=asked.passages,
    )


def search_stems(question: str) -> list[str]:
    """The question's stems, and after them those that mean the same."""
    own = list(question_of(question, ()).stems)
    alike = (other for stem in own for other in sorted(forms_of(stem)))
    return [*own, *islice((other for other in dict.fromkeys(alike) if other not in own), RELATED)]


def most_looked_at(material: Material, asked: Asked, budget: int | None) -> int:
    """How many messages are read to choose from, without their neighbours: the more, the more the room can hold."""
    total = material.conversation.total
    room = (1.0 if asked.fills(budget) else material.policy.recall_share) * (budget or material.budgets.budget)
    return candidates_for(room * total.messages / max(total.tokens, 1))


def candidates_for(places: float) -> int:
    """How many messages are read to choose from where there is room for so many."""
    return min(max(CANDIDATES, round(CHOICE * places)), MOST_CANDIDATES)


_CORPORA: Final = Latest[UUID, tuple[Narrowed, Corpus]]()
"""Of each conversation that is looked at whole."""


def corpus_of(found: Narrowed, before: Corpus | None = None) -> Corpus:
    """What was read, taken apart; ``before`` as for ``Corpus``."""
    return Corpus(found.sources, documents=found.documents, total=found.total, language=found.language, before=before)


def known_corpus_of(found: Narrowed, conversation_id: UUID) -> Corpus:
    """The corpus; that of a whole conversation is kept, used again while nothing changed, and extended as it grows."""
    if found.documents:
        return corpus_of(found)  # others for each question
    known = _CORPORA.get(conversation_id)
    if known is not None and known[0] == found:
        return known[1]
    corpus = corpus_of(found, known[1] if known else None)
    _CORPORA.keep(conversation_id, (found, corpus), corpus.size)
    return corpus


def with_gathered(material: Material, gathered: Gathered) -> Material:
    """The material with what was gathered; CPU work."""
    found = gathered.narrowed
    corpus = known_corpus_of(found, material.conversation.id) if found else Corpus(())
    recall = Recall(
        question=gathered.question,
        corpus=corpus,
        is_explicit=gathered.is_explicit,
        passages=gathered.passages,
        cosines=gathered.cosines,
    )
    return replace(material, recall=recall)


def chosen(material: Material, wanted: Wanted) -> Material:
    """The material without what is not wanted; for a choice of levels it needs its segments."""
    if wanted == EVERYTHING:
        return material
    has_digests = wanted.digests and wanted.levels != ()
    if not has_digests:
        material = replace(material, segments=(), segments_total=0, detail=NO_DETAIL)
    elif wanted.levels is not None:
        levels = tuple(level for level in material.policy.levels if level in wanted.levels)
        detail = replace(material.detail, opens=False)
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


def _wanted_layout(material: Material, layout: Layout, wanted: Wanted) -> Layout:
    digests = Digests(element=layout.digests, segments=layout.segments)
    if not wanted.digests or wanted.levels == ():
        digests = NO_DIGESTS
    elif wanted.levels is not None:
        whole = first_draft(material)

        def added(element: str) -> int:
            return block_sizes(material, replace(whole, digests=Digests(element=element)))[2]

        digests = material.digestible.within(layout.digest_tokens, added)
    return replace(
        layout,
        text=layout.text if wanted.state else "",
        anchors=layout.anchors if wanted.anchors else "",
        anchors_behind_marker=layout.anchors_behind_marker if wanted.anchors else 0,
        digests=digests.element,
        segments=digests.segments,
    )


def _without_held(material: Material) -> Material:
    tail = tuple(replace(message, protected_reason="compressible") for message in material.tail)
    return replace(material, held=(), tail=tail)


def located(context: AssembledContext, segments: Mapping[int, str]) -> AssembledContext:
    """The context with one section of recalled messages for each segment that they lie in; the sum stays.

    ``segments``: their ids, by message.
    """
    sections = [one for section in context.sections for one in _split_by_segment(section, context.recalled, segments)]
    return replace(context, sections=tuple(sections))


def _split_by_segment(section: Section, recalled: Sequence[Recalled], segments: Mapping[int, str]) -> Iterator[Section]:
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


def _messages_before_answer(narrowed: Narrowed, tail: Sequence[Message]) -> Narrowed:
    asking = _message_being_answered(tail)
    if asking is None:
        return narrowed
    # Between the calls of an answer the same is recalled as at its beginning.
    sources = [source for source in narrowed.sources if source.seq <= asking.seq]
    return replace(narrowed, sources=sources, total=narrowed.total - (len(narrowed.sources) - len(sources)))


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
