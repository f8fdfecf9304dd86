"""Dates in a text, in several languages and ways of writing; relative ones need the moment of their message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from app.core.text.canonical.calendar import HAN_DAY, MONTHS, month_pattern
from app.core.text.canonical.number_words import ORDINALS, read_han
from app.core.text.canonical.values import Value
from app.core.text.patterns import compiled

_MONTH: Final = month_pattern()
_SUFFIX: Final = r"(?:st|nd|rd|th|\.|-?го|-?е|-?ое)?"
_NUMERIC: Final = compiled(
    r"(?:(?<![\w.-])|(?<=[\u3040-\u30ff\u3400-\u9fff]))(?P<y1>\d{4})-(?P<m1>\d{2})(?:-(?P<d1>\d{2}))?(?![\d-])"
    r"|(?<![\w./-])(?P<y2>\d{4})[/.](?P<m2>\d{1,2})[/.](?P<d2>\d{1,2})(?!\d)"
    r"|(?<![\w./-])(?P<a3>\d{1,2})(?P<separator>[./-])(?P<b3>\d{1,2})(?P=separator)(?P<y3>\d{4}|\d{2})(?![\w])"
    r"|(?<![\w./,-])(?P<a4>\d{1,2})(?P<short>[./])(?P<b4>\d{1,2})(?![\w%]|[./]\d)"
    rf"|(?<!\d)(?:(?P<d5>\d{{1,2}}){_SUFFIX}\s?(?:[-–—]|to|and|и|по|bis)\s?)?(?<!\d)(?P<e5>\d{{1,2}}){_SUFFIX}(?:\s?of|\sde)?"
    rf"\s?(?P<m5>{_MONTH})\.?(?:,?\s(?:de\s)?(?P<y5>\d{{4}})\b)?"
)
_NAMED: Final = compiled(
    rf"(?<![^\W_])(?P<m6>{_MONTH})\.?,?\s(?:(?P<y7>\d{{4}})\b|(?:the\s)?(?P<d6>\d{{1,2}})(?!\d|:|[.,]\d){_SUFFIX}"
    rf"(?:\s?[-–—]\s?(?P<e6>\d{{1,2}})(?!\d){_SUFFIX})?(?:,?\s(?P<y6>\d{{4}})\b)?)"
)
_SPELT: Final = compiled(
    rf"\b(?P<day>{'|'.join(sorted(ORDINALS, key=len, reverse=True))})\s(?:of\s)?(?P<month>{_MONTH})"
    r"(?:,?\s(?P<year>\d{4})\b)?"
)
_HAN: Final = compiled(
    rf"(?:(?P<y8>\d{{4}})\s?[年년]\s?)?(?P<m8>\d{{1,2}}|{HAN_DAY})\s?[月월]\s?(?:(?P<d8>\d{{1,2}}|{HAN_DAY})\s?[日号일])?"
    r"|(?<!\d)(?P<y9>\d{4})[年년]"
)
_HAN_SIGNS: Final = compiled("[年년月월]")
_CENTURY: Final = 50  # a two-digit year below it is of this century
_MOST_MONTHS, _MOST_DAYS = 12, 31


def find_dates(text: str, at: date | None = None) -> Iterator[Value]:
    """Dates that are written out in a text of small letters.

    Args:
        text: In small letters.
        at: The day of its message, from which a missing year follows.
    """
    for match in _SPELT.finditer(text):
        day = (_number(match["year"]), MONTHS[match["month"]], ORDINALS[match["day"]])
        yield _value(match.start(), match.end(), [day], at)
    for match in _NUMERIC.finditer(text):
        days = list(_days_of_digits(match))
        for group in [[day] for day in days] if match["d5"] else [days]:
            yield _value(match.start(), match.end(), group, at)
    for match in _NAMED.finditer(text):
        month = MONTHS[match["m6"]]
        if match["y7"]:
            yield _value(match.start(), match.end(), [(int(match["y7"]), month, None)], at)
        for number in filter(None, (match["d6"], match["e6"])):
            yield _value(match.start(), match.end(), [(_number(match["y6"]), month, int(number))], at)
    for match in _HAN.finditer(text) if _HAN_SIGNS.search(text) else ():
        days = [(_number(match["y8"] or match["y9"]), _number(match["m8"]), _number(match["d8"]))]
        yield _value(match.start(), match.end(), days, at)


Day = tuple[int | None, int | None, int | None]
"""Year, month and day of the month, as far as they are told."""


def day_forms(day: date) -> tuple[str, ...]:
    """What a known day lets others say."""
    return (
        f"d:{day.isoformat()}",
        f"d:--{day.month:02}-{day.day:02}",
        f"d:{day.year}-{day.month:02}",
        f"n:{day.year}",
    )


def with_year(month: int, day: int, at: date) -> list[date]:
    """The last and the next time that this day of the year comes, seen from ``at``; the day itself counts as next."""
    around = [made for year in range(at.year - 1, at.year + 2) if (made := made_day(year, month, day))]
    past = [made for made in around if made < at]
    return [*past[-1:], *[made for made in around if made >= at][:1]]


def made_day(year: int, month: int, day: int) -> date | None:
    """The date, ``None`` when there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _days_of_digits(match: re.Match[str]) -> Iterator[Day]:
    if match["m1"]:
        yield int(match["y1"]), int(match["m1"]), _number(match["d1"])
    elif match["y2"]:
        yield int(match["y2"]), int(match["m2"]), int(match["d2"])
    elif match["a3"]:
        year = int(match["y3"])
        year = year if year > 99 else year + (2000 if year < _CENTURY else 1900)  # noqa: PLR2004 - two digits
        yield from _either(year, match["a3"], match["b3"], match["separator"])
    elif match["a4"]:
        if match["short"] == "/" or len(match["b4"]) > 1:
            yield from _either(None, match["a4"], match["b4"], match["short"])
    else:
        for day in filter(None, (match["d5"], match["e5"])):
            yield _number(match["y5"]), MONTHS[match["m5"]], int(day)


def _either(year: int | None, first: str, second: str, separator: str) -> Iterator[Day]:
    """Day and month, or month and day where a slash or a dash leaves it open."""
    yield year, int(second), int(first)
    if separator != "." and first != second:
        yield year, int(first), int(second)


def _number(text: str | None) -> int | None:
    if not text:
        return None
    return int(text) if text.isdigit() else int(read_han(text) or 0)


def _value(start: int, end: int, days: Sequence[Day], at: date | None) -> Value:
    needs: list[str] = []
    gives: list[str] = []
    for year, month, day in days:
        if not _is_possible(month, day):
            continue
        if year and month and day:
            needs.append(f"d:{year}-{month:02}-{day:02}")
            gives += [f"d:--{month:02}-{day:02}", f"d:{year}-{month:02}"]
        elif month and day:
            needs.append(f"d:--{month:02}-{day:02}")
            resolved = with_year(month, day, at) if at else []
            gives += [form for known in resolved for form in day_forms(known)]
            gives += [] if at else [f"d:*-{month:02}-{day:02}"]
        elif year and month:
            needs.append(f"d:{year}-{month:02}")
        elif year:
            needs.append(f"n:{year}")
        gives += [f"n:{number}" for number in (year, day) if number]
    return Value(kind="date", start=start, end=end, needs=tuple(needs), gives=tuple(dict.fromkeys([*needs, *gives])))


def _is_possible(month: int | None, day: int | None) -> bool:
    return (month is None or 1 <= month <= _MOST_MONTHS) and (day is None or 1 <= day <= _MOST_DAYS)
