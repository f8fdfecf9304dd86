"""Joins a statement and the correction right after it: "Let us stay in Alfama. No, in Graça." is one statement.

Alone, the first half is what the speaker has taken back, and the second a correction of something unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.core.text.cued import CUE_INDEX
from app.core.text.languages.joined import whole_words
from app.core.text.patterns import compiled
from app.core.text.sentences import asks

_LONGEST: Final = 60  # characters of a correction: a longer sentence says something of its own
_MOST: Final = 300  # characters of the statement and its correction together
_CORRECTS: Final = compiled(whole_words("clauses", "corrects"), re.IGNORECASE)
_BEHIND: Final = compiled(rf"(?<=[.!?…。！？])\s{{0,4}}(?={_CORRECTS.pattern})", re.IGNORECASE)
_BIT: Final = CUE_INDEX.add(_CORRECTS.pattern)
_MARKS: Final = " ,.:;!…–—-，。！：；"


def with_corrections(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places of a text's sentences, with a sentence and the correction right after it as one.

    ``spans`` are the places of the single sentences, in order.
    """
    begun: tuple[int, int] | None = None
    is_bare = False
    for start, end in spans:
        found = _CORRECTS.match(text, start, end) if begun else None
        fits = begun is not None and end - start <= _LONGEST and end - begun[0] <= _MOST and not asks(text[start:end])
        if begun and fits and (found or is_bare) and not asks(text[begun[0] : begun[1]]):
            begun = (begun[0], end)
        else:
            if begun:
                yield begun
            begun = (start, end)
        is_bare = found is not None and not text[found.end() : end].strip(_MARKS)
    if begun:
        yield begun


def correction_in(text: str) -> str:
    """The correction within a statement; empty if there is none."""
    found = _BEHIND.search(text) if CUE_INDEX.may_match_text(text) & _BIT else None
    return text[found.end() :] if found else ""
