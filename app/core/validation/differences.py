"""Differences that a statement calls differences: "13,320 €, 1,580 less than at Kessler", "1,150 (670 more)".

One of the two amounts is often not in the sources of the statement. So it is looked for in all that was shown, but only
if words beside the value say that it is a difference ("less", "by", "leaves"). The other amount must stand near the
value in the statement. Like other calculations it counts only if few similar values are such differences as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.core.text.languages.joined import alternatives
from app.core.text.patterns import capped
from app.core.text.values import Value
from app.core.validation.expected_amounts import expected_amount
from app.core.validation.expected_values import AmountsBetween, Basis, Expected

CHANCE: Final = 0.25
"""The largest share of the values similar to a value that may be such differences as well."""
_REACH: Final = 40
_MOST_TOLD: Final = 2
"""How many amounts of the statement before the value, and how many after it, may be operands of the difference."""


def _words(key: str, *, spaced: bool) -> str:
    return alternatives("values", key, spaced=spaced)


_BEHIND: Final = capped(
    rf"[ \u00a0]?(?:[^\W\d_]{{1,20}}[ -]){{0,2}}(?:{_words('compared_behind', spaced=True)})\b"
    rf"|[^\W\d_]{{0,3}}(?:{_words('compared_behind', spaced=False)})",
    _REACH,
    re.IGNORECASE,
)
_BEFORE: Final = capped(
    rf"(?:\b(?:{_words('compared_before', spaced=True)})[ \u00a0](?:[^\W\d_]{{1,12}} )?"
    rf"|(?:{_words('compared_before', spaced=False)})[^\W\d_]{{0,2}} ?)[€$£¥]?$",
    _REACH,
    re.IGNORECASE,
)


def differs_as_told(text: str, value: Value, basis: Basis, shown: AmountsBetween) -> bool:
    """Whether a value is called a difference and is one, while few similar values would be one as well.

    It is the difference of two amounts beside it, or of an amount beside it and any amount that was shown.
    """
    is_amount = value.kind in {"number", "money"} and not value.reads_as_year
    expected = expected_amount(value) if is_amount and _is_told_as_difference(text, value) else None
    if expected is None:
        return False
    told = expected.alike(basis.statement.amounts)
    before, behind = [one for one in told if one.start < value.start], [one for one in told if one.start >= value.end]
    beside = [*before[-_MOST_TOLD:], *behind[:_MOST_TOLD]]
    return _is_one_of_few(expected, expected.differences_between(beside)) or _is_one_of_few(
        expected, expected.differences(before[-1:] + behind[:1], shown)
    )


def _is_one_of_few(expected: Expected, results: Iterable[float]) -> bool:
    most, alike = CHANCE * (expected.last - expected.first + 1), set[int]()
    for place in map(expected.place, results):
        if place is not None and expected.first <= place <= expected.last:
            alike.add(place)
            if len(alike) > most:
                return False
    return expected.at in alike


def _is_told_as_difference(text: str, value: Value) -> bool:
    before, behind = text[max(0, value.start - _REACH) : value.start], text[value.end : value.end + _REACH]
    return _BEHIND.match(behind) is not None or _BEFORE.search(before) is not None
