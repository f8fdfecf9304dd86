"""Searches a context for what was asked: BM25 over messages, whose neighbours get a part of their scores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.model.model_io import ContextMessage
from app.core.reading.cues import BOILERPLATE, cues_of
from app.core.retrieval import bm25
from app.core.retrieval.serving import passages_in, recalled_in
from app.core.text.escaping import unescape
from app.core.text.parts import as_text, own_parts
from app.core.text.patterns import compiled
from app.core.text.sentences import asks, sentences
from app.core.text.shortening import clip
from app.core.text.speakers import label_of
from app.core.text.stemming import stems_in
from app.core.text.words import GENERIC_STEMS

_BLOCK: Final = ("<session_state>", "</session_state>")
_NUMBERED: Final = compiled(r"^#(\d+) (.+)$")
_ANCHOR: Final = compiled(r"^- [a-z_]+ #(\d+)(?: ?[(（][^()（）\n]{1,60}[)）])?: (.+)$")
_SPREAD: Final = ((1, 0.6), (2, 0.4), (3, 0.2))
"""Distance and share: a neighbour gets so much of a score, for an answer often shares no word with the question."""

_STATE_WORTH: Final = 1.3  # an entry of the state was chosen for its weight, and has no neighbours to borrow from
_ASSISTANT_WORTH: Final = 0.8
_QUESTION_WORTH: Final = 0.45
_SPEAKER_WORTH: Final = 1.6
_SECOND_SENTENCE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Note:
    """A message, a passage or an entry of the state that can be quoted; ``seq`` is ``None`` where it is unknown."""

    text: str
    seq: int | None
    role: str
    is_narrative: bool = False
    source: str = ""
    """The source of a passage of the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A note that fits the question, with the sentences of it that fit best."""

    note: Note
    text: str
    score: float
    own: float = 0.0
    """The score without the parts that came from neighbours."""


def notes_of(context: Iterable[ContextMessage]) -> list[Note]:
    """All of a context that can be quoted: not the responder's own earlier replies."""
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


def most_telling(notes: Sequence[Note], most: int) -> list[Found]:
    """The notes that say most by themselves, in their order: the answer to a question about everything."""
    worth = [
        (len(cues_of(note.text)) + (note.role != "assistant") - 2 * asks(note.text), -index)
        for index, note in enumerate(notes)
    ]
    best = sorted(sorted(range(len(notes)), key=lambda index: worth[index], reverse=True)[:most])
    return [Found(note=notes[index], text=clip(notes[index].text), score=1.0) for index in best]


def rank(asked: str, notes: Sequence[Note], language: str | None = None) -> list[Found]:
    """Notes that fit the question, best first, each with the sentence or two of it that fit best.

    Args:
        asked: The question.
        notes: The notes to choose from.
        language: Their language, as for ``stems_in``.
    """
    asked_stems = list(dict.fromkeys(stems_in(asked, language)))
    query = [stem for stem in asked_stems if stem not in GENERIC_STEMS] or asked_stems
    if not query or not notes:
        return []
    matches = _match_scores(query, notes, language)
    if not any(matches):
        return []
    spread = _spread_scores(matches, notes, query, language)
    found: list[Found] = []
    kept: list[set[str]] = []
    for index in sorted(range(len(notes)), key=lambda index: (-spread[index], -index)):
        if spread[index] <= 0:
            break
        if len(found) >= _ENOUGH:
            break
        text, words = _best_words(notes[index].text, set(query), language)
        answers = index > 0 and matches[index - 1] > 0 and asks(notes[index - 1].text)
        if not answers and not words & set(query):
            continue  # its neighbours match, but it says nothing of what was asked
        if words and not any(len(words & other) >= _SAME * len(words) for other in kept) and words != set(asked_stems):
            kept.append(words)
            found.append(Found(note=notes[index], text=text, score=spread[index], own=matches[index]))
    return found


_ENOUGH: Final = 8
_SAME: Final = 0.75


def _match_scores(query: Sequence[str], notes: Sequence[Note], language: str | None) -> list[float]:
    bags = [Counter(stems_in(note.text, language)) for note in notes]
    holding = {stem: [(index, bag[stem]) for index, bag in enumerate(bags) if stem in bag] for stem in query}
    asked = [(bm25.rarity(len(notes), len(found)), found) for found in holding.values()]
    return bm25.scores(asked, [bag.total() for bag in bags])


def _worth(note: Note, query: Sequence[str], language: str | None) -> float:
    worth = {"state": _STATE_WORTH, "assistant": _ASSISTANT_WORTH}.get(note.role, 1.0)
    if asks(note.text):
        worth *= _QUESTION_WORTH
    label = label_of(note.text)
    return worth * _SPEAKER_WORTH if label and set(stems_in(label.name, language)) & set(query) else worth


def _spread_scores(
    matches: Sequence[float], notes: Sequence[Note], query: Sequence[str], language: str | None
) -> list[float]:
    spread = list(matches)
    for index, score in enumerate(matches):
        if score and notes[index].role != "state":
            for distance, share in _SPREAD:
                for other in (index - distance, index + distance):
                    if 0 <= other < len(notes) and notes[other].role != "state":
                        spread[other] += share * score
    return [_worth(note, query, language) * score for note, score in zip(notes, spread, strict=True)]


def _best_words(text: str, query: set[str], language: str | None) -> tuple[str, set[str]]:
    """The sentence that fits best, and the next one if it fits nearly as well, verbatim; and their stems."""
    pieces = [piece for piece in sentences(text) if not (piece[0] == "[" and piece[-1] == "]")]
    if not pieces:
        return "", set()
    sets = [set(stems_in(piece, language)) for piece in pieces]
    scores = [
        len(found & query) * 2 + min(len(found), 8) / 8 - (0.8 if asks(piece) else 0)
        for found, piece in zip(sets, pieces, strict=True)
    ]
    best = max(range(len(pieces)), key=lambda index: (scores[index], -index))
    text, words = pieces[best], sets[best]
    after = best + 1
    if after < len(pieces) and scores[after] >= _SECOND_SENTENCE * scores[best] and not asks(pieces[after]):
        text, words = f"{text} {pieces[after]}", words | sets[after]
    return clip(text), words
