"""Joins a statement and the correction right after it: "Let us stay in Alfama. No, in Graça." is one statement.

Alone, the first half is what the speaker has taken back, and the second a correction of something unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.languages.combined_words import whole_words
from app.core.text.patterns import compiled
from app.core.text.sentences import asks

_MAX_CORRECTION_LENGTH: Final = 60  # characters of a correction: a longer sentence says something of its own
_MAX_LENGTH_WITH_CORRECTION: Final = 300  # characters of the statement and its correction together
_CORRECTS: Final = compiled(whole_words("clauses", "corrects"), re.IGNORECASE)
_CORRECTION_START: Final = compiled(rf"[.!?…。！？]\s{{0,4}}(?={_CORRECTS.pattern})", re.IGNORECASE)
_BIT: Final = CUE_INDEX.add(_CORRECTS.pattern)
_MARKS: Final = " ,.:;!…–—-，。！：；"


def with_corrections(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places of a text's sentences, with a sentence and the correction right after it as one.

    ``spans`` are the places of the single sentences, in order.
    """
    open_span: tuple[int, int] | None = None
    is_bare = False
    for start, end in spans:
        is_long = end - start > _MAX_LENGTH_WITH_CORRECTION  # so it is looked up for nothing else either
        may_correct = open_span and (is_long or CUE_INDEX.may_match_text(text[start:end]) & _BIT)
        found = _CORRECTS.match(text, start, end) if may_correct else None
        fits = (
            open_span is not None
            and end - start <= _MAX_CORRECTION_LENGTH
            and end - open_span[0] <= _MAX_LENGTH_WITH_CORRECTION
            and not asks(text[start:end])
        )
        if open_span and fits and (found or is_bare) and not asks(text[open_span[0] : open_span[1]]):
            open_span = (open_span[0], end)
        else:
            if open_span:
                yield open_span
            open_span = (start, end)
        is_bare = found is not None and not text[found.end() : end].strip(_MARKS)
    if open_span:
        yield open_span


def correction_in(text: str) -> str:
    """The correction within a statement; empty if there is none."""
    found = _CORRECTION_START.search(text) if CUE_INDEX.may_match_text(text) & _BIT else None
    return text[found.end() :] if found else ""
