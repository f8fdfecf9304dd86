"""Decides whether a text only repeats another, word for word."""

from __future__ import annotations

from typing import Final

from app.core.text.relative import without_added_days
from app.core.text.speakers import without_speaker

_MIN_COVERED_SHARE: Final = 0.7  # the least share of a text that the quote covers: the rest of the text would be lost
_MIN_TEXT_LENGTH: Final = 8  # the fewest characters of a repeated text: shorter ones are in too many texts


def is_little_more_than(text: str, quote: str) -> bool:
    """Whether a text says hardly more than the quote."""
    return contain_each_other(text, quote) and len(
        normalized_text(without_added_days(quote))
    ) >= _MIN_COVERED_SHARE * len(normalized_text(without_added_days(text)))


def contain_each_other(text: str, quote: str) -> bool:
    """Whether one of the two is a part of the other, apart from speaker, case and spaces."""
    one, other = normalized_text(without_added_days(text)), normalized_text(without_added_days(quote))
    return min(len(one), len(other)) >= _MIN_TEXT_LENGTH and (one in other or other in one)


def normalized_text(text: str) -> str:
    """A text in lower case, without its speaker, its final punctuation and its line breaks."""
    return without_speaker(" ".join(text.split())).rstrip(".!?…。！？ ").casefold()
