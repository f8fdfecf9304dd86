"""The offline responder: quotes what answers the question, and says that no model wrote the reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.model.model_io import ContextMessage
from app.core.reading.cues import PLEASANTRY, cues_of
from app.core.retrieval.passage_search import FoundNote, last_messages, most_informative_notes, notes_of, rank_notes
from app.core.retrieval.rendering import split_elements
from app.core.text.language import detect, likeliest
from app.core.text.languages.combined_words import alternatives, pattern_of
from app.core.text.localization.catalogue import FALLBACK, Catalogue, catalogue_of
from app.core.text.parts import own_parts
from app.core.text.pasted import before_paste
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.shortening import clip
from app.core.text.words import stems

_MAX_WORDS: Final = 118
_QUOTES: Final = 3
_QUOTE_CHARACTERS: Final = 200
_SOURCE_CHARACTERS: Final = 60
_ECHO_CHARACTERS: Final = 160
_SHORT_REQUEST: Final = 12  # words; a longer text that speaks of a summary need not ask for one
_SAMPLE: Final = 4_000
_WORD: Final = compiled(r"[A-Za-z]{2}")

_ASKS: Final = compiled(rf"[?？؟]|^\W*(?:{alternatives('replies', 'asks')})\b", re.IGNORECASE)
_ASKS_FOR_ALL: Final = pattern_of("replies", "asks_for_all")
_GREETS: Final = compiled(rf"^\W*(?:{alternatives('replies', 'greets')})\b", re.IGNORECASE)
_THANKS: Final = compiled(rf"^\W*(?:{alternatives('replies', 'thanks')})\b", re.IGNORECASE)


def respond(messages: tuple[ContextMessage, ...], locale: str = FALLBACK) -> str:
    """Answer the last user message from the rest of the context: quotes for a question, a receipt for a statement.

    The responder's own words are in the language of the message, or in that of ``locale`` if the message's language
    cannot be determined.
    """
    conversation = [message for message in messages if message.role != "system"]
    last = next((index for index in range(len(conversation) - 1, -1, -1) if conversation[index].role == "user"), None)
    recalled, question = split_elements(_text(conversation[last]) if last is not None else "")
    context = (
        [*conversation[:last], ContextMessage(role="user", content=recalled)] if last is not None else conversation
    )
    catalogue = catalogue_of(_language_of_answer(question, context) or locale)
    asks = _ASKS.search(question) or (_ASKS_FOR_ALL.search(question) and question.count(" ") < _SHORT_REQUEST)
    body = (_answer if asks else _acknowledgement)(question, context, catalogue)
    notice = catalogue.text("offline.notice")
    return f"{_cut_to_words(body, _MAX_WORDS - len(notice.split()))}\n\n{notice}"


def _text(message: ContextMessage) -> str:
    parts = own_parts(message.content, message.parts)
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return "\n".join(text for text in [message.content, *texts] if text)


def _language_of_answer(question: str, context: Sequence[ContextMessage]) -> str | None:
    if found := likeliest(question):
        return found
    return None if _WORD.search(question) else detect("\n".join(message.content for message in context)[-_SAMPLE:])


def _answer(question: str, context: Sequence[ContextMessage], catalogue: Catalogue) -> str:
    notes = notes_of(context)
    if _ASKS_FOR_ALL.search(question):
        found = [FoundNote(note=note, text=note.text) for note in notes if note.is_narrative]
        found += [FoundNote(note=note, text=note.text) for note in notes if note.seq is None and not note.is_narrative]
        found = found or most_informative_notes(notes, _QUOTES)
        if found:
            return "\n".join([catalogue.text("offline.all"), *(_quote(one, catalogue) for one in found[: _QUOTES + 1])])
    found = rank_notes(question, notes, last_messages(context))
    if not found:
        return catalogue.text("offline.nothing")
    return "\n".join(
        [_wording_for(catalogue.wordings("offline.found"), question), *(_quote(one, catalogue) for one in found)]
    )


def _quote(found: FoundNote, catalogue: Catalogue) -> str:
    who = {"user": catalogue.text("offline.you"), "assistant": catalogue.text("offline.me")}.get(found.note.role, "")
    elsewhere = clip(found.note.source, _SOURCE_CHARACTERS) or catalogue.text("offline.from_state")
    where = elsewhere if found.note.seq is None else f"#{found.note.seq}{f', {who}' if who else ''}"
    return f"> {where}: {clip(' '.join(found.text.split()), _QUOTE_CHARACTERS)}"


def _acknowledgement(statement: str, context: Sequence[ContextMessage], catalogue: Catalogue) -> str:
    pieces = sentences(before_paste(statement))
    informative = [piece for piece in pieces if not PLEASANTRY.match(piece) and len(stems(piece)) > 1]
    if not informative:
        if _THANKS.match(statement):
            return catalogue.text("offline.thanks")
        return (
            catalogue.text("offline.greeting")
            if _GREETS.match(statement) or not pieces
            else _wording_for(catalogue.wordings("offline.noted"), statement).format(
                text=clip(pieces[0], _ECHO_CHARACTERS)
            )
        )
    best = max(informative, key=lambda piece: len(cues_of(piece)))  # the first of them
    cues = cues_of(best)
    echo = clip(best, _ECHO_CHARACTERS)
    if "correction" in cues or "update" in cues:
        notes = notes_of(context)
        ranked = rank_notes(best, notes)
        before = next((one for one in ranked if one.text != best), None)
        acknowledgement = _wording_for(catalogue.wordings("offline.correction"), statement).format(text=echo)
        return (
            acknowledgement
            if before is None
            else f"{acknowledgement}\n{catalogue.text('offline.before')}\n{_quote(before, catalogue)}"
        )
    kind = "decision" if "decision" in cues else "noted"
    return _wording_for(catalogue.wordings(f"offline.{kind}"), statement).format(text=echo)


def _wording_for(choices: Sequence[str], text: str) -> str:
    # The choice is always the same for the same text.
    return choices[sum(map(ord, text)) % len(choices)]


def _cut_to_words(body: str, most: int) -> str:
    lines = body.split("\n")
    while len(lines) > 2 and len(" ".join(lines).split()) > most:  # noqa: PLR2004 - a heading and one quote
        lines.pop()
    counted = "\n".join(lines)
    return counted if len(counted.split()) <= most else " ".join(counted.split()[:most]) + "…"
