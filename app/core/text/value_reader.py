"""Turns tokens into values: finds what each number, word and sign of a text means next to its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Final

from app.core.text import moments
from app.core.text.amounts import is_term, number_at
from app.core.text.days import (
    add_days_of_weekdays,
    add_relative_days,
    date_at,
    forms_of_eight_digits,
    has_own_date,
    keep_date,
    named_days,
)
from app.core.text.homographs import without_uncertain_values
from app.core.text.hours import time_at
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.plain_text import PlainText, plain_text_of
from app.core.text.scan_results import WEEKDAY, Cursor, FoundValue, Token
from app.core.text.scanner import tokens
from app.core.text.vocabulary import BEGINNINGS

_FIRST_YEAR, _LAST_YEAR = 1000, 9000
_DIGITS: Final = compiled(r"\d{1,15}")
_TOKENS: Final = 100  # bytes of all tokens, for each character of their text


@memoized(_TOKENS)
def plain_text_and_tokens(text: str) -> tuple[PlainText, Sequence[Token]]:
    """A text in plain letters, and its tokens: the same for the values that it states and for all that it may mean."""
    plain = plain_text_of(text)
    return plain, tuple(tokens(plain))


def day_of(at: datetime | None) -> date | None:
    """The day of a message; ``None`` at the ends of the calendar, where no days can be added."""
    return at.date() if at is not None and _FIRST_YEAR < at.year < _LAST_YEAR else None


def read_values(text: PlainText, pieces: Sequence[Token], at: date | None, *, all_readings: bool) -> list[FoundValue]:
    """Every value of a text, in order.

    Args:
        text: The text in plain letters.
        pieces: Its tokens.
        at: The day of its message, from which relative days are counted.
        all_readings: Whether to return all that the text may mean, instead of only the values that it states.
    """
    cursor = Cursor(
        text.text, text.cased, pieces if all_readings else without_uncertain_values(pieces), at, all_readings
    )
    place = 0
    while place < len(cursor.tokens):
        token = cursor.tokens[place]
        if token.kind in {"w", "s"} and token.text not in BEGINNINGS:
            place += 1
            continue
        place = next((after for step in _STEPS if (after := step(cursor, place)) > place), place + 1)
    if cursor.weekdays:
        add_days_of_weekdays(cursor)
    return cursor.found


def dates_named(text: str) -> tuple[moments.Day, ...]:
    """The dates in a text, and years, months and days of the month that it names alone."""
    plain, pieces = plain_text_and_tokens(text)
    return tuple(named_days(Cursor(plain.text, plain.cased, pieces, None, all_readings=False)))


def _complete(cursor: Cursor, place: int) -> int:
    """Keep a value that the scan has already recognised: an address, an identifier, a version, a written date."""
    token = cursor.tokens[place]
    if len(token.kind) == 1 and token.kind != "d":
        return place
    if token.kind == "d":
        keep_date(cursor, place, place + 1, token.data)
    elif token.kind == "weekday":
        days = moments.days_of_weekday(cursor.at, token.data[1], token.data[0]) if cursor.at else []
        cursor.add_possible(place, moments.forms_of_dates(days), WEEKDAY)
        if not has_own_date(cursor, place):
            cursor.weekdays[place] = token.data[1]
    elif token.kind == "span":
        cursor.add_possible(place, moments.forms_of_span(cursor.at, *token.data) if cursor.at else (), WEEKDAY)
    else:
        forms = [*token.data, *(_numbers_and_days_inside(token.text) if cursor.all_readings else ())]
        cursor.add(token.kind, place, place + 1, forms, is_stated=not _is_name(cursor, place))
    return place + 1


def _is_name(cursor: Cursor, place: int) -> bool:
    token = cursor.tokens[place]
    if token.kind == "path":
        return cursor.is_capital(place) and token.text.replace(".", "").isalpha()
    return token.kind in {"identifier", "version"} and is_term(cursor, place)


def _numbers_and_days_inside(text: str) -> Iterator[str]:
    network, _, host = text.rpartition(".")
    if text.count(".") == 3:  # noqa: PLR2004
        yield from (f"p:{network}", f"p:.{host}")
    for match in _DIGITS.finditer(text):
        yield f"n:{int(match.group())}"
        yield from forms_of_eight_digits(match.group())


_STEPS: Final = (_complete, date_at, time_at, add_relative_days, number_at)
