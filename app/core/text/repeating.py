"""Decides whether a text only repeats another, word for word."""

from __future__ import annotations

from typing import Final

from app.core.text.relative import undated
from app.core.text.speakers import without_speaker

_MOSTLY: Final = 0.7  # the least share of a text that the quote covers: the rest of the text would be lost
_LEAST: Final = 8  # the fewest characters of a repeated text: shorter ones are in too many texts


def is_only(text: str, quote: str) -> bool:
    """Whether a text says hardly more than the quote."""
    return repeats(text, quote) and len(plain_of(undated(quote))) >= _MOSTLY * len(plain_of(undated(text)))


def repeats(text: str, quote: str) -> bool:
    """Whether one of the two is a part of the other, apart from speaker, case and spaces."""
    one, other = plain_of(undated(text)), plain_of(undated(quote))
    return min(len(one), len(other)) >= _LEAST and (one in other or other in one)


def plain_of(text: str) -> str:
    """A text in lower case, without its speaker, its final punctuation and its line breaks."""
    return without_speaker(" ".join(text.split())).rstrip(".!?…。！？ ").casefold()
