"""Differences that a statement calls differences: "13,320 €, 1,580 less than at Kessler", "1,150 (670 more)".

One of the two amounts is often not in the sources of the statement. So it is looked for in all that was shown, but only
if words next to the value say that it is a difference ("less", "by", "leaves"). The other amount must stand near the
value in the statement. Like other calculations it counts only if few similar values are such differences as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import capped
from app.core.text.values import Value
from app.core.validation.expected_amounts import expected_amount
from app.core.validation.expected_values import AmountsBetween, CalculationBasis, ExpectedValue

MAX_MATCHING_SHARE: Final = 0.25
"""The largest share of the values similar to a value that may be such differences as well."""
_REACH: Final = 40
_MAX_OPERANDS: Final = 2
"""How many amounts of the statement before the value, and how many after it, may be operands of the difference."""


def _words(key: str, *, spaced: bool) -> str:
    return alternatives("values", key, spaced=spaced)


_WORDS_BEHIND: Final = capped(
    rf"[ \u00a0]?(?:[^\W\d_]{{1,20}}[ -]){{0,2}}(?:{_words('compared_behind', spaced=True)})\b"
    rf"|[^\W\d_]{{0,3}}(?:{_words('compared_behind', spaced=False)})",
    _REACH,
    re.IGNORECASE,
)
_WORDS_BEFORE: Final = capped(
    rf"(?:\b(?:{_words('compared_before', spaced=True)})[ \u00a0](?:[^\W\d_]{{1,12}} )?"
    rf"|(?:{_words('compared_before', spaced=False)})[^\W\d_]{{0,2}} ?)[€$£¥]?$",
    _REACH,
    re.IGNORECASE,
)


def is_stated_difference(text: str, value: Value, basis: CalculationBasis, amounts_between: AmountsBetween) -> bool:
    """Whether a value is called a difference and is one, while few similar values would be one as well.

    It is the difference of two amounts next to it, or of an amount next to it and any amount that was shown.
    """
    is_amount = value.kind in {"number", "money"} and not value.reads_as_year
    expected = expected_amount(value) if is_amount and _is_called_difference(text, value) else None
    if expected is None:
        return False
    stated_amounts = expected.comparable(basis.statement.amounts)
    before, behind = (
        [one for one in stated_amounts if one.start < value.start],
        [one for one in stated_amounts if one.start >= value.end],
    )
    adjacent = [*before[-_MAX_OPERANDS:], *behind[:_MAX_OPERANDS]]
    return _is_one_of_few(expected, expected.differences_between(adjacent)) or _is_one_of_few(
        expected, expected.differences_to_shown(before[-1:] + behind[:1], amounts_between)
    )


def _is_one_of_few(expected: ExpectedValue, results: Iterable[float]) -> bool:
    most, similar = MAX_MATCHING_SHARE * (expected.last - expected.first + 1), set[int]()
    for position in map(expected.position_of, results):
        if position is not None and expected.first <= position <= expected.last:
            similar.add(position)
            if len(similar) > most:
                return False
    return expected.position in similar


def _is_called_difference(text: str, value: Value) -> bool:
    before, behind = text[max(0, value.start - _REACH) : value.start], text[value.end : value.end + _REACH]
    return _WORDS_BEHIND.match(behind) is not None or _WORDS_BEFORE.search(before) is not None
