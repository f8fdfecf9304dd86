"""States of one text: reads them as entries, so that these can be kept, and writes a text from entries again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from typing import Final

from app.core.model.state import StateEntry, StateField, StateSchema
from app.core.reading.labels import PHRASES, phrases
from app.core.reading.quoting import is_quotation, is_unclosed_quotation
from app.core.summarizer.offline.items import ANSWER_SEPARATOR
from app.core.text.patterns import compiled
from app.core.text.sentences import closed, sentences
from app.core.text.speakers import label_of

_MAX_STATEMENT_LENGTH: Final = 420
"""The most characters of one speaker's sentences in a statement, enough for a question quoted with its answer."""
_TOPIC_FRAMES: Final = tuple(words.about.partition("{")[0] for words in PHRASES.values())
_LATEST_FRAMES: Final = tuple(words.last.partition("{")[0] for words in PHRASES.values())
_FRAMES: Final = (*_LATEST_FRAMES, *(words.last_by.partition("{")[0] for words in PHRASES.values()))
_LATEST_BY_SPEAKER: Final = tuple(
    compiled(
        re.escape(words.last_by).replace(r"\{speaker\}", r"([^()\n]{1,60})").replace(r"\{text\}", "(.*)"), re.DOTALL
    )
    for words in PHRASES.values()
)


def is_narrative_only(schema: StateSchema) -> bool:
    """Whether the schema has no list of facts: the narrative is the whole state."""
    return not schema.field_for("fact").is_list


def narrative_as_entries(entries: Sequence[StateEntry], schema: StateSchema, language: str) -> tuple[StateEntry, ...]:
    """The narrative as entries: its topic stays a narrative, and each further statement becomes a fact, in order.

    Their ids and sources only number these entries and are used nowhere else. Entries of other roles stay.
    """
    result: list[StateEntry] = []
    numbers = count(1)
    field = schema.field_for("narrative")
    for entry in sorted(entries, key=lambda one: not one.in_doubt):  # earlier text, which is in doubt, comes first
        if entry.role != "narrative":
            result.append(entry)
            continue
        topic, texts = ("", statements(entry.text)) if entry.in_doubt else _topic_and_statements(entry.text, language)
        result += [_entry_of_piece(entry, field, "N", next(numbers), topic)] if topic else []
        result += [_entry_of_piece(entry, field, "F", next(numbers), text) for text in texts]
    return tuple(result)


def joined_narrative(narrative: str, texts: Iterable[str]) -> str:
    """One text: the story, then each text as a sentence of its own, without repetitions.

    What the story marks as said last is put at the end, without the words that mark it.
    """
    sentences_of_texts = list(dict.fromkeys(map(closed, texts)))
    sentences_of_texts = [
        text for text in sentences_of_texts if not any(text in other for other in sentences_of_texts if other != text)
    ]
    parts = statements(narrative)
    opening = [
        part
        for part in parts
        if without_frame(part) == part and not any(closed(part) in text for text in sentences_of_texts)
    ]
    latest = [latest_text for part in parts if (latest_text := without_frame(part)) != part]
    latest = [
        latest_text for latest_text in latest if not any(closed(latest_text) in text for text in sentences_of_texts)
    ]
    return " ".join(part for part in (*opening, *sentences_of_texts, *latest) if part)


def is_topic_statement(text: str) -> bool:
    """Whether a statement only says what the conversation is about."""
    return text.startswith(_TOPIC_FRAMES)


def statements(text: str) -> list[str]:
    """The statements of a text: the sentences of a named speaker together, every other sentence by itself."""
    return list(dict.fromkeys(_statements(text)))


def statement_pieces(text: str) -> list[str]:
    """The text cut between its statements. Together, the pieces are the whole text, apart from spaces."""
    cuts = [0]
    for statement in _statements(text):
        found = text.find(statement, cuts[-1])
        if found >= 0:
            cuts.append(found + len(statement))
    cuts[-1] = len(text)  # the rest after the last statement belongs to it
    return [piece for start, end in pairwise([0, *cuts]) if (piece := text[start:end].strip())]


def _statements(text: str) -> list[str]:
    result: list[str] = []
    for sentence in sentences(text):
        goes_on = result and len(result[-1]) + len(sentence) <= _MAX_STATEMENT_LENGTH and label_of(sentence) is None
        goes_on = goes_on and not sentence.startswith(_FRAMES) and not is_quotation(sentence)
        is_labelled = goes_on and label_of(result[-1]) and not is_quotation(result[-1])
        if goes_on and (
            sentence.startswith(ANSWER_SEPARATOR.strip()) or is_labelled or is_unclosed_quotation(result[-1])
        ):
            result[-1] = f"{result[-1]} {sentence}"
        else:
            result.append(sentence)
    return result


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
    all_statements = statements(text)
    # In a language without such frames the first sentence counts as the topic.
    if all_statements and (all_statements[0].startswith(_TOPIC_FRAMES) or phrases(language) is None):
        first = sentences(all_statements[0])[0]
        all_statements = [all_statements[0][len(first) :].strip(), *all_statements[1:]]
    else:
        first = ""
    pairs = [(one, without_frame(one)) for one in all_statements]
    # Statements with a frame were said last: they come last.
    ordered = sorted(pairs, key=lambda pair: pair[0] != pair[1])
    return first, [unframed for _, unframed in ordered if unframed]


def without_frame(text: str) -> str:
    """A statement without words such as "Last:" before it."""
    for pattern in _LATEST_BY_SPEAKER:
        if found := pattern.fullmatch(text):
            return f"{found[1]}: {found[2]}"
    return next((text[len(frame) :] for frame in _LATEST_FRAMES if text.startswith(frame)), text)
