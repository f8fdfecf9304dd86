"""Finds what was explained and understood: the user's restatement, or the explanation before a user's "got it"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.passages import Passage
from app.core.summarizer.offline.corrections import MIN_WORDS_ALONE, specific_stems
from app.core.summarizer.offline.items import ANSWER_SEPARATOR, Item
from app.core.text.languages.combined_words import pattern_of
from app.core.text.shortening import clip

_UNDERSTOOD: Final = pattern_of("talk", "understood")
_MAX_POINTS: Final = 3
_MAX_EXPLANATION_LENGTH: Final = 160  # the most characters of an explanation


def understood_items(
    passages: Sequence[Passage], likely: Sequence[float], previous: Sequence[StateEntry]
) -> list[Item]:
    """The newest things that were understood, in order."""
    known = {entry.text for entry in previous if entry.role == "known"}
    found = [item for item in _understood_items(passages, likely) if item.text not in known]
    return found[-_MAX_POINTS:]


def _understood_items(passages: Sequence[Passage], likely: Sequence[float]) -> Iterator[Item]:
    explained: list[Passage] = []
    for passage in passages:
        if passage.role == "assistant" and not passage.is_named:
            explained = [*(explained if explained and explained[0].seq == passage.seq else []), passage]
        elif explained and passage.turn - explained[0].turn == 1 and _UNDERSTOOD.match(passage.text):
            statements = [one for one in explained if not (one.is_question or one.is_listed or one.line)]
            best = max(statements, key=lambda one: (likely[one.index], -one.index), default=None)
            if best is not None and not passage.is_question:
                yield _item(best, passage)


def _item(explained: Passage, answer: Passage) -> Item:
    text = f"{explained.speaker}: {clip(explained.text, _MAX_EXPLANATION_LENGTH)}"
    if len(specific_stems(answer.stems)) < MIN_WORDS_ALONE:
        return Item(text=text, seqs=(explained.seq,), passages=(explained,))
    return Item(
        text=f"{text}{ANSWER_SEPARATOR}{answer.text_with_speaker}",
        seqs=(explained.seq, answer.seq),
        passages=(explained, answer),
    )
