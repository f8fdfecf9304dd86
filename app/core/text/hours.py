"""Reads times of day: "17:00", "5 pm", "half past six", "Viertel vor neun", «без четверти девять».

A *possible* time is one that the text may mean without stating it (``Cursor.add_possible``).
"""

from __future__ import annotations

from typing import Final

from app.core.text import moments
from app.core.text.language import detect
from app.core.text.languages.combined_words import words_of
from app.core.text.numerals import plain_number
from app.core.text.patterns import compiled
from app.core.text.scan_results import Cursor
from app.core.text.spelled_numbers import number_below_sixty
from app.core.text.tables import (
    APPROXIMATE,
    ARTICLES,
    BEFORE_CLOCK,
    BEFORE_HOURS,
    CLOCK,
    CURRENCIES,
    DATE_FILL,
    DAY_DISTANCES,
    DOZENS,
    EARLY,
    HALF_BEFORE,
    HALF_HOURS,
    HALF_PAST,
    HOUR_JOINTS,
    HOUR_WORDS,
    LATE,
    LOOSE_MINUTES,
    MINUTES_BEFORE,
    MINUTES_PAST,
    MINUTES_TO,
    NAMED_HOURS,
    NIGHT,
    ONE_OR_ARTICLE,
    ORDINALS,
    PAST_BEHIND,
    PAST_HOUR,
    QUARTERS,
    RANGE_WORDS,
    SHARES,
    TENS,
    TO_BEHIND,
    TO_HOUR,
    UNITS,
)

_PARTS_OF_DAY: Final = LATE | EARLY | NIGHT
_COUNTED: Final = _PARTS_OF_DAY & UNITS.keys()
"""Parts of a day that can also be counted: "night", "дня", "晚"."""
_IN_BETWEEN: Final = CLOCK | words_of("values", "within_times")
_LENGTHS: Final = words_of("values", "hours_of_length")
"""Words of the clock that, without further signs, are as often lengths of time."""
_MINUTE_WORDS: Final = {"half": 30, **dict.fromkeys(sorted(QUARTERS), 15)}
_HALF: Final = 0.5
_AM: Final = "am"
_ONE_HOUR: Final = frozenset({"час", "часу"})
"""The words for one o'clock before "дня" or "ночи"."""
_AFTER_HOURS: Final = RANGE_WORDS | DAY_DISTANCES.keys()
"""Words that show that the number before them is an hour: "8 til", "9 tomorrow"."""
_DIGITS: Final = compiled(r"[1-9]\d{2,3}")
_DASHES: Final = frozenset({"-", " - "})
_DAY_MINUTES: Final = 1_440
_CLOCK_HOURS, _HOURS, _MINUTES, _TEN, _TWO = 12, 24, 59, 10, 2
_HOUR_MINUTES: Final = 60
_BEFORE_SHARES: Final = HOUR_WORDS | NAMED_HOURS.keys()
"""Words after which a share may be added, but not a bare number: "midi et quart", but "midi et deux desserts"."""


def time_at(c: Cursor, place: int) -> int:
    """Read a time that begins at a token, and return the token after it; the same token if none begins."""
    before = len(c.found)
    after = _time(c, place)
    for found in c.found[before:]:
        found.is_approximate = c.before(place) in APPROXIMATE
    return after


