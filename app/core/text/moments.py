"""The canonical forms of days and times of day.

``d:2026-09-12`` is a day, ``d:--09-12`` the same without its year, ``d:*-09-12`` a day whose year is unknown,
``d:2026-09`` and ``d:--09`` a month, ``o:12`` a day of an unnamed month, ``d:sat-12`` such a day that is a Saturday,
``t:17:00`` a time.

Two words have a fixed sense here. A statement *claims* forms, one of which has to be found. A text that was shown
*gives* forms: all that it may mean.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final

Day = tuple[int | None, int | None, int | None]
"""(year, month, day of the month), each ``None`` if it is not named."""
_WEEK: Final = 7
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NOON: Final = 12
YEARLESS: Final = "d:*-"
LEAP_YEAR: Final = 2024
"""A year that has every day."""
_LEAP_DAY, _LEAP_YEARS_APART = (2, 29), 8
"""Two leap years are at most eight years apart."""
_DAY_FORM, _SHORT_DAY_FORM, _TIME_FORM = len("d:2026-09-12"), len("d:--09-12"), len("t:17:00")


def date_or_none(year: int, month: int, day: int) -> date | None:
    """The date; ``None`` if there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def is_day(day: Day) -> bool:
    """Whether there is such a day or month in some year."""
    year, month, number = day
    return (
        month is not None
        and 1 <= month <= _NOON
        and (number is None or date_or_none(year or LEAP_YEAR, month, number) is not None)
    )


def claimed_forms(day: Day) -> frozenset[str]:
    """The forms that a stated day or month claims; a shown text has to give one of them."""
    year, month, number = day
    if number is None:
        return frozenset({f"d:{year}-{month:02}", f"d:--{month:02}&n:{year}"} if year else {f"d:--{month:02}"})
    if year is None:
        return frozenset({f"d:--{month:02}-{number:02}", f"d:--{month:02}&o:{number}"})
    return frozenset(
        {
            f"d:{year}-{month:02}-{number:02}",
            f"{YEARLESS}{month:02}-{number:02}&n:{year}",
            f"d:{year}-{month:02}&o:{number}",
        }
    )


def possible_forms(day: Day, at: date | None) -> Iterator[str]:
    """The forms that a day or month in a shown text gives. A missing year is that of the last or the next such day."""
    year, month, number = day
    if month is None:
        return
    if year is None and at is None:
        yield f"d:--{month:02}"
        if number:
            yield f"d:--{month:02}-{number:02}"
            yield f"{YEARLESS}{month:02}-{number:02}"
        return
    for each in [year] if year else _years(month, number or 1, at):
        yield from (f"d:{each}-{month:02}", f"d:--{month:02}", f"n:{each}")
        if number:
            yield from (f"d:{each}-{month:02}-{number:02}", f"d:--{month:02}-{number:02}")
        if number and (known_day := date_or_none(each, month, number)):
            yield form_of_weekday(known_day.weekday(), number)


def days_of_pair(one: int, other: int) -> tuple[Day, Day]:
    """The two days that "28/05" or "05/28" may mean; one of them may not exist."""
    return (None, other, one), (None, one, other)


def day_in(form: str) -> date | None:
    """The day of a form with year, month and day; ``None`` for any other form."""
    return date.fromisoformat(form[2:]) if form[:2] == "d:" and len(form) == _DAY_FORM and form[2].isdigit() else None


def is_of_day(form: str) -> bool:
    """Whether a form names one day, however incomplete its date is."""
    return form[:2] == "d:" and (form[2:5] in _WEEKDAYS or bool(day_in(form) or day_of_year_in(form)))


def day_of_year_in(form: str) -> date | None:
    """The day of a form without a year, put into a leap year; ``None`` for any other form."""
    is_one = form.startswith("d:--") and len(form) == _SHORT_DAY_FORM
    return date(LEAP_YEAR, int(form[4:6]), int(form[7:9])) if is_one else None


def minutes_in(form: str) -> int | None:
    """The minutes from midnight to the time of a form; ``None`` for any other form."""
    is_one = form[:2] == "t:" and len(form) == _TIME_FORM and form[4] == ":"
    return int(form[2:4]) * 60 + int(form[5:]) if is_one else None


