"""What "tomorrow", "next Friday", "через две недели" mean, seen from the day of their message.

Where a word leaves it open (Friday: the coming one or the last), all that it may mean is given: a summary that names
any of them is believed, one that names another day is not.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Final

from app.core.text.canonical.calendar import NEAR, WEEKDAYS
from app.core.text.canonical.dates import day_forms
from app.core.text.canonical.number_words import HAN_SIGNS, WORDS, read_han, read_words
from app.core.text.patterns import compiled

_WEEK: Final = 7
HAN_FROM: Final = "\u3000"
_DAY_WORDS: Final = "|".join(sorted((word for word in NEAR if word[0] < HAN_FROM), key=len, reverse=True))
_LONG_WEEKDAYS: Final = "|".join(sorted((word for word in WEEKDAYS if len(word) > 1), key=len, reverse=True))
_COUNT: Final = (
    rf"(?:\d{{1,3}}|[{HAN_SIGNS}]{{1,3}}|an?|couple of|a couple of|few|"
    rf"(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})(?![^\W\d_])|пару|полтора)"
)
_SPAN: Final = (
    r"(?P<{0}>days?|weeks?|fortnights?|months?|years?|nights?|дн(?:я|ей|ю|и)|день|недел[юиья]|недель|месяц(?:а|ев)?|год(?:а)?|лет|сутки"
    r"|tage?n?|wochen?|monate?n?|jahre?n?)(?![^\W\d_])"
)
_RELATIVE: Final = compiled(
    rf"(?<![^\W\d_])(?:(?P<nearest>(?:the day (?:after|before) )?(?:{_DAY_WORDS})(?![a-zа-яё]))"
    rf"|(?:(?P<which>next|last|this|coming|past|previous|следующ\w\w\w?|прошл\w\w|эт[уоа]\w?|ближайш\w\w|nächsten?|letzten?)\s)?"
    rf"(?P<weekday>{_LONG_WEEKDAYS})(?![^\W\d_])"
    rf"|(?:in|within|after|через|спустя)\s(?:(?:about|around|roughly|etwa|примерно|около)\s)?(?:(?P<count>{_COUNT})\s)?"
    + _SPAN.format("ahead")
    + r"|(?P<one_behind>день|неделю|месяц|год)\sназад\b"
    r"|(?P<which_span>next|last|this|following|coming|past|previous|следующ\w\w\w?|прошл\w\w|эт\w\w?|этом)\s"
    r"(?P<span>week|weekend|month|year|недел[юеи]|месяц[еа]?|год[уа]?|выходные)(?![^\W\d_])"
    r"|(?:the\s|on the\s|am\s)(?P<day>\d{1,2})(?:st|nd|rd|th)\b"
    r"|(?P<end>end of (?:the |this )?month|month[- ]end|кон(?:ец|ца|цу|це) месяца))"
)
_AGO: Final = compiled(
    rf"(?<![^\W_])(?P<count_ago>{_COUNT})\s" + _SPAN.format("behind") + r"\s(?:ago|earlier|before|назад)\b"
)
_RU_DAY: Final = compiled(r"(?<!\d)(?P<day_ru>\d{1,2})-?(?:го|му|е)\b")
_HAN: Final = compiled(
    r"(?P<which_han>下|上|这|本)?(?:个)?(?:周|星期|礼拜)(?P<weekday_han>[一二三四五六日天])"
    rf"|(?P<near_han>{'|'.join(word for word in NEAR if word[0] > HAN_FROM)})"
    rf"|(?P<count_han>\d{{1,3}}|[{HAN_SIGNS}]{{1,3}})\s?(?P<span_han>天|日|周|个星期|星期|个月|年)(?:以|之)?(?P<way_han>后|前|内)"
    r"|(?P<span_word>下周|上周|本周|这周|下个月|上个月|下月|上月|本月|明年|去年|今年|周末)"
    r"|(?<![\d月])(?P<day_han>\d{1,2})[号日](?!\d)|(?P<end_han>月底)"
)
_HAN_SIGN: Final = compiled("[天日周期拜月年号]")
_AGO_SIGN: Final = compiled(r"\b(?:ago|earlier|before|назад)\b")
_PAST: Final = ("last", "past", "previous", "прошл", "letzt", "上", "去年")
_FUTURE: Final = ("next", "coming", "following", "следующ", "ближайш", "nächst", "下", "明年")


def find_relative(text: str, at: date) -> Iterator[tuple[str, ...]]:
    """The forms that each relative date gives, in a text of small letters from a message of this day."""
    for match in _matches(text):
        days, others = _meant(match.groupdict(), at)
        yield tuple(form for day in days for form in day_forms(day)) + tuple(others)


def _matches(text: str) -> Iterator[re.Match[str]]:
    yield from _RELATIVE.finditer(text)
    yield from _RU_DAY.finditer(text)
    if _AGO_SIGN.search(text):
        yield from _AGO.finditer(text)
    if _HAN_SIGN.search(text):
        yield from _HAN.finditer(text)


def _meant(found: Mapping[str, str | None], at: date) -> tuple[list[date], list[str]]:
    """The days that are meant, and forms of what is longer than a day."""
    if (days := _counted_days(found, at)) is not None:
        return days, []
    if span := found.get("span") or found.get("span_word"):
        return _spans(at, found.get("which_span") or span, span)
    if day := found.get("day") or found.get("day_ru") or found.get("day_han"):
        return _days_of_month(at, int(day)), []
    return [_end_of_month(at)], []


def _counted_days(found: Mapping[str, str | None], at: date) -> list[date] | None:
    """Days that are told by their distance from now or by their weekday; ``None`` when they are told otherwise."""
    if near := found.get("nearest") or found.get("near_han"):
        return [at + timedelta(days=_near_days(near))]
    if weekday := found.get("weekday") or found.get("weekday_han"):
        return _weekdays(at, WEEKDAYS[weekday], found.get("which") or found.get("which_han") or "")
    if span := found.get("ahead"):
        return _moved(at, _count(found["count"]), span)
    if span := found.get("behind") or found.get("one_behind"):
        return _moved(at, -_count(found.get("count_ago")), span)
    if span := found.get("span_han"):
        count = _count(found["count_han"])
        return _moved(at, -count if found["way_han"] == "前" else count, span)
    return None


def _near_days(word: str) -> int:
    if word.startswith("the day"):
        return 2 if "after" in word else -2
    return NEAR[word]


def _weekdays(at: date, weekday: int, which: str) -> list[date]:
    coming = at + timedelta(days=(weekday - at.weekday()) % _WEEK)
    after, before = coming + timedelta(days=_WEEK), coming - timedelta(days=_WEEK)
    if which.startswith(_PAST):
        return [before, before - timedelta(days=_WEEK)]
    if which.startswith(_FUTURE):
        return [coming, after] if coming > at else [after]
    return [before, coming, *([after] if coming == at else [])]


def _moved(at: date, count: float, span: str) -> list[date]:
    if span.startswith(("month", "месяц", "monat", "个月")):
        return [_months(at, round(count))]
    if span.startswith(("year", "год", "лет", "jahr", "年")):
        return [_months(at, round(12 * count))]
    length = (
        14
        if span.startswith("fortnight")
        else _WEEK
        if span.startswith(("week", "недел", "woche", "周", "星", "个星"))
        else 1
    )
    try:
        return [at + timedelta(days=round(count * length))]
    except OverflowError:
        return []


def _months(at: date, count: int) -> date:
    year, month = divmod(at.year * 12 + at.month - 1 + count, 12)
    year = min(max(year, 1), 9999)
    return date(year, month + 1, min(at.day, monthrange(year, month + 1)[1]))


def _count(text: str | None) -> float:
    if not text or text in {"a", "an"}:
        return 1
    if text.isdigit():
        return int(text)
    if text in {"couple of", "a couple of", "пару"}:
        return 2
    if text == "few":
        return 3
    return (read_words(text) if text in WORDS else read_han(text) if text[0] in HAN_SIGNS else None) or 1


def _spans(at: date, which: str, span: str) -> tuple[list[date], list[str]]:
    step = -1 if which.startswith(_PAST) else 1 if which.startswith(_FUTURE) else 0
    if span.startswith(("month", "месяц")) or "月" in span:
        month = _months(at.replace(day=1), step)
        return [], [f"d:{month.year}-{month.month:02}", f"n:{month.year}"]
    if span.startswith(("year", "год")) or "年" in span:
        return [], [f"n:{at.year + step}"]
    monday = at - timedelta(days=at.weekday()) + timedelta(days=_WEEK * step)
    if span in {"weekend", "выходные", "周末"}:
        return [monday + timedelta(days=offset + later) for later in (0, _WEEK) for offset in (5, 6)], []
    return [monday + timedelta(days=offset) for offset in (0, 4, 6)], []


def _days_of_month(at: date, day: int) -> list[date]:
    months = (_months(at.replace(day=1), step) for step in (-1, 0, 1))
    fitting = [month.replace(day=day) for month in months if 1 <= day <= monthrange(month.year, month.month)[1]]
    return [*[each for each in fitting if each < at][-1:], *[each for each in fitting if each >= at][:1]]


def _end_of_month(at: date) -> date:
    return at.replace(day=monthrange(at.year, at.month)[1])