def _time(c: Cursor, place: int) -> int:
    word = c.word(place)
    if c.kind(place) == "t":
        return _written(c, place)
    if (after := _hour_first(c, place)) > place:
        return after
    if word in NAMED_HOURS:
        hour, minute = NAMED_HOURS[word]
        c.add("time", place, place + 1, {f"t:{hour:02}:{minute:02}"})
        return place + 1
    for spoken in (_minutes_past_or_to_hour, _half_of_hour, _minutes_before_hour, _minutes_behind_hour):
        hour, minutes, last = spoken(c, place)
        named = c.word(last)
        if named in NAMED_HOURS and minutes:  # "twenty to midnight"
            total = (NAMED_HOURS[named][0] * 60 + minutes) % _DAY_MINUTES
            c.add("time", place, last + 1, moments.time_forms(total // 60, total % 60, "0"))
            return last + 1
        if 1 <= hour <= _CLOCK_HOURS:
            half, after = _half_of_day(c, last + 1)
            total = (hour * 60 + minutes) % (_CLOCK_HOURS * 60)
            c.add("time", place, after, moments.time_forms(total // 60 or _CLOCK_HOURS, total % 60, half))
            # "5 to 3" may also be a range, and "yedi buçuk" seven and a half.
            is_maybe = (c.word(place + 1) == "to" and word not in _MINUTE_WORDS) or c.word(place + 1) in HALF_PAST
            return place if is_maybe else after
    return _hour(c, place)


def _hour_first(c: Cursor, place: int) -> int:
    """Read an hour with minutes after it: "huit heures trente", "8 h 30", "las ocho y media", "midi moins dix".

    With a word for hours between them it may also be a length. Without any sign of a clock the time is only possible.
    """
    is_named = c.word(place) in NAMED_HOURS
    hour, at = (NAMED_HOURS[c.word(place)][0], place + 1) if is_named else number_below_sixty(c, place)
    if at == place or hour > _HOURS:
        return place
    is_clock = is_named or c.before(place) in BEFORE_CLOCK
    is_length = c.word(at) in HOUR_WORDS and c.near(at)
    at += is_length
    minutes, after = _minutes_from(c, at)
    if after == at and (is_length or is_named):
        minutes, after = _minutes_after_hour(c, at)
    elif after == at and c.all_readings and c.kind(place) == c.kind(at) == "w":
        _add_spoken_time(c, place, hour, at)
    total = (hour * _HOUR_MINUTES + minutes) % _DAY_MINUTES
    times = moments.time_forms(total // _HOUR_MINUTES, total % _HOUR_MINUTES, "0" if is_named else "")
    if is_length and minutes >= 0:
        times |= {f"q:{plain_number(_HOUR_MINUTES * total)}|s"}
    if after > at and (is_clock or is_length):
        c.add("time", place, after, times)
        return after
    if after > at or (is_clock and not is_named):
        c.add_possible(place, times, "time")
    return place


def _add_spoken_time(c: Cursor, place: int, hour: int, at: int) -> None:
    """Add the time that two numbers in words may mean: "four thirty", "five forty pm", "sieben dreißig"."""
    minutes, after = _minutes_after_hour(c, at)
    if hour and minutes >= _TEN:
        half, _ = _half_of_day(c, after)
        c.add_possible(place, moments.time_forms(hour, minutes, half), "time")


def _minutes_from(c: Cursor, place: int) -> tuple[int, int]:
    """The minutes to add in "y media", "et quart", "menos diez", "moins le quart", and the token after them."""
    joint = c.word(place) if c.near(place) else ""
    way = 1 if joint in PAST_HOUR else -1 if joint in TO_HOUR else 0
    at = place + 1
    if not way or not c.near(at):
        return 0, place
    at += c.word(at) in ARTICLES | DATE_FILL and c.word(at + 1) in SHARES
    if c.word(at) in SHARES:
        return way * round(SHARES[c.word(at)] * _HOUR_MINUTES), at + 1
    count, after = number_below_sixty(c, at)
    is_told = count and (way < 0 or (c.kind(at) == "w" and c.word(place - 1) not in _BEFORE_SHARES))
    return (way * count, after) if is_told and (way < 0 or _counts_minutes(c, count, after)) else (0, place)


def _minutes_after_hour(c: Cursor, place: int) -> tuple[int, int]:
    count, after = number_below_sixty(c, place) if c.near(place) else (0, place)
    is_told = after > place and (c.kind(place) == "w" or len(c.tokens[place].text) == _TWO)
    return (count, after) if is_told and _counts_minutes(c, count, after) else (0, place)


def _counts_minutes(c: Cursor, count: int, after: int) -> bool:
    if after < len(c.tokens) and c.unit(after)[0] is not None:
        return _is_clock_alone(c, after)
    end = c.tokens[after - 1].end
    is_alone = not c.text[end : end + 2].strip()[:1].isalpha()
    return count >= _TEN or is_alone or (c.word(after) in DATE_FILL and c.near(after))


def _is_clock_alone(c: Cursor, place: int) -> bool:
    """Whether these are minutes of a clock, since the word for hours before them means no length: 다섯 시 사십 분."""
    words = [c.word(place - step) for step in (2, 3)]
    return UNITS.get(c.word(place), ("", 0.0)) == ("s", 60.0) and any(
        word in HOUR_WORDS - UNITS.keys() for word in words
    )


def _is_end_of_hour_range(c: Cursor, place: int) -> bool:
    if c.gap(place) in _DASHES or c.gap(place + 1) in _DASHES:
        last = place + (c.gap(place + 1) in _DASHES)
    elif c.word(place - 1) in RANGE_WORDS and c.near(place - 1) and c.near(place):
        last = place
    else:
        return False
    first = last - 1 if c.gap(last) in _DASHES else last - 2
    are_hours = all(0 < c.small(end) <= _HOURS or c.kind(end) == "t" for end in (first, last))
    return are_hours and (last + 1 == len(c.tokens) or c.unit(last + 1)[0] is None)


def _written(c: Cursor, place: int) -> int:
    hour, minute, second, half = c.tokens[place].data
    named_half, after = _half_of_day(c, place + 1)
    unit, with_unit = c.unit(after) if after < len(c.tokens) else (None, after)
    if named_half or c.before(place) in _PARTS_OF_DAY:
        half = named_half or _name_of_half(c.before(place))
    elif unit and unit[0] == "s" and second is None:  # "1:30 h"
        half, after = "h", with_unit
    forms = moments.time_forms(hour, minute, half)
    if not half and second is None:
        forms |= {f"l:{hour}:{minute:02}"}
    if c.tokens[place].text == f"{hour} {_AM}" and _is_preposition(c):
        forms |= {f"n:{hour}"}
    if second is not None:
        exact = frozenset(f"{form}:{second:02}" for form in forms)
        length = {f"q:{plain_number(hour * 3600 + minute * 60 + second)}|s"} if c.all_readings else set()
        forms = forms | exact | length if c.all_readings else exact
    if half == "h" or hour > _HOURS or minute > _MINUTES or c.all_readings:  # it is or may be a length
        lengths = {f"q:{plain_number(hour * 3600 + minute * 60)}|s", f"q:{plain_number(hour * 60 + minute)}|s"}
        numbers = (f"n:{hour}", f"n:{minute}")
        forms |= {*lengths, *(numbers if c.all_readings else ("&".join(numbers),))}
    c.add("time", place, after, forms, is_stated=half != "?")
    if (digits := _DIGITS.match(c.tokens[place].text)) is not None:  # "650pm" may be the price of a month
        c.add_possible(place, [f"n:{digits[0]}"], "number")
    return after


def _half_of_day(c: Cursor, place: int) -> tuple[str, int]:
    for after in range(place, place + 3):
        word = c.word(after) if c.near(after) else ""
        if word in _PARTS_OF_DAY and not (word == _AM and _is_preposition(c)):
            return _name_of_half(word), after + 1
        if word not in _IN_BETWEEN:
            break
    return "", place + (c.word(place) in CLOCK and c.near(place))


def _is_preposition(c: Cursor) -> bool:
    """Whether "am" is a preposition in this text's language: "zwei am Grill", "8 am Freitag"."""
    return detect(c.text) == "de"


def _name_of_half(word: str) -> str:
    return "p" if word in LATE else "n" if word in NIGHT else "a"


def _minutes_past_or_to_hour(c: Cursor, place: int) -> tuple[int, int, int]:
    word, joint = c.word(place), c.word(place + 1)
    minutes = _MINUTE_WORDS.get(word) or c.small(place)
    way = 1 if joint in MINUTES_PAST else -1 if joint in MINUTES_TO else 0
    last = place + 2 + (c.word(place + 2) in BEFORE_CLOCK)
    is_named = c.kind(place) == "w" and c.word(last) in NAMED_HOURS
    is_plain = word in _MINUTE_WORDS or joint not in LOOSE_MINUTES or is_named or c.word(last) in ORDINALS
    is_maybe = c.all_readings and joint == "to" and c.before(place) != "from"
    if not (minutes and way and (is_plain or is_maybe) and c.near(place + 1) and c.near(last)):
        return 0, 0, place
    return 0 if _has_unit(c, last + 1) else _small_hour(c, last), way * minutes, last


def _has_unit(c: Cursor, place: int) -> bool:
    is_money = c.word(place) in CURRENCIES and c.near(place)
    return is_money or (place < len(c.tokens) and c.unit(place)[0] is not None and c.word(place) not in _PARTS_OF_DAY)


def _small_hour(c: Cursor, place: int) -> int:
    """An hour up to twelve as a number, or as an ordinal, as in Slavic languages; 0 without one."""
    return c.small(place) or ORDINALS.get(c.word(place), 0)


def _half_of_hour(c: Cursor, place: int) -> tuple[int, int, int]:
    """(hour, minutes to add, last token) of a half before an hour: "halb sieben", «половина седьмого»."""
    word, last = c.word(place), place + 1
    is_joined = c.word(last) in HOUR_JOINTS and c.near(last)
    last += is_joined
    following = c.word(last)
    if word in HALF_HOURS:
        return HALF_HOURS[word], -30, place
    if not c.near(last):
        return 0, 0, place
    if (word in HALF_BEFORE or word == "dreiviertel") and c.word(place + 2) not in UNITS:
        return c.small(place + 1), -30 if word in HALF_BEFORE else -15, place + 1
    if word == "half" and c.all_readings and c.word(place + 2) not in UNITS:  # "half 12" is 12:30
        return c.small(place + 1), 30, place + 1
    is_quarter = word in QUARTERS
    if SHARES.get(word) == _HALF or is_quarter:
        is_maybe = not is_quarter and c.all_readings and c.word(place + 2) not in UNITS and following not in DOZENS
        hour = c.small(last) if is_maybe and not is_joined else 0
        return ORDINALS.get(following, hour), -45 if is_quarter else -30, last
    return 0, 0, place


def _minutes_before_hour(c: Cursor, place: int) -> tuple[int, int, int]:
    if c.word(place) not in MINUTES_BEFORE or not (c.near(place + 1) and c.near(place + 2)):
        return 0, 0, place
    minutes, last = 15 if c.word(place + 1) in QUARTERS else c.small(place + 1), place + 2
    if c.word(place + 1) in TENS and 0 < c.small(last) < _TEN and c.small(last + 1):
        minutes, last = minutes + c.small(last), last + 1
    is_hour = minutes and c.near(last) and c.kind(last) == "w"
    hour = ORDINALS.get(c.word(last), 0) if c.word(place) in LOOSE_MINUTES else _small_hour(c, last)
    return (hour if is_hour else 0), -minutes, last


def _minutes_behind_hour(c: Cursor, place: int) -> tuple[int, int, int]:
    """(hour, minutes to add, last token) of minutes after an hour: "beşe yirmi kala", "yedi buçuk"."""
    hour, at = (c.small(place), place + 1) if c.kind(place) in {"w", "n"} else (0, place)
    if not hour or not c.near(at):
        return 0, 0, place
    is_clock = c.word(at) in CLOCK
    at += is_clock
    if c.word(at) in HALF_PAST and c.near(at):
        return (hour, 30, at) if is_clock or c.all_readings else (0, 0, place)
    minutes, last = (15, at + 1) if c.word(at) in QUARTERS else number_below_sixty(c, at)
    way = 1 if c.word(last) in PAST_BEHIND else -1 if c.word(last) in TO_BEHIND else 0
    return (hour, way * minutes, last) if way and minutes and c.near(last) else (0, 0, place)


def _hour(c: Cursor, place: int) -> int:
    """Read a full hour, such as "17 Uhr", "в 8 вечера"; "at 7" is only a possible time."""
    hour, word = 0 if c.word(place) in ONE_OR_ARTICLE else c.small(place), c.word(place + 1)
    if c.word(place) in _ONE_HOUR and word in {"дня", "ночи"} and c.gap(place + 1) == " ":
        c.add("time", place, place + 2, moments.time_forms(1, 0, "p" if word == "дня" else "a"))
        return place + 2
    if not hour and c.word(place) in ORDINALS and c.before(place) in BEFORE_HOURS:
        _add_ordinal_hour(c, place)
    if c.word(place) in _ONE_HOUR and c.before(place) in BEFORE_HOURS:  # «в час»
        c.add_possible(place, moments.time_forms(1, 0, ""), "time")
    if hour > _HOURS or (hour == 0 and c.tokens[place].text not in {"0", "00"}):
        _add_four_digit_time(c, place)
        return place
    half, after = _half_of_day(c, place + 1)
    if word in _COUNTED and half:
        return _hour_or_length(c, place, half)
    if half or (word in CLOCK - _LENGTHS and c.near(place + 1)):
        minute = c.small(place + 2) if word == "uhr" and c.gap(place + 2) == " " and not half else 0
        after += minute > 0
        c.add("time", place, after, moments.time_forms(hour, minute, half))
        return after
    before = c.before(place)
    if before in BEFORE_HOURS | _PARTS_OF_DAY or (word in _AFTER_HOURS and hour) or _is_end_of_hour_range(c, place):
        half = _name_of_half(before) if before in _PARTS_OF_DAY else ""
        c.add_possible(place, moments.time_forms(hour, 0, half), "time")
    _add_hyphenated_time(c, place, hour)
    return place


def _add_ordinal_hour(c: Cursor, place: int) -> None:
    """Add the time of an hour that is an ordinal: "o siódmej trzydzieści", «о десятій ранку»."""
    minute, after = number_below_sixty(c, place + 1) if c.near(place + 1) else (0, place + 1)
    half, _ = _half_of_day(c, after)
    if (hour := ORDINALS[c.word(place)]) <= _HOURS:
        c.add_possible(place, moments.time_forms(hour, minute, half), "time")


def _hour_or_length(c: Cursor, place: int, half: str) -> int:
    forms = moments.time_forms(c.small(place), 0, half)
    # Without a word that introduces a time it may be a length: "one night".
    if c.before(place) not in BEFORE_HOURS:
        if c.all_readings:
            c.add_possible(place, forms, "time")
        return place
    base, factor = UNITS[c.word(place + 1)]
    c.add("time", place, place + 2, {*forms, f"q:{plain_number(c.small(place) * factor)}|{base}"})
    return place + 2


def _add_hyphenated_time(c: Cursor, place: int, hour: int) -> None:
    if c.gap(place + 1) == "-" and c.kind(place + 1) == "n" and len(c.tokens[place + 1].text) == _TWO:
        minute = c.tokens[place + 1].text
        if minute.isdecimal() and int(minute) <= _MINUTES:
            c.add_possible(place, moments.time_forms(hour, int(minute), ""), "time")


def _add_four_digit_time(c: Cursor, place: int) -> None:
    text = c.tokens[place].text
    if c.kind(place) != "n" or len(text) != 2 * _TWO or not text.isdecimal():
        return
    hour, minute = int(text[:2]), int(text[2:])
    is_of_hours = place + 1 < len(c.tokens) and c.unit(place + 1)[0] == ("s", 3_600.0)  # "1845 hrs"
    is_time = text[0] == "0" or is_of_hours or c.before(place) in BEFORE_HOURS
    if hour < _HOURS and minute <= _MINUTES and is_time:
        c.add_possible(place, moments.time_forms(hour, minute, "0"), "time")
