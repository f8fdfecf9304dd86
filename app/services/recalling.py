"""What a context may recall: loads the messages to choose from; the core decides, chooses and puts in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.domain.assembling.assembly import Material, exceeds
from app.domain.conversation import Message
from app.domain.recall.corpus import Corpus
from app.domain.recall.deciding import decided_by_itself
from app.domain.recall.question import question_of
from app.domain.recall.serving import Passage, Recall
from app.ports import Narrowed, UnitOfWork

CANDIDATES: Final = 300
"""Messages that hold the question's words, beside their neighbours, in a conversation too long to look at whole."""
QUESTION_CHARACTERS: Final = 4_000
"""Of a longer message the first and the last half of this are the question: bounds the work for a pasted book."""


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

    @property
    def makes_room(self) -> bool:
        """Whether other things may have to go for it, even where the whole would fit."""
        return self.query is not None or bool(self.passages)


NOTHING: Final = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Everything that ``recalled_from`` makes a ``Recall`` of, off the event loop."""

    question: str
    is_explicit: bool
    narrowed: Narrowed | None
    passages: tuple[Passage, ...]


def question_in(material: Material, asked: Asked, *, budget: int | None) -> str:
    """What messages are to be found for; empty where nothing can be recalled, or nothing need be."""
    everything_is_served = material.conversation.boundary_seq == 0 and not exceeds(material, budget=budget)
    if everything_is_served:
        return ""
    if asked.query is not None:
        return _bounded(asked.query)
    wanted = asked.recall if asked.recall is not None else material.policy.recall == "auto"
    if not (asked.in_turn and wanted):
        return ""
    text = _bounded(_last_words(material.tail))
    return "" if decided_by_itself(text, question_of(text, ())) else text


async def gather(uow: UnitOfWork, material: Material, asked: Asked, question: str) -> Gathered:
    """Read the messages to choose from: a bounded number, whatever the history."""
    narrowed = None
    if question:
        stems = list(question_of(question, ()).stems)
        narrowed = await uow.messages.sources(material.conversation.id, stems=stems, limit=CANDIDATES)
    return Gathered(question=question, is_explicit=asked.query is not None, narrowed=narrowed, passages=asked.passages)


def with_gathered(material: Material, gathered: Gathered) -> Material:
    """The material with what was gathered; CPU work."""
    found = gathered.narrowed
    corpus = Corpus(found.sources, documents=found.documents, total=found.total) if found else Corpus(())
    recall = Recall(
        question=gathered.question,
        corpus=corpus,
        is_explicit=gathered.is_explicit,
        passages=gathered.passages,
    )
    return replace(material, recall=recall)


def _bounded(text: str) -> str:
    half = QUESTION_CHARACTERS // 2
    return text if len(text) <= QUESTION_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _last_words(tail: Sequence[Message]) -> str:
    """The text of the last message, if it is a user's."""
    if not tail or tail[-1].role != "user":
        return ""
    texts = (str(part.get("text", "")) for part in tail[-1].parts if part.get("type") == "text")
    return "\n".join(text for text in (tail[-1].content, *texts) if text)