def forms_of_dates(days: Iterable[date]) -> Iterator[str]:
    """The forms that known days give."""
    for day in days:
        yield from possible_forms((day.year, day.month, day.day), None)


def form_of_weekday(weekday: int, number: int) -> str:
    """The form of a weekday with a day of an unnamed month: "Saturday 12"."""
    return f"d:{_WEEKDAYS[weekday]}-{number:02}"


def _years(month: int, number: int, at: date | None) -> list[int]:
    if at is None:
        return []
    reach = _LEAP_YEARS_APART if (month, number) == _LEAP_DAY else 1
    years = range(at.year - reach, at.year + reach + 1)
    days = [day for year in years if (day := date_or_none(year, month, number))]
    past = [day.year for day in days if day < at]
    return [*past[-1:], *[day.year for day in days if day >= at][:1]]


def days_of_weekday(at: date, weekday: int, step: int | None) -> list[date]:
    """The days that a weekday may mean: the last and the next one; with a step (-1, 0, 1) also that of its week."""
    coming = at + timedelta(days=(weekday - at.weekday()) % _WEEK)
    before, after = coming - timedelta(days=_WEEK), coming + timedelta(days=_WEEK)
    if step is None:
        return [before, coming, *([after] if coming == at else [])]
    of_week = at + timedelta(days=weekday - at.weekday() + _WEEK * step)
    return {-1: [before, of_week], 0: [before, coming, of_week], 1: [coming, after, of_week]}.get(step, [of_week])


def days_at_distance(at: date, count: float, base: str) -> list[date]:
    """The day that is ``count`` seconds (base ``s``) or months (``mo``) away; empty beyond the calendar."""
    try:
        if base == "mo":
            return [month_after(at, round(count))]
        return [at + timedelta(days=round(count / 86_400))]
    except (OverflowError, ValueError):
        return []


def month_after(at: date, count: int) -> date:
    """The same day ``count`` months later, or the last day of that month if it has no such day.

    Raises:
        ValueError: The month is beyond the calendar.
    """
    year, month = divmod(at.year * _NOON + at.month - 1 + count, _NOON)
    return date(year, month + 1, min(at.day, monthrange(year, month + 1)[1]))


def forms_of_span(at: date, step: int, span: str) -> Iterator[str]:
    """The forms that "last week", "this month", "next year" give."""
    if span == "year":
        yield f"n:{at.year + step}"
        return
    if span == "month":
        month = month_after(at.replace(day=1), step)
        yield from possible_forms((month.year, month.month, None), None)
        yield from forms_of_dates([month, month_end(month)])
        return
    monday = at + timedelta(days=_WEEK * step - at.weekday())
    days = range(4, 7) if span == "weekend" else range(_WEEK)
    yield from forms_of_dates(monday + timedelta(days=offset) for offset in days)


def month_end(at: date) -> date:
    """The last day of the month of a day."""
    return at.replace(day=monthrange(at.year, at.month)[1])


def days_of_month(at: date, number: int) -> list[date]:
    """The days with this number in the month of ``at`` and in the months before and after it."""
    firsts = [month_after(at.replace(day=1), step) for step in (-1, 0, 1)]
    return [day for first in firsts if (day := date_or_none(first.year, first.month, number))]


def time_forms(hour: int, minute: int, half: str) -> frozenset[str]:
    """The forms of a time: an hour up to twelve may be in either half of the day, if none is named.

    Args:
        hour: The hour as written.
        minute: The minute of the hour.
        half: ``a`` (morning), ``p`` (afternoon), ``n`` (night), ``0`` (24-hour clock); anything else leaves it open.
    """
    if hour > 24 or minute > 59:  # noqa: PLR2004 - a length, not a time
        return frozenset({f"t:{hour}:{minute:02}"})
    if half == "p":
        hours = {hour % _NOON + _NOON}
    elif half == "a":
        hours = {hour % _NOON}
    elif half == "n":
        hours = {hour % _NOON, hour % 24, hour % _NOON + _NOON} if hour > 6 else {hour % _NOON}  # noqa: PLR2004
    else:
        hours = {hour % 24} if half == "0" or hour >= _NOON or hour == 0 else {hour, hour + _NOON}
        hours |= {0} if hour == _NOON and half != "0" else set()
    return frozenset(f"t:{each:02}:{minute:02}" for each in hours)
