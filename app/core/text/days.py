"""Reads dates of several words, and days counted from the message: "tomorrow", "in two weeks".

Functions that *add* a day add a value that the text may mean (``Cursor.add_possible``), which only counts for texts
that were shown. Those that *keep* or *state* one add a value that the text states.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import Final

from app.core.text import moments
from app.core.text.languages.combined_words import words_of
from app.core.text.moments import Day
from app.core.text.numerals import number_of_words
from app.core.text.patterns import compiled
from app.core.text.scan_results import LOOSE, TIGHT, WEEKDAY, Cursor, FoundValue, Unit
from app.core.text.spelled_numbers import spelled_number_words
from app.core.text.tables import (
    AGO,
    AHEAD,
    APPROXIMATE,
    ARTICLES,
    BEFORE_CLOCK,
    BEFORE_HOURS,
    BEFORE_MONTHS,
    CURRENCIES,
    DATE_FILL,
    DAY_DISTANCES,
    ENDS,
    LATER,
    MONTH_ENDS,
    MONTHS,
    MONTHS_AND_VERBS,
    NEXT,
    NUMBERS,
    ORDINAL_SHARES,
    ORDINALS,
    PAST,
    RANGE_WORDS,
    SCALES,
    SPANS,
    TENS,
    THIS,
    UNITS,
    WEEKDAYS,
    WORDS_AND_VERBS,
)

_GAPS_IN_DAY_LIST: Final = LOOSE - {" (", "/", " /", " | "}
_WORDS_BETWEEN_DAYS: Final = RANGE_WORDS | DATE_FILL | WEEKDAYS.keys()
_GAPS_IN_DATE: Final = LOOSE - {" ("}
"""What may stand between a day and its month: "in June (12)" has no date."""
_GAPS_AFTER_DATE: Final = frozenset({"", " ", "(", " ("})
"""What may stand between a date and its weekday: "not on 12 May, Friday is better" means another day."""
_YEAR_DIGITS: Final = 4
_TWO_ORDINALS: Final = frozenset({"、", "-", "和", ",", ", ", " - "})
_BEFORE_DAYS: Final = BEFORE_HOURS | DATE_FILL | AHEAD | {"on"}
BEFORE_TIMES: Final = BEFORE_CLOCK | BEFORE_HOURS
_BEFORE_WEEKDAYS: Final = PAST | NEXT | THIS | DATE_FILL | RANGE_WORDS | words_of("values", "before_weekdays")
_BEFORE_LENGTHS: Final = words_of("values", "before_lengths")
_OF: Final = words_of("values", "shared")
_YEAR: Final = compiled(r"(?:19|20)\d\d")
_LAST_DAY, _MAX_DAYS_IN_LIST, _MAX_FILLING_WORDS, _MAX_TOKENS_TO_DATE = 31, 4, 3, 5
_MAX_DATES_BACK: Final = 64
"""How many dates before a day without a month are looked at, since a text may have a hundred thousand."""
_DAY: Final = 86_400
_DAYS: Final = ("s", float(_DAY))
_WEEK: Final = 7
_STOP_SIGNS: Final = tuple(".,!?;")
_HOUR: Final = 3_600
_MAX_CHARACTERS_TO_MONTH: Final = 10
"""The most characters between "end" and its month: "Ende des Monats"."""


def date_at(c: Cursor, place: int) -> int:
    """Read a date that begins at a token, and return the token after it; the same token if none begins."""
    days = _day_numbers(c, place)
    if days:
        month_at = after = days[-1][2]
        while c.word(month_at) in DATE_FILL and c.near(month_at) and month_at - after < _MAX_FILLING_WORDS:
            month_at += 1
        month = MONTHS.get(c.word(month_at), 0) if c.near(month_at, _GAPS_IN_DATE) else 0
        if month and not _is_verb(c, month_at):
            return _state_days_of_month(c, place, month_at + 1, month, days)
        if month and c.at:  # "21 march"
            c.add_possible(
                place, [form for day, *_ in days for form in moments.possible_forms((None, month, day), c.at)]
            )
    if c.word(place) in NUMBERS:
        _add_counted_day(c, place)
    if c.word(place) not in MONTHS:
        return _day_alone(c, place)
    month = MONTHS[c.word(place)]
    first = place + 1 + (c.word(place + 1) == "the")
    days = _day_numbers(c, first) if c.near(first, _GAPS_IN_DATE) and not _is_verb(c, place) else []
    if c.kind(first) == "w" and c.near(first):
        _add_counted_day_after_month(c, first, month)
    if days and not _has_unit_behind(c, days[-1][2]):
        return _state_days_of_month(c, place, days[-1][2], month, days)
    return _month_alone(c, place, month)


def _add_counted_day(c: Cursor, place: int) -> None:
    """Add the day that is written as a number in words: "le trente juin", "el quince de julio"."""
    number_words, after = spelled_number_words(c, place) if c.all_readings else ([], place)
    after += c.word(after) in DATE_FILL
    if number_words and c.near(after) and not _is_verb(c, after):
        _add_day(c, place, MONTHS.get(c.word(after), 0), number_of_words(number_words))


def _add_counted_day_after_month(c: Cursor, place: int, month: int) -> None:
    """Add the same if the month stands first: 오월 십육일."""
    number_words, after = spelled_number_words(c, place) if c.all_readings else ([], place)
    if number_words and UNITS.get(c.word(after)) == _DAYS and not c.gap(after):
        _add_day(c, place, month, number_of_words(number_words))


def _add_day(c: Cursor, place: int, month: int, number: float) -> None:
    one = (None, month, int(number))
    if month and number in range(1, _LAST_DAY + 1) and moments.is_day(one):
        c.add_possible(place, moments.possible_forms(one, c.at))


def keep_date(c: Cursor, first: int, after: int, days: list[Day]) -> None:
    """Keep a date that may mean any of these days.

    If the text gives it a wrong weekday, the date counts as shown only by a text in the same words.
    """
    weekday_at = first - 1 - (c.word(first - 1) in DATE_FILL)
    if not c.all_readings and _is_another_weekday(c, weekday_at, days):
        c.add("date", first, after, {f"s:{c.text[c.tokens[weekday_at].start : c.tokens[after - 1].end]}"})
        return
    possible = [day for day in days if moments.is_day(day)]
    forms = {
        form
        for day in possible
        for form in (moments.possible_forms(day, c.at) if c.all_readings else moments.claimed_forms(day))
    }
    parts = c.tokens[first].text.split("/")
    if len(parts) == 3 and len(parts[2]) == 2:  # noqa: PLR2004 - they may be three numbers: "12/14/16 mm"
        numbers = [f"n:{int(part)}" for part in parts]
        forms |= set(numbers) if c.all_readings else {"&".join(numbers)}
    if forms:
        c.add("date", first, after, forms, is_stated=any(day[0] or day[2] for day in possible))


def _is_another_weekday(c: Cursor, place: int, days: list[Day]) -> bool:
    """Whether a weekday at this token stands before a date that falls on it in no reading."""
    word = c.word(place)
    if not _names_weekday(c, place) or not c.near(place + 1, _GAPS_IN_DATE):
        return False
    dates = [moments.date_or_none(year, month, number) for year, month, number in days if year and month and number]
    return bool(dates) and all(day is not None and day.weekday() != WEEKDAYS[word] for day in dates)


def named_days(c: Cursor) -> Iterator[Day]:
    """The dates in a text, and years, months and days of the month that it names alone: "May", "the 12th", "2026"."""
    for place, token in enumerate(c.tokens):
        word, number = c.word(place), 0 if _is_amount(c, place) else _day_number(c, place)[0]
        if token.kind == "d":
            yield from filter(moments.is_day, token.data)
        elif word in MONTHS and (word not in WORDS_AND_VERBS or c.is_capital(place) or _is_dated_month(c, place)):
            yield None, MONTHS[word], None
        elif token.kind == "n" and _YEAR.fullmatch(token.text):
            yield int(token.text), None, None
        elif token.kind in {"n", "o"} and number:
            yield None, None, number


def _is_dated_month(c: Cursor, place: int) -> bool:
    before = c.kind(place - 1 - (c.word(place - 1) in DATE_FILL)) if c.near(place) else ""
    behind = c.kind(place + 1) if c.near(place + 1) else ""
    return c.before(place) in BEFORE_MONTHS or not {"n", "o"}.isdisjoint((before, behind))


def add_relative_days(c: Cursor, place: int) -> int:
    """Add the days that "tomorrow", "next Friday", "end of the month" mean, and return the same token again."""
    at, word = c.at, c.word(place)
    if not c.all_readings or at is None or not word:
        return place
    before = c.before(place)
    step = -1 if before in PAST else 1 if before in NEXT else 0 if before in THIS else None
    both = c.text[c.tokens[place - 1].start : c.tokens[place].end] if place else ""  # "avant-hier", "pasado mañana"
    for name in (word, both):
        if name in DAY_DISTANCES:
            c.add_possible(place, moments.forms_of_dates(moments.days_at_distance(at, DAY_DISTANCES[name] * _DAY, "s")))
    following = c.word(place + 1) if c.near(place + 1) else ""
    is_named = word not in WORDS_AND_VERBS or c.is_capital(place) or before in _BEFORE_WEEKDAYS
    is_named = is_named or c.gap(place + 1)[:1] in _STOP_SIGNS
    if word in WEEKDAYS and (is_named or c.kind(place + 1) in {"n", "t"} or following in BEFORE_HOURS):
        c.add_possible(place, moments.forms_of_dates(moments.days_of_weekday(at, WEEKDAYS[word], step)), WEEKDAY)
        if not has_own_date(c, place):
            c.weekdays[place] = WEEKDAYS[word]
    elif word in SPANS and (step is not None or SPANS[word] == "weekend"):
        c.add_possible(place, moments.forms_of_span(at, step or 0, SPANS[word]), WEEKDAY)
    is_end = SPANS.get(word) == "month" and ENDS & {
        c.word(place - 1),
        c.word(place - 2),
        c.word(place - 3),
    }
    if word in MONTH_ENDS or (is_end and len(c.gap(place)) < _MAX_CHARACTERS_TO_MONTH):
        c.add_possible(place, moments.forms_of_dates([moments.month_end(at)]))
    return place


def add_days_of_weekdays(c: Cursor) -> None:
    """Add the days that weekdays may mean, counted from the dates in the same text: "sat 3 Oct is bad, rather fri"."""
    dates = (one for one in c.found if one.kind == "date" and (one.is_stated or _has_digit(c, one)))
    first_dates = list(islice(dates, _MAX_DAYS_IN_LIST))
    days = {day: one.end for one in first_dates for form in one.forms if (day := moments.day_in(form))}
    for place, weekday in islice(c.weekdays.items(), _MAX_DAYS_IN_LIST):
        for day, end in sorted(days.items()):
            ahead = (weekday - day.weekday() - 1) % _WEEK + 1
            # A weekday directly behind a date that is such a day means this day, and not those a week before and after.
            is_same = ahead == _WEEK and 0 <= c.tokens[place].start - end <= len(", ")
            # A date may be the last one of the calendar, which many systems write for "without an end".
            distances = (0,) if is_same else (ahead * _DAY, (ahead - _WEEK) * _DAY)
            near = [one for distance in distances for one in moments.days_at_distance(day, distance, "s")]
            c.add_possible(place, moments.forms_of_dates(near), WEEKDAY)


def has_own_date(c: Cursor, place: int) -> bool:
    """Whether a weekday stands beside its own date: "Saturday, 12 May", "Monday May 3", "12 May (Saturday)"."""
    if c.gap(place) in _GAPS_AFTER_DATE:
        is_year = c.kind(place - 1) == "n" and len(c.tokens[place - 1].text) == _YEAR_DIGITS
        if c.kind(place - 1) in {"d", "o"} or c.word(place - 1 - is_year) in MONTHS:
            return True
    words = [c.word(at) for at in range(place + 1, place + _MAX_TOKENS_TO_DATE) if c.near(at, _GAPS_IN_DAY_LIST)]
    return c.kind(place + 1) == "d" or any(word in MONTHS for word in words)


def _has_digit(c: Cursor, found: FoundValue) -> bool:
    return any(map(str.isdigit, c.text[found.start : found.end]))


def add_distant_days(c: Cursor, first: int, after: int, count: float, unit: Unit) -> None:
    """Add the day that a length of time leads to: "in two weeks", "vor drei Tagen", "2 дня назад"."""
    base, factor = unit
    if not c.all_readings or c.at is None or base not in {"s", "mo"} or (base == "s" and factor < _HOUR):
        return
    words = {c.word(first - 1), c.word(first - 2) if c.word(first - 1) in APPROXIMATE else ""}
    following = c.word(after) if c.near(after) else ""
    ways = {1: words & AHEAD or following in LATER, -1: following in AGO or words & _BEFORE_LENGTHS}
    days = [
        day
        for way, is_meant in ways.items()
        if is_meant
        for day in moments.days_at_distance(c.at, way * count * factor, base)
    ]
    c.add_possible(first, moments.forms_of_dates(days))


def forms_of_eight_digits(digits: str) -> Iterator[str]:
    """The forms of the day that eight digits name: "20260403"."""
    if len(digits) == 8 and digits.isdecimal() and digits[:2] in {"19", "20"}:  # noqa: PLR2004
        day = (int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        if moments.is_day(day):
            yield from moments.possible_forms(day, None)


def short_day_and_time_forms(digits: str) -> frozenset[str]:
    """The forms of the day and the time that a number may also be: "12.9", "19.01", "14.30"."""
    first, _, second = digits.partition(".")
    if not (first.isdecimal() and second.isdecimal() and len(digits) <= 5):  # noqa: PLR2004
        return frozenset()
    day = (None, int(second), int(first))
    forms = moments.claimed_forms(day) if moments.is_day(day) else frozenset()
    return forms | (moments.time_forms(int(first), int(second), "") if len(second) > 1 else frozenset())


def names_day(c: Cursor, place: int) -> bool:
    """Whether digits are written like a day and are not an amount: "am 26.2", "am 26.", "le 22"."""
    end = c.tokens[place].end
    return (c.word(place - 1) in DATE_FILL or c.text[end : end + 1] == ".") and not _is_amount(c, place)


def is_near_last_date(c: Cursor, place: int) -> bool:
    """Whether a number stands shortly behind a date, so that it may be another day of its month: "12 May, not 14".

    What a word follows is counted rather: "12 May, 14 people".
    """
    end = c.tokens[place].end
    is_count = c.text[end : end + 1] == " " and c.text[end + 1 : end + 2].isalpha()
    return bool(c.dates) and not is_count and 0 <= c.tokens[place].start - c.dates[-1].end <= _MAX_CHARACTERS_TO_MONTH


def forms_of_bare_day(digits: str, found: FoundValue, month: int) -> frozenset[str]:
    """The forms that a number without a unit claims if it is a day of that month; none if it cannot be one."""
    is_bare = found.kind == "number" and found.unit is None and found.scale == 1 and len(digits) < _YEAR_DIGITS
    day = (None, month, int(digits)) if is_bare and digits.isdecimal() else None
    return moments.claimed_forms(day) if day and moments.is_day(day) else frozenset()


def forms_in_month_of_last_date(c: Cursor, day: int) -> frozenset[str]:
    """The forms that a day without a month claims in the month of the date before it: "on 15 May, not on the 22nd"."""
    dates = (form for one in c.dates[: -_MAX_DATES_BACK - 1 : -1] for form in sorted(one.forms))
    last = next(
        (form_day for form in dates if (form_day := moments.day_in(form) or moments.day_of_year_in(form))), None
    )
    is_day = last is not None and moments.is_day((None, last.month, day))
    return moments.claimed_forms((None, last.month, day)) if last and is_day else frozenset()


def forms_of_first_day(number: float, last: str) -> frozenset[str]:
    """The forms of a day whose month follows only after the second day: the 17 in "17–24.01"."""
    first, _, month = last.partition(".")
    if not (first.isdecimal() and month.isdecimal() and len(last) <= 5 and number == int(number)):  # noqa: PLR2004
        return frozenset()
    day = (None, int(month), int(number))
    return moments.claimed_forms(day) if 1 <= number <= _LAST_DAY and moments.is_day(day) else frozenset()


def _is_verb(c: Cursor, place: int) -> bool:
    is_plain = c.all_readings and c.kind(place + 1) == "n" and c.gap(place + 1) == " "  # "may 3"
    return _may_be_verb(c, place) and not is_plain


def _may_be_verb(c: Cursor, place: int) -> bool:
    return c.word(place) in MONTHS_AND_VERBS and not c.is_capital(place)


def _month_alone(c: Cursor, place: int, month: int) -> int:
    """Read a month without a day: "September 2026" is a stated value, "in September" only a possible one."""
    word = c.word(place)
    _add_days_before(c, place, month)
    year, after = _year_behind(c, place + 1)
    is_plain = word not in WORDS_AND_VERBS
    if year and not _is_verb(c, place):
        keep_date(c, place, after, [(year, month, None)])
        return after
    is_named = c.word(place - 1) in BEFORE_MONTHS and c.gap(place) == " "
    if c.at and (is_plain or is_named):
        c.add_possible(place, moments.possible_forms((None, month, None), c.at))
        if ENDS & {c.word(place - 1), c.word(place - 2)}:
            ends = [moments.month_end(date(c.at.year + step, month, 1)) for step in (0, 1)]
            c.add_possible(place, moments.forms_of_dates(ends))
    return place + 1 if is_plain and word not in UNITS else place


def _state_days_of_month(c: Cursor, first: int, after: int, month: int, days: list[tuple[int, int, int]]) -> int:
    year, last = _year_behind(c, after)
    _add_days_before(c, first, month)
    _state_day_before(c, first, month)
    is_verb = _may_be_verb(c, first) or _may_be_verb(c, after - 1)
    if year and is_verb:
        c.add_possible(last - 1, [f"n:{year}"], "number")
    for number, (day, start, end) in enumerate(days):
        is_last = number == len(days) - 1
        # Only the day next to the month includes the month's text.
        keep_date(c, start if number else first, last if is_last else end, [(year, month, day)])
        if not is_last or is_verb:  # it may not be a day: "Main Street 27, 8–15 August", "it may 12 times"
            c.add_possible(start, [f"n:{day}"], "number")
    return last


def _add_days_before(c: Cursor, place: int, month: int) -> None:
    """Add the days that numbers shortly before a date or a month may mean: "18/19 April", "on 18 or 19 April"."""
    for number_at in range(place - 1, max(place - _MAX_DAYS_IN_LIST, -1), -1):
        token = c.tokens[number_at]
        is_far = c.tokens[place].start - token.end > _MAX_CHARACTERS_TO_MONTH
        if not c.all_readings or is_far or c.word(number_at) in MONTHS:
            return
        for digits in token.text.split("/"):
            one = (None, month, int(digits)) if digits.isdecimal() and len(digits) < _YEAR_DIGITS else None
            if one and moments.is_day(one):
                c.add_possible(number_at, moments.possible_forms(one, c.at))


def _state_day_before(c: Cursor, place: int, month: int) -> None:
    # A statement's number shortly before a date may be a day too: «с 27 на 25 февраля», "vom 27. auf den 25. Februar".
    previous = c.found[-1] if c.found and not c.all_readings else None
    if previous and c.tokens[place].start - previous.end <= _MAX_CHARACTERS_TO_MONTH:
        previous.forms |= forms_of_bare_day(c.text[previous.start : previous.end], previous, month)


def _day_numbers(c: Cursor, place: int) -> list[tuple[int, int, int]]:
    """Consecutive days ("1", "1st to the 3rd", "с первого по десятое"), each with its token and the token after it."""
    days: list[tuple[int, int, int]] = []
    while len(days) < _MAX_DAYS_IN_LIST:
        day, after = _day_number(c, place)
        if not day or _is_amount(c, place):
            break
        days.append((day, place, after))
        place = after
        while (
            c.word(place) in _WORDS_BETWEEN_DAYS
            and c.near(place, _GAPS_IN_DAY_LIST)
            and place - after < _MAX_FILLING_WORDS
        ):
            place += 1
        if not c.near(place, _GAPS_IN_DAY_LIST):
            break
    return days


def _day_number(c: Cursor, place: int) -> tuple[int, int]:
    token = c.tokens[place] if place < len(c.tokens) else None
    if token is None:
        return 0, place
    number, after = 0, place + 1
    if token.kind == "o":
        number = token.data
    elif token.kind == "n" and token.text.isdecimal() and len(token.text) <= 2:  # noqa: PLR2004
        number = int(token.text)
    elif token.text in TENS and c.word(after) in ORDINALS and c.near(after):
        number, after = TENS[token.text] + ORDINALS[c.word(after)], after + 1
    elif token.kind == "w" and not (token.text in ORDINAL_SHARES and c.before(place) in ARTICLES):
        number = ORDINALS.get(token.text, 0)
    return (number, after) if number and 1 <= number <= _LAST_DAY else (0, place)


def _year_behind(c: Cursor, place: int) -> tuple[int | None, int]:
    token = c.tokens[place] if c.kind(place) in {"n", "o"} and c.near(place, LOOSE) else None
    text = "" if token is None else str(token.data) if token.kind == "o" else token.text
    if len(text) == 4 and text.isdecimal() and text[0] in "12" and not _is_amount(c, place):  # noqa: PLR2004
        return int(text), place + 1
    return None, place


def _day_alone(c: Cursor, place: int) -> int:
    """Read ordinals alone, "am 12.", "12.9.", "on 3/8". They may be days or other numbers: only possible values."""
    token = c.tokens[place]
    if c.all_readings and token.kind == "f" and "/" in token.text:
        _add_slashed_day(c, place)
    elif c.all_readings and token.kind == "n" and "." in token.text:
        first, _, second = token.text.partition(".")
        if short_day_and_time_forms(token.text) and moments.is_day((None, int(second), int(first))):
            before = c.small(place - 1) if c.gap(place) == "-" and c.kind(place - 1) == "n" else 0
            written_days = [(None, int(second), number) for number in (int(first), before) if number]
            c.add_possible(
                place,
                [form for day in written_days if moments.is_day(day) for form in moments.possible_forms(day, c.at)],
            )
    number, _ = _day_number(c, place)
    is_alone = c.word(place - 1) in DATE_FILL and not _is_amount(c, place)
    is_day = token.kind != "n" or is_alone or c.text[token.end : token.end + 1] == "."
    is_first_of_two = c.kind(place + 1) == "o" and c.gap(place + 1) in _TWO_ORDINALS
    weekday = weekday_of_day(c, place) if c.all_readings else None
    if weekday is not None:
        days = [day for day in moments.days_of_month(c.at, number) if day.weekday() == weekday] if c.at else []
        c.add_possible(place, [moments.form_of_weekday(weekday, number), *moments.forms_of_dates(days)])
    if number and (is_day or is_first_of_two):
        days = moments.days_of_month(c.at, number) if c.at else []
        c.add_possible(place, [f"o:{number}", *moments.forms_of_dates(days)])
    elif token.kind == "o" and not number:  # a statement may say "flat 83" for «в 83-й»
        c.add_possible(place, [f"n:{token.data}"], "number")
    return place + 1 if token.kind == "o" else place


def weekday_of_day(c: Cursor, place: int) -> int | None:
    """The weekday directly before a day of the month, as in "Saturday 12"; ``None`` without one."""
    is_one = c.gap(place) == " " and _day_number(c, place)[0] and not _is_amount(c, place)
    if not is_one or not (c.all_readings or _names_weekday(c, place - 1)):  # "so 28 are left"
        return None
    return WEEKDAYS.get(c.word(place - 1))


def _names_weekday(c: Cursor, place: int) -> bool:
    word = c.word(place)
    return word in WEEKDAYS and (word not in WORDS_AND_VERBS or c.is_capital(place))


def _is_amount(c: Cursor, place: int) -> bool:
    after = place + 1
    if c.near(after, TIGHT) and (c.word(after) in SCALES or c.word(after) in CURRENCIES):
        return True
    unit, _ = c.unit(after) if after < len(c.tokens) else (None, after)
    return unit is not None and (unit[0] == "%" or not c.gap(after))


def _has_unit_behind(c: Cursor, after: int) -> bool:
    return after < len(c.tokens) and c.near(after) and c.unit(after)[0] is not None


def _add_slashed_day(c: Cursor, place: int) -> None:
    text, after = c.tokens[place].text, place + 1
    over, under = (int(part) for part in text.split("/"))
    is_share = len(text) == 3 and after < len(c.tokens) and (c.word(after) in _OF or c.unit(after)[0] is not None)  # noqa: PLR2004
    if not is_share or c.word(place - 1) in _BEFORE_DAYS:
        days = moments.days_of_pair(over, under)
        c.add_possible(
            place, [form for day in days if moments.is_day(day) for form in moments.possible_forms(day, c.at)]
        )
