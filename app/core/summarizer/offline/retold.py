"""States of one text: reads them as entries, so that these can be kept, and writes a text from entries again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from typing import Final

from app.core.model.state import StateEntry, StateField, StateSchema
from app.core.reading.labels import PHRASES, phrases
from app.core.reading.quoting import is_quotation, is_unclosed_quotation
from app.core.summarizer.offline.items import ANSWERED
from app.core.text.patterns import compiled
from app.core.text.sentences import closed, sentences
from app.core.text.speakers import label_of

_LONGEST: Final = 420
"""The most characters of one speaker's sentences in a statement, enough for a question quoted with its answer."""
_ABOUT: Final = tuple(words.about.partition("{")[0] for words in PHRASES.values())
_LAST: Final = tuple(words.last.partition("{")[0] for words in PHRASES.values())
_FRAMED: Final = (*_LAST, *(words.last_by.partition("{")[0] for words in PHRASES.values()))
_LAST_BY: Final = tuple(
    compiled(
        re.escape(words.last_by).replace(r"\{speaker\}", r"([^()\n]{1,60})").replace(r"\{text\}", "(.*)"), re.DOTALL
    )
    for words in PHRASES.values()
)


def is_told(schema: StateSchema) -> bool:
    """Whether the schema has no list of facts: the narrative is the whole state."""
    return not schema.home("fact").is_list


def spelled_out(entries: Sequence[StateEntry], schema: StateSchema, language: str) -> tuple[StateEntry, ...]:
    """The narrative as entries: its topic stays a narrative, and each further statement becomes a fact, in order.

    Their ids and sources only number these entries and are used nowhere else. Entries of other roles stay.
    """
    found: list[StateEntry] = []
    numbers = count(1)
    field = schema.home("narrative")
    for entry in sorted(entries, key=lambda one: not one.in_doubt):  # earlier text, which is in doubt, comes first
        if entry.role != "narrative":
            found.append(entry)
            continue
        story, told = ("", statements(entry.text)) if entry.in_doubt else _topic_and_statements(entry.text, language)
        found += [_entry_of_piece(entry, field, "N", next(numbers), story)] if story else []
        found += [_entry_of_piece(entry, field, "F", next(numbers), text) for text in told]
    return tuple(found)


def retold(story: str, texts: Iterable[str]) -> str:
    """One text: the story, then each text as a sentence of its own, without repetitions.

    What the story marks as said last is put at the end, without the words that mark it.
    """
    told = list(dict.fromkeys(map(closed, texts)))
    told = [text for text in told if not any(text in other for other in told if other != text)]
    parts = statements(story)
    begun = [part for part in parts if unframed(part) == part and not any(closed(part) in text for text in told)]
    last = [said for part in parts if (said := unframed(part)) != part]
    last = [said for said in last if not any(closed(said) in text for text in told)]
    return " ".join(part for part in (*begun, *told, *last) if part)


def is_about(text: str) -> bool:
    """Whether a statement only says what the conversation is about."""
    return text.startswith(_ABOUT)


def statements(text: str) -> list[str]:
    """The statements of a text: the sentences of a named speaker together, every other sentence by itself."""
    return list(dict.fromkeys(_statements(text)))


def pieces(text: str) -> list[str]:
    """The text cut between its statements. Together, the pieces are the whole text, apart from spaces."""
    cuts = [0]
    for statement in _statements(text):
        found = text.find(statement, cuts[-1])
        if found >= 0:
            cuts.append(found + len(statement))
    cuts[-1] = len(text)  # the rest after the last statement belongs to it
    return [piece for start, end in pairwise([0, *cuts]) if (piece := text[start:end].strip())]


def _statements(text: str) -> list[str]:
    found: list[str] = []
    for sentence in sentences(text):
        goes_on = found and len(found[-1]) + len(sentence) <= _LONGEST and label_of(sentence) is None
        goes_on = goes_on and not sentence.startswith(_FRAMED) and not is_quotation(sentence)
        is_labelled = goes_on and label_of(found[-1]) and not is_quotation(found[-1])
        if goes_on and (sentence.startswith(ANSWERED.strip()) or is_labelled or is_unclosed_quotation(found[-1])):
            found[-1] = f"{found[-1]} {sentence}"
        else:
            found.append(sentence)
    return found


def _entry_of_piece(entry: StateEntry, field: StateField, letter: str, number: int, text: str) -> StateEntry:
    return StateEntry(
        id=f"{letter}{number}",
        field=field.name,
        role="narrative" if letter == "N" else "fact",
        text=text,
        from_seqs=(number,),
        since_version=entry.since_version,
        origins=entry.origins,
    )


def _topic_and_statements(text: str, language: str) -> tuple[str, list[str]]:
    told = statements(text)
    # In a language without such frames the first sentence counts as the topic.
    if told and (told[0].startswith(_ABOUT) or phrases(language) is None):
        first = sentences(told[0])[0]
        told = [told[0][len(first) :].strip(), *told[1:]]
    else:
        first = ""
    said = [(one, unframed(one)) for one in told]
    # Statements with a frame were said last: they come last.
    ordered = sorted(said, key=lambda pair: pair[0] != pair[1])
    return first, [unframed for _, unframed in ordered if unframed]


def unframed(text: str) -> str:
    """A statement without words such as "Last:" before it."""
    for pattern in _LAST_BY:
        if found := pattern.fullmatch(text):
            return f"{found[1]}: {found[2]}"
    return next((text[len(frame) :] for frame in _LAST if text.startswith(frame)), text)
