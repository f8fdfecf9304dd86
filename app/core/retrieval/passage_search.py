"""Searches a context for what was asked, as recall searches a conversation."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from app.core.model.model_io import ContextMessage
from app.core.reading.cues import BOILERPLATE, cues_of
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.question import ROLES, Question
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import SCORE_MARGIN, Ranking
from app.core.retrieval.related_words import forms_of
from app.core.retrieval.rendering import passages_in, recalled_in
from app.core.retrieval.terms import is_pair, terms
from app.core.text.escaping import unescape
from app.core.text.parts import as_text, own_parts
from app.core.text.patterns import compiled
from app.core.text.sentences import asks, sentences
from app.core.text.shortening import clip
from app.core.text.token_counts import estimate_text

_BLOCK: Final = ("<session_state>", "</session_state>")
_NUMBERED: Final = compiled(r"^#(\d+) (.+)$")
_ANCHOR: Final = compiled(r"^- [a-z_]+ #(\d+)(?: ?[(（][^()（）\n]{1,60}[)）]){0,2}: (.+)$")
"""An anchor's line, with its speaker and the day on which it was said, if they are named."""
_MAX_FOUND: Final = 3
_MIN_CLOSENESS: Final = 1 - 2 / SCORE_MARGIN
"""The least closeness of a note that counts. The ranking model holds a note at this closeness to be e² = 7 times less
likely than the best one."""
_LOOKED_AT: Final = 24  # best notes that are looked at
_MIN_SHARE: Final = 0.2
_AROUND: Final = 2  # notes before and after a note
_SAME: Final = 0.75  # share of a quote's words; if another quote has so many of them, this one says nothing new
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_SECOND_SENTENCE: Final = 0.6
_SHORT_ENTRY: Final = 200  # characters


@dataclass(frozen=True, slots=True)
class Note:
    """A message, a passage or an entry of the state that can be quoted; ``seq`` is ``None`` where it is unknown."""

    text: str
    seq: int | None
    role: str
    is_narrative: bool = False
    source: str = ""
    """The source of a passage that the caller brought along; empty for other notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNote:
    """A note that fits the question, with the sentences of it that fit best."""

    note: Note
    text: str


def notes_of(context: Iterable[ContextMessage]) -> list[Note]:
    """Everything in a context that can be quoted. The offline responder's own earlier replies are left out."""
    notes: list[Note] = []
    for message in context:
        block = _state_block(message.content) if message.seq is None else None
        if block is not None:
            notes.extend(_state_notes(block))
            continue
        if message.seq is None:
            notes.extend(Note(text, None, role) for role, text in recalled_in(message.content))
            notes.extend(Note(text, None, "passage", source=of) for of, text in passages_in(message.content))
            continue
        parts = own_parts(message.content, message.parts)
        texts = [message.content, *(str(part.get("text", "")) for part in parts if part.get("type") == "text")]
        texts += [as_text(part.get("content")) for part in parts if part.get("type") == "tool_result"]
        text = "\n".join(text for text in texts if text.strip())
        if text and not (message.role == "assistant" and BOILERPLATE.search(text)):
            notes.append(Note(text, message.seq, message.role))
    return notes


def _state_block(content: str) -> str | None:
    opening, closing = _BLOCK
    _, opens, rest = content.partition(opening)
    inside, closes, _ = rest.partition(closing)
    return inside if opens and closes else None


def _state_notes(inner: str) -> list[Note]:
    text = inner.strip()
    try:
        state, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        state, end = {}, 0
    notes: list[Note] = []
    for value in state.values() if isinstance(state, dict) else ():
        if isinstance(value, str) and value:
            notes.append(Note(unescape(value), None, "state", is_narrative=True))
        elif isinstance(value, list):
            notes.extend(Note(unescape(entry), None, "state") for entry in value if isinstance(entry, str))
    for line in text[end:].splitlines():
        plain = unescape(line.strip())
        numbered = _NUMBERED.match(plain) or _ANCHOR.match(plain)
        if numbered:
            notes.append(Note(numbered.group(2), int(numbered.group(1)), "digest"))
    return notes


def most_informative_notes(notes: Sequence[Note], most: int) -> list[FoundNote]:
    """At most ``most`` notes that say most by themselves, in their order: they answer a question about everything."""
    worth = [
        (len(cues_of(note.text)) + (note.role != "assistant") - 2 * asks(note.text), -index)
        for index, note in enumerate(notes)
    ]
    best = sorted(sorted(range(len(notes)), key=lambda index: worth[index], reverse=True)[:most])
    return [FoundNote(note=notes[index], text=clip(notes[index].text)) for index in best]


