"""The vocabulary of the scan: every word that it keeps as a token."""

from __future__ import annotations

from typing import Final

from app.core.text import tables as t
from app.core.text.languages.combined_words import alternatives, words_of
from app.core.text.numerals import HAN_SIGNS

VOCABULARY: Final[frozenset[str]] = frozenset().union(
    t.NUMBERS, t.SCALES, t.UNITS, t.CURRENCIES, t.MONTHS, t.WEEKDAYS, t.DAY_DISTANCES, t.ORDINALS, t.SHARES,
    t.HALF_UNITS, t.HALF_HOURS, t.ARTICLES, t.JOINTS, t.APPROXIMATE, t.SQUARES, t.CUBES, t.NUMBERING, t.RANGE_WORDS,
    t.BEFORE_HOURS, t.BEFORE_MONTHS, t.LATE, t.EARLY, t.NIGHT, t.CLOCK, t.NAMED_HOURS, t.PAST, t.NEXT, t.THIS, t.AHEAD,
    t.LATER, t.AGO, t.DATE_FILL, t.SPANS, t.ENDS, t.MONTH_ENDS, words_of("values", "before_weekdays"),
    words_of("values", "shared"), t.TEN_JOINTS, t.HUNDRED_JOINTS, t.BEFORE_CLOCK, t.HOUR_WORDS, t.PAST_HOUR, t.TO_HOUR,
    t.QUARTERS, t.HALF_BEFORE, t.HOUR_JOINTS, t.MINUTES_PAST, t.MINUTES_TO, t.MINUTES_BEFORE, t.PAST_BEHIND,
    t.TO_BEHIND, t.HALF_PAST, t.POINTS, *(phrase.split(" ") for phrase in (*t.NUMBERS, *t.UNITS, *t.AND_MORE)),
)  # fmt: skip
SCANNED: Final = VOCABULARY | t.HOMOGRAPHS.keys()
"""The vocabulary, and words that may be left out again once their language is known."""
BEGINNINGS: Final[frozenset[str]] = words_of("values", "beginnings").union(
    t.NUMBERS, t.SCALES, t.UNITS, t.MONTHS, t.WEEKDAYS, t.DAY_DISTANCES, t.ORDINALS, t.SHARES, t.HALF_UNITS,
    t.HALF_HOURS, t.NAMED_HOURS, t.SPANS, t.MONTH_ENDS, t.MINUTES_BEFORE,
)  # fmt: skip
"""Words with which a value may begin; other words are only looked at next to them."""
HAN_WORDS: Final = sorted(
    (word for word in VOCABULARY if "\u3040" <= word[0] < "\uac00" and not set(word) <= set(HAN_SIGNS)),
    key=lambda word: (-len(word), word),
)
"""Chinese and Japanese words, the longest first, without plain numbers."""
NOT_HAN_NUMBERS: Final = alternatives("values", "no_numbers")
"""Words in which a numeral is not a number."""
