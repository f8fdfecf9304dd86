"""All the words that a scan keeps."""

from __future__ import annotations

from typing import Final

from app.core.text import tables as t
from app.core.text.numerals import HAN_SIGNS

VOCABULARY: Final[frozenset[str]] = frozenset().union(
    t.NUMBERS, t.SCALES, t.UNITS, t.CURRENCIES, t.MONTHS, t.WEEKDAYS, t.NEAR, t.ORDINALS, t.SHARES, t.HALF_UNITS,
    t.HALF_HOURS, t.ARTICLES, t.JOINTS, t.APPROXIMATE, t.SQUARES, t.CUBES, t.NUMBERING, t.RANGE_WORDS, t.BEFORE_HOURS,
    t.BEFORE_MONTHS, t.LATE, t.EARLY, t.NIGHT, t.CLOCK, t.NAMED_HOURS, t.PAST, t.NEXT, t.THIS, t.AHEAD, t.LATER, t.AGO,
    t.DATE_FILL, t.SPANS, t.ENDS, t.MONTH_ENDS,
)  # fmt: skip
BEGINNINGS: Final[frozenset[str]] = frozenset({"ein", "quarter", "viertel", "без", "четверть"}).union(
    t.NUMBERS, t.SCALES, t.UNITS, t.MONTHS, t.WEEKDAYS, t.NEAR, t.ORDINALS, t.SHARES, t.HALF_UNITS, t.HALF_HOURS,
    t.NAMED_HOURS, t.SPANS, t.MONTH_ENDS,
)  # fmt: skip
"""Words that a value may begin with; others are only looked at beside them."""
HAN_WORDS: Final = sorted(
    (word for word in VOCABULARY if word[0] >= "\u3400" and not set(word) <= set(HAN_SIGNS)),
    key=lambda word: (-len(word), word),
)
"""Chinese words, the longest first, without mere numbers."""
NOT_HAN_NUMBERS: Final = (
    "一(?:些|下|起|直|般|样|定|点|旦|边|面|共|切|向|律|再|度|致|方|同|系列|番|口气|块|来|会|道|家人|次性|堆)"
    "|二(?:手|维|话|战)|万一|万能|千万别|三明治|十分(?![钟之])|四(?:川|处|周|季)|七夕|五(?:金|官)|百(?:度|合|货)"
    "|[零一二两三四五六七八九十百]{1,6}(?=(?:等奖|级|号线))|六一|第[零〇一二两三四五六七八九十百]{1,6}|(?:之|同|统|唯|万|专)一"
)
"""Words in which a numeral counts nothing."""
