"""Whether a text only repeats another, word for word."""

from __future__ import annotations

from typing import Final

from app.core.text.relative import undated
from app.core.text.speakers import without_speaker

_MOSTLY: Final = 0.7  # of a text that goes with what it repeats: what else it says would go too
_LEAST: Final = 8  # characters; what is shorter stands in too many texts


def is_only(text: str, quote: str) -> bool:
    """Whether a text says hardly more than the quote."""
    return repeats(text, quote) and len(plain_of(undated(quote))) >= _MOSTLY * len(plain_of(undated(text)))


def repeats(text: str, quote: str) -> bool:
    """Whether one of the two is part of the other, speaker, case and spaces aside."""
    one, other = plain_of(undated(text)), plain_of(undated(quote))
    return min(len(one), len(other)) >= _LEAST and (one in other or other in one)


def plain_of(text: str) -> str:
    """A text without its speaker, its end, its case and its line breaks."""
    return without_speaker(" ".join(text.split())).rstrip(".!?…。！？ ").casefold()
