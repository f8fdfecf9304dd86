"""Finds values that a statement may mean in place of those that were not shown: a hint for the model asked again.

A model tends to use any value that a hint names. So a hint names only values of the same kind, unit and size, and only
those in the sentence of a message that shares most words and other values with the statement.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.model.conversation import Message
from app.core.model.word_overlap import message_text
from app.core.text.sentences import sentence_spans
from app.core.text.values import Value, values
from app.core.validation.evidence import content_stems

_MAX_HINTS: Final = 2
"""The most hints for one value."""
_MAX_SIZE_RATIO: Final = 5
"""How many times larger or smaller a value may be to count as an error in a digit, not as another thing."""


@dataclass(frozen=True, slots=True)
class SentenceContent:
    """A sentence, as the words about its subject and its values."""

    words: frozenset[str]
    values: tuple[Value, ...]

    def shared_count(self, words: frozenset[str], forms: frozenset[str]) -> int:
        """How many of these words, and how many values with these forms, the sentence has."""
        return len(words & self.words) + sum(not forms.isdisjoint(one.forms) for one in self.values)


def sentences_with_values(message: Message) -> tuple[SentenceContent, ...]:
    """The sentences of a message that have values."""
    text = message_text(message)
    return tuple(_sentence_contents(text, values(text, message.created_at)))


def hints_for(
    statement: str, novel: Iterable[Value], message_sentences: Iterable[tuple[int, Sequence[SentenceContent]]]
) -> Iterator[str]:
    """Values that a statement may mean, each with its message: ``#12: 3 years``.

    Args:
        statement: The statement. Values that it states already are not hinted at.
        novel: The values of the statement that were not shown.
        message_sentences: The sentences with values of each message, with the message's number.
    """
    stated = values(statement)
    forms = frozenset[str]().union(*(one.forms for one in stated))
    candidates = [(seq, sentence) for seq, sentences in message_sentences for sentence in sentences]
    for sentence in _sentence_contents(statement, stated):
        ranked = [(one.shared_count(sentence.words, forms), seq, one) for seq, one in candidates]
        ranked = sorted((one for one in ranked if one[0]), key=lambda one: -one[0])
        for value in novel:
            if value in sentence.values:
                yield from _hints_from_nearest(value, ranked, forms)


def _hints_from_nearest(
    value: Value, ranked: Iterable[tuple[int, int, SentenceContent]], forms: frozenset[str]
) -> list[str]:
    hints: dict[str, None] = {}
    best = 0
    for shared, seq, candidate in ranked:
        if shared < best or len(hints) >= _MAX_HINTS:
            break
        likely = (one for one in candidate.values if _is_confusable(one, value) and one.forms.isdisjoint(forms))
        hints.update(dict.fromkeys(f"#{seq}: {one.text}" for one in likely))
        best = shared if hints else 0
    return list(hints)[:_MAX_HINTS]


def _sentence_contents(text: str, text_values: Iterable[Value]) -> Iterator[SentenceContent]:
    spans = sentence_spans(text)
    starts = [start for start, _ in spans]
    values_by_sentence: defaultdict[int, list[Value]] = defaultdict(list)
    for value in text_values:
        values_by_sentence[bisect_right(starts, value.start) - 1].append(value)
    for index, sentence_values in values_by_sentence.items():
        start, end = spans[index]
        yield SentenceContent(_subject_words(text, start, end, sentence_values), tuple(sentence_values))


def _subject_words(text: str, start: int, end: int, text_values: Iterable[Value]) -> frozenset[str]:
    pieces = []
    for value in text_values:
        pieces.append(text[start : value.start])
        start = value.end
    words = content_stems(" ".join([*pieces, text[start:end]]))
    return frozenset(word for word in words if not word[0].isdigit())


def _is_confusable(one: Value, value: Value) -> bool:
    if (one.kind, one.base) != (value.kind, value.base):
        return False
    if value.kind == "identifier":
        return _without_digits(one) == _without_digits(value)
    if value.kind not in {"number", "money"} or not value.amount:
        return True
    return one.amount is not None and 1 <= _MAX_SIZE_RATIO * abs(one.amount / value.amount) <= _MAX_SIZE_RATIO**2


def _without_digits(value: Value) -> str:
    return "".join(sign for sign in value.text.casefold() if not sign.isdigit())
