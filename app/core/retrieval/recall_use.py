"""Estimates whether a reply used what was recalled for it: whether it has more of that than the question had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.core.text.identifiers import identifiers
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems
from app.core.validation.kept_values import is_whole_in

MIN_WORDS: Final = 3
"""The fewest content words that reply and passage must share, the question's left out: fewer can be chance."""
_MIN_VALUE_LENGTH: Final = 2  # a single sign proves nothing
_MAX_CHARACTERS: Final = 20_000  # characters of each text that are looked at
_MAX_TOTAL_CHARACTERS: Final = 60_000  # characters of all passages together that are looked at


def uses_passages(reply: str, passages: Iterable[str], *, question: str) -> bool:
    """Whether the reply shares with any passage an exact value, or three content words, that the question lacks.

    This is an estimate by code, without a model: a value that the state block has too counts as drawn from the passage.
    """
    reply, question = reply[:_MAX_CHARACTERS], question[:_MAX_CHARACTERS]
    question_stems = _rare_stems(question)
    reply_stems = _rare_stems(reply) - question_stems
    return (
        any(_uses_passage(reply, reply_stems, passage, question) for passage in _bounded_passages(passages))
        if reply
        else False
    )


def _bounded_passages(passages: Iterable[str]) -> Iterator[str]:
    left = _MAX_TOTAL_CHARACTERS
    for passage in passages:
        yield passage[: min(_MAX_CHARACTERS, left)]
        left -= min(_MAX_CHARACTERS, len(passage))
        if left <= 0:
            return


def _uses_passage(reply: str, reply_stems: frozenset[str], passage: str, question: str) -> bool:
    values = (value for value in identifiers(passage) if len(value) >= _MIN_VALUE_LENGTH)
    if any(is_whole_in(value, reply) and not is_whole_in(value, question) for value in values):
        return True
    return len(reply_stems & _rare_stems(passage)) >= MIN_WORDS


def _rare_stems(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - GENERIC_STEMS - FRAME_STEMS