def rank_notes(question_text: str, notes: Sequence[Note], before: Sequence[str] = ()) -> list[FoundNote]:
    """The notes that answer a question, best first, three at most; each with the sentence or two that fit best.

    The notes are ranked as messages are for recall. A note counts only if it, together with the two notes before and
    the two after it, has a fifth of the question's words, each weighted by its rarity.

    Args:
        question_text: The question.
        notes: The notes to choose from.
        before: The two messages before the question: a mere "And when?" is about them.
    """
    by_place = dict(_places(notes))
    corpus = Corpus([_source(note, place) for place, note in by_place.items()])
    own = set(terms(question_text, corpus.language))
    question = completed_question(question_text, corpus)
    if not own and (question.asks_when or question.asks_number):
        question = completed_question(question_text, corpus, before=before)
    question = replace(question, months=frozenset(), years=frozenset())  # messages of a context have no times
    closeness = Ranking(corpus, question).closeness
    found: list[FoundNote] = []
    found_words: list[set[str]] = []
    for place in sorted(closeness, key=lambda place: (closeness[place], place), reverse=True)[:_LOOKED_AT]:
        if closeness[place] < _MIN_CLOSENESS or len(found) == _MAX_FOUND:
            break
        text, words = _best_words(by_place[place], question.stems, corpus.language)
        is_new = words and words != own and not any(len(words & other) >= _SAME * len(words) for other in found_words)
        if is_new and _question_share_around(place, question, corpus) >= _MIN_SHARE:
            found_words.append(words)
            found.append(FoundNote(note=by_place[place], text=text))
    return found


def _question_share_around(place: int, question: Question, corpus: Corpus) -> float:
    """The share of the question's words, weighted by rarity, that a note or the two before and after it hold."""
    at = bisect_left(corpus.sources, place, key=lambda source: source.seq)
    around = corpus.sources[max(at - _AROUND, 0) : at + _AROUND + 1]
    stems_around = {stem for source in around for stem in terms(source.text, corpus.language)}
    nowhere = math.log(2 * (corpus.total + 1))
    asked = {stem: weight * (corpus.rarity(stem) or nowhere) for stem, weight in question.stems.items()}
    total = sum(weight for stem, weight in asked.items() if corpus.documents(stem) or not is_pair(stem))
    found_weight = sum(weight for stem, weight in asked.items() if not stems_around.isdisjoint({stem, *forms_of(stem)}))
    return found_weight / total if total else 1.0


def last_messages(context: Iterable[ContextMessage]) -> tuple[str, ...]:
    """The last two messages of a context, as ``rank_notes`` takes them; the offline responder's replies are empty."""
    messages = [message for message in context if message.seq is not None and message.role in ROLES][-2:]
    return tuple("" if BOILERPLATE.search(message.content) else message.content for message in messages)


def _places(notes: Iterable[Note]) -> Iterator[tuple[int, Note]]:
    # Two notes get consecutive places only if they are neighbouring messages.
    place, before = 0, None
    for note in notes:
        follows = note.seq is not None and before is not None and note.seq == before + 1
        place += 1 if follows else 2
        before = note.seq
        yield place, note


def _source(note: Note, place: int) -> Source:
    return Source(seq=place, role=note.role, text=note.text, at=_ANY_TIME, tokens=estimate_text(note.text))


def _best_words(note: Note, asked: Collection[str], language: str | None) -> tuple[str, set[str]]:
    """The sentence that fits best, with the next one if it fits nearly as well, verbatim; and the words of both.

    A short entry of the state is taken whole, since it can be a question with its answer.
    """
    text = note.text
    if note.role == "state" and len(text) <= _SHORT_ENTRY:
        return text, set(terms(text, language))
    pieces = [piece for piece in sentences(text) if not (piece[0] == "[" and piece[-1] == "]")]
    if not pieces:
        return "", set()
    sets = [set(terms(piece, language)) for piece in pieces]
    scores = [
        len(found.intersection(asked)) * 2 + min(len(found), 8) / 8 - (0.8 if asks(piece) else 0)
        for found, piece in zip(sets, pieces, strict=True)
    ]
    best = max(range(len(pieces)), key=lambda index: (scores[index], -index))
    text, words = pieces[best], sets[best]
    after = best + 1
    if after < len(pieces) and scores[after] >= _SECOND_SENTENCE * scores[best] and not asks(pieces[after]):
        text, words = f"{text} {pieces[after]}", words | sets[after]
    return clip(text), words
