"""Whether two statements are about the same thing."""

from __future__ import annotations

from typing import Final

from app.core.text.values import Given, values
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, stems

_SHARED: Final = 0.34
"""Of the shorter statement's content words."""


def share_subject(one: str, other: str) -> bool:
    """Whether two statements share a value, or a third of the words that say what the shorter one is about."""
    given = Given()
    given.add(1, other)
    if any(given.holds(value) for value in values(one)):
        return True
    first, second = _content(one), _content(other)
    least = min(len(first), len(second))
    return bool(least) and len(first & second) >= _SHARED * least


def _content(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - FRAME_STEMS - GENERIC_STEMS
