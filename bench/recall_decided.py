"""Counts questions for which a turn recalls nothing, since their words are served anyway, though the answer is not.

Each talk is folded as a whole, so that only the entries of its state are served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.core.context.assembly import ContextInputs
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.recall_decision import decide_recall
from app.core.retrieval.terms import terms
from bench.fidelity_made import FOLDER as MADE
from bench.recall_talks import Talk, TalkQuestion, folded, open_trust_talks, talks

SAME_SHARE: Final = 0.8
"""An entry with this share of a message's words counts as saying the same."""


def report(locomo: Sequence[Talk]) -> Iterator[str]:
    """The table, a line after each set of talks."""
    yield "| | questions | nothing is recalled for | of these without the answer |"
    yield "|---|---:|---:|---:|"
    made = [talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path)]
    for name, given in (("LoCoMo", locomo), ("made-up talks", made), ("trust talks", open_trust_talks())):
        found = [missed for talk in given for missed in covered(talk)]
        yield f"| {name} | {sum(len(talk.questions) for talk in given)} | {len(found)} | {sum(found)} |"


def covered(talk: Talk) -> Iterator[bool]:
    """For each question for which nothing is recalled, whether a message with its answer is in no entry."""
    material, corpus = folded(talk)
    entries = entries_of(material)
    for asked in talk.questions:
        question = completed_question(asked.text, corpus)
        if decide_recall(asked.text, question, corpus, served=(), seqs=(), entries=entries) == "covered":
            yield not is_in_entries(entries, asked, corpus)


def entries_of(material: ContextInputs) -> list[str]:
    """The texts of the state's entries."""
    state = material.conversation.compressed_state or {}
    return [text for value in state.values() for text in ([value] if isinstance(value, str) else value)]


def is_in_entries(entries: Sequence[str], asked: TalkQuestion, corpus: Corpus) -> bool:
    """Whether each message that holds the answer is in an entry."""
    entry_words = [set(terms(text, corpus.language)) for text in entries]
    for seq in asked.evidence:
        words = set(terms(corpus.sources[seq - 1].text, corpus.language))
        if words and max((len(words & one) for one in entry_words), default=0) < SAME_SHARE * len(words):
            return False
    return True
