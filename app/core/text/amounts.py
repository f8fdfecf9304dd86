"""Reads numbers with their scales, units and currencies.

Functions that *add* something add values that the text may mean besides those that it states; those that *keep*
something record what it states.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from app.core.text import moments
from app.core.text.days import (
    BEFORE_TIMES,
    add_distant_days,
    forms_in_month_of_last_date,
    forms_of_eight_digits,
    forms_of_first_day,
    is_near_last_date,
    names_day,
    short_day_and_time_forms,
    weekday_of_day,
)
from app.core.text.languages.combined_words import alternatives, words_of
from app.core.text.numerals import (
    DEGREES,
    HAN_DIGITS,
    celsius_from_fahrenheit,
    continues_number,
    fahrenheit_from_celsius,
    is_in_hundreds,
    number_of_words,
    plain_number,
)
from app.core.text.patterns import capped
from app.core.text.scan_results import TIGHT, Cursor, FoundValue, Unit
from app.core.text.spelled_numbers import added_fraction, spelled_number_words
from app.core.text.tables import (
    AGO,
    AHEAD,
    APPROXIMATE,
    ARTICLES,
    CLOCK,
    CURRENCIES,
    DOZENS,
    HALF_UNITS,
    MONTHS,
    NUMBER_JOINTS,
    NUMBERING,
    NUMBERS,
    ONES,
    ORDINAL_SHARES,
    ORDINALS,
    POINTS,
    RANGE_WORDS,
    SCALES,
    SHARES,
    UNITS,
)

_LIST_MARK: Final = capped(r"[.)]\s", 2)
_REFERENCE: Final = capped(r"(?:#|№ ?)$", 6)
_APPROXIMATE_ENDINGS: Final = alternatives("values", "about_after")
_APPROXIMATE_NOTE: Final = capped(
    rf"(?:{alternatives('values', 'about_endings')}|(?: ?[^\W\d_]{{1,20}})? ?(?:{_APPROXIMATE_ENDINGS}))", 30
)
_OPERATOR_BEFORE: Final = capped(r"[\w)}\]]\s?[+*×·÷^√]\s?$|(?:\d|[)}\]])\s?[=≈<>≤≥]\s?$|[\^√_]\s?$", 6)
_OPERATOR_AFTER: Final = capped(r"\s?(?:[*×·÷^√]|\+\s?[\w(\\]|-\s?\d{1,6}\s?=|=\s?[\w(\\-])", 12)
_OPERATOR_OR_SIGN_BEFORE: Final = capped(r"[-=+*/×·<>≤≥≈~$€£±^(\[] ?$", 2)
_KEY_BEFORE: Final = capped(r"_([a-z]{1,12})[\"']? ?[:=] ?$", 20)
_YEAR_MARKS: Final = words_of("values", "year_marks")
_CHARACTERS_BEFORE_KEY, _MAX_SHORT_RANGE_LENGTH = 20, 10
_CHARACTERS_BEFORE, _CHARACTERS_AFTER, _CHARACTERS_OF_NOTE = 6, 12, 30
"""How many characters before and after a number are looked at; the last is for a note such as "approximately"."""
_APPROXIMATE_WORDS: Final = APPROXIMATE | {"~", "≈"}
_BETWEEN_APPROXIMATE_AND_NUMBER: Final = words_of("values", "before_rounded") | ARTICLES
_RANGE_SIGNS: Final = words_of("values", "ranges") | {"-", "±"}
_RANGE_SIGNS_WITHOUT_SCALE: Final = frozenset({"-", "", "/"}) | RANGE_WORDS
_JOINTS: Final = words_of("values", "number_joints") | {"", ","}
_SIDES: Final = frozenset(words_of("values", "between_sides") | {"x", "×", "*"})
_MEASURES_OF_SIDES: Final = frozenset({"m", "px"})
_MAX_SIDES: Final = 3
_MAX_VALUES_BACK: Final = 4
_BEFORE_MONEY: Final = TIGHT | {". ", ".", "/"}
_TIGHT_COINS: Final = words_of("values", "tight_units") & CURRENCIES.keys()
"""Coins that stand directly after their number ("5p")."""
_COIN_FACTORS: Final = {"CENT": 0.01, "DIME": 0.1}
_SHARED_SIGNS: Final = frozenset({"¥", "peso", "pesos"})
"""Signs and names that several currencies share, or that another currency writes with "$"."""
_OUT_OF_BEFORE: Final = capped(
    rf"(?<![\d.,])(\d{{1,4}}) (?:[^\W\d_]{{1,12}} )?(?:{alternatives('values', 'out_of')}) ?$", 30
)
_CHARACTERS_OF_OUT_OF: Final = 30
_FIRST_HAN, _FIRST_HANGUL = chr(0x3400), chr(0xAC00)
_SHARE_NAMES: Final = frozenset({"quarters", "quarter", *SHARES})
_OF_WORDS: Final = words_of("values", "shared")
_SHORT_SCALES: Final = words_of("values", "short_scales")
"""Scales only if they stand directly after their number: "5 m" is five metres, "5m" may be five millions."""
_PARTS_OF_UNIT: Final = {
    ("s", 60.0): 60, ("s", 3_600.0): 60, ("m", 1.0): 100, ("m", 0.3048): 12, ("g", 453.59237): 16,
    ("g", 1_000.0): 1_000,
}  # fmt: skip
"""Units after whose amount a second number without a unit counts parts ("4 h 5"), and how many parts each has."""
_DIGITS: Final = HAN_DIGITS | frozenset("0123456789")
_UNITS_BEFORE_DECIMALS: Final = frozenset(words_of("values", "before_decimals"))
_LETTERS_AFTER_DECIMALS: Final = words_of("values", "after_decimals")
_MARKS_AFTER_DAY: Final = ("", ".", ",", ";", ":", ")")
_MAX_DECIMALS, _THREE = 2, 3
_SMALL, _HUNDRED, _THOUSAND, _MILLION = 10, 100, 1_000, 1_000_000
_MAX_SCALES, _MAX_CHARACTERS_BETWEEN = 3, 6
_MIN_DIGITS_OF_CODE: Final = 7
_LENGTH_OF_YEAR: Final = 4
_LAST_DAY: Final = 31
_MAX_TERM_LENGTH: Final = 8
_TERM: Final = capped(
    r"(?![A-Z]{2}[A-Z0-9]*\d\d)(?:[^\W\d_]_)?\d{0,4}[^\W\d_]*+(?:\d{1,2}[^\W\d_]?)?$", _MAX_TERM_LENGTH
)
"""A part of a formula: letters with a number before and after them, but no code of capitals such as "AB12"."""
_WORD_BEFORE: Final = capped(r"[^\W\d_]{3} ?[+=] ?$", 6)
_WORD_BEHIND: Final = capped(r" ?[+=] ?[^\W\d_]{3,}+(?![\w(^*/+=-]|\.\w| ?\d)", 12)
"""A word beside a code: "locker b7 = Anna" and "iron + B12" are no formulas."""
_MIN_DIGITS_OF_REFERENCE: Final = 3
"""A shorter number after "no." or "#" is not an identifier."""


def number_at(c: Cursor, place: int) -> int:
    """Read the number at a token into ``c.found``, and return the token after it; the same token if there is none."""
    token = c.tokens[place]
    readings, after, scale = _readings(c, place)
    if scale != 1 and c.kind(after - 1) == "n" and c.tokens[after - 1].text not in SCALES:  # "1万4000" is exact
        readings, scale = [reading * scale for reading in readings], 1.0
    if readings and readings[0] < _SMALL and _are_shares(c, place, after, readings[0]):
        return _read_share(c, place, after, readings[0] * SHARES.get(c.word(after), 0.25))
    if readings:
        _add_spoken(c, place, after, readings[0])
        return _keep_quantity(c, place, after, readings, scale)
    if token.kind == "w" and token.text in HALF_UNITS:
        share, unit = HALF_UNITS[token.text]
        return _keep_amount_with_unit(c, place, place + 1, share, UNITS[unit])
    if token.kind == "f" or (token.kind == "w" and token.text in SHARES):
        return _read_share(c, place, place, token.data if token.kind == "f" else SHARES[token.text])
    if token.kind == "w" and token.text in UNITS and c.all_readings:
        return _read_unit_alone(c, place)
    return place


def _are_shares(c: Cursor, first: int, place: int, count: float) -> bool:
    is_share = count == _THREE and c.kind(first) == "w" and not c.all_readings  # "only three quarters"
    return (is_share or c.word(place + 1) in _OF_WORDS) and c.word(place) in _SHARE_NAMES and c.near(place)


def _readings(c: Cursor, place: int) -> tuple[list[float], int, float]:
    """The possible readings of a number, the token after it, and its scale (1 without one)."""
    token, after = c.tokens[place], place + 1
    if token.kind == "n" and (token.text not in SCALES or any(token.data)):
        is_sure = " " not in token.text and token.text[0] < _FIRST_HAN
        readings = list(token.data) if c.all_readings or is_sure else token.data[:1]
        if c.kind(after) == "f" and c.near(after) and ("/" not in c.tokens[after].text or c.tokens[after].data < 1):
            readings, after = [reading + c.tokens[after].data for reading in readings], after + 1
    elif token.kind == "w" and (token.text in NUMBERS or token.text in SCALES):
        readings, after = _spelled_number(c, place)
    else:
        return [], place, 1.0
    more, half = added_fraction(c, after)
    if half:
        more *= _scale_from_thousand(c, after - 1)
        readings, after = [reading + more for reading in readings], after + half
    scale, first = 1.0, after
    while after < len(c.tokens) and after - first < _MAX_SCALES and c.tokens[after].text in SCALES:
        is_apart = c.gap(after) and (c.tokens[after].text in _SHORT_SCALES or _is_kelvin(c, after))
        if not c.near(after, TIGHT | {" ("}) or is_apart:
            break
        scale, after = scale * SCALES[c.tokens[after].text], after + 1
    if after > first:  # 2 million and a half
        more, half = added_fraction(c, after)
        readings, after = [reading + more for reading in readings], after + half
    if after > first and c.tokens[after - 1].text[0] >= _FIRST_HAN:
        rest, after = _rest_after_han_scale(c, after, scale)
        readings = [reading + rest for reading in readings]
    return readings, after, scale


def _rest_after_han_scale(c: Cursor, place: int, scale: float) -> tuple[float, int]:
    is_apart = c.tokens[place - 1].text[0] >= _FIRST_HANGUL and c.gap(place) == " "
    if c.kind(place) != "n" or (c.gap(place) and not is_apart):
        return 0.0, place
    rest, after, smaller = _readings(c, place)
    digits = c.tokens[place].text
    # A single digit counts tenths of the scale before it; in "1万4000" all digits count as they are.
    if smaller == 1 and rest and (len(digits) == 1 or (digits.isdecimal() and rest[0] < scale)):
        return (rest[0] / 10 if len(digits) == 1 else rest[0] / scale), after
    is_part = bool(rest) and 1 < smaller < scale and rest[0] * smaller < scale
    return (rest[0] * smaller / scale, after) if is_part else (0.0, place)


def _is_kelvin(c: Cursor, place: int) -> bool:
    return c.tokens[place].text == "k" and c.is_capital(place) and c.word(place + 1) not in CURRENCIES


def _is_reference_number(c: Cursor, place: int) -> bool:
    token = c.tokens[place]
    before = c.text[max(0, token.start - _CHARACTERS_BEFORE) : token.start]
    return (
        token.text.isdecimal() and len(token.text) >= _MIN_DIGITS_OF_REFERENCE and _REFERENCE.search(before) is not None
    )


def _read_identifier(c: Cursor, place: int) -> int:
    digits = c.tokens[place].text
    c.add("identifier", place, place + 1, [f"n:{plain_number(float(digits))}", f"i:{digits}", f"r:{digits}"])
    return place + 1


def _scale_from_thousand(c: Cursor, place: int) -> float:
    scale = SCALES.get(c.word(place), 1.0)
    return scale if scale > _HUNDRED else 1.0


def _spelled_number(c: Cursor, place: int) -> tuple[list[float], int]:
    words, after = spelled_number_words(c, place)
    if not words:
        return [], place
    return [number_of_words(words), *_number_after_its_scale(c, words, after), *_with_scale_left_out(words)], after


def _number_after_its_scale(c: Cursor, words: list[str], after: int) -> list[float]:
    if SCALES.get(words[0], 0) <= _HUNDRED:
        return []
    number = number_of_words(words[1:]) or (c.small(after) if len(words) == 1 and c.near(after) else 0)
    return [number * SCALES[words[0]]] if number else []


def _with_scale_left_out(words: list[str]) -> list[float]:
    """The number meant if speech leaves a scale out: «миллион восемьсот» is 1,800,000."""
    last = max((place for place, word in enumerate(words) if SCALES.get(word, 0) >= _MILLION), default=len(words))
    rest = number_of_words(words[last + 1 :])
    is_left_out = _HUNDRED <= rest < _THOUSAND
    return [number_of_words(words[: last + 1]) + rest * SCALES[words[last]] / _THOUSAND] if is_left_out else []


def _add_spoken(c: Cursor, place: int, after: int, first: float) -> None:
    """Add the numbers that spoken forms may mean: "nineteen eleven", «семьдесят девятого года», «пять девятьсот»."""
    point = c.word(after) if c.near(after) else ""
    is_joined = c.gap(after).strip() in NUMBER_JOINTS  # "dieciséis con cuarenta"
    if point in NUMBER_JOINTS and c.near(after + 1):
        is_joined, after = True, after + 1
    second = c.word(after) if c.near(after) or is_joined else ""
    if not c.all_readings or not (second or point):
        return
    whole: list[float] = []
    joint = after - (point in NUMBER_JOINTS)
    if first >= _SMALL and second in ORDINALS and continues_number(first, ORDINALS[second]):
        tens = first + ORDINALS[second]
        whole = [tens, 1900 + tens, 2000 + tens] if tens < _HUNDRED else [tens]
    elif c.kind(place) == "w" and second in NUMBERS and (is_joined or c.gap(after) == " "):
        rest, _ = _spelled_number(c, after)
        whole = list(_numbers_of_two_spoken(first, rest[0], is_joined=is_joined)) if rest else []
    if point in POINTS and 0 < c.small(joint + 1) < _SMALL and c.near(joint + 1):
        whole.append(first + c.small(joint + 1) / 10)
    c.add_possible(place, [f"n:{plain_number(number)}" for number in whole], "number")


def _numbers_of_two_spoken(first: float, second: float, *, is_joined: bool) -> Iterator[float]:
    """The numbers that two spoken numbers may mean together if a scale or the coins are left out: 1911, 5,900, 2.80."""
    if _SMALL <= second < _HUNDRED:
        yield first + second / 100
        if not is_joined and first in range(10, 21):
            yield first * 100 + second
    elif not is_joined and _HUNDRED <= second < _THOUSAND > first:
        yield from ((first * 1_000 + second) * scale for scale in (1, 1_000))


def _read_share(c: Cursor, place: int, last: int, share: float) -> int:
    """Read a share such as "half an hour", "half a million", "3/4 cup"; a share without a unit states no value."""
    after = last + 1
    while c.word(after) in ARTICLES | _OF_WORDS and c.near(after):
        after += 1
    scale = 12.0 if c.word(after) in DOZENS else _scale_from_thousand(c, after)
    if scale > 1 and c.near(after):
        return _keep_quantity(c, place, after + 1, [share], scale)
    unit, with_unit = c.unit(after) if after < len(c.tokens) else (None, after)
    is_ordinal = after == place + 1 and c.word(place) in ORDINAL_SHARES
    if unit and unit[0] != "%" and not is_ordinal:
        return _keep_amount_with_unit(c, place, with_unit, share, unit)
    parts = c.tokens[place].text.split("/")
    numbers = [f"n:{int(part)}" for part in parts] if len(parts) > 1 else []
    shares = [f"n:{plain_number(share)}", f"n:{share * 100:.0f}"]
    c.add_possible(place, [*shares, *numbers], "number")
    if numbers and not c.all_readings and _is_pair_of_numbers(c, parts, last + 1):
        days = [day for day in moments.days_of_pair(*map(int, parts)) if moments.is_day(day)]
        is_day = bool(days) and any(part[0] == "0" for part in parts)
        # The rounded percentage is left out, since it identifies little: it is 156 for 126/81 and for 134/86.
        others = () if is_day else (shares[0], "&".join(numbers))
        c.add("number", place, place + 1, [*others, *chain(*map(moments.claimed_forms, days))])
    return last + 1


def _is_pair_of_numbers(c: Cursor, parts: list[str], after: int) -> bool:
    """Whether both numbers are values of their own, as in "152/84"; "3/4" and "60/40" are parts of a whole."""
    sizes = [len(part) for part in parts]
    is_part = min(sizes) == 1 or sum(map(int, parts)) == _HUNDRED
    return not is_part and max(sizes) < _LENGTH_OF_YEAR and c.word(after) not in MONTHS


def _read_unit_alone(c: Cursor, place: int) -> int:
    """Read a unit without its number: "a week", "через неделю", "неделю назад", "an hour and a half"."""
    word = c.word(place)
    unit, (more, half) = UNITS[word], added_fraction(c, place + 1)
    is_article = c.before(place) in ARTICLES
    if is_article or half or c.word(place - 1) in AHEAD or c.word(place + 1) in AGO:
        _keep_amount_with_unit(c, place, place + 1, 1 + more, unit)
        add_distant_days(c, place - is_article, place + 1, 1.0, unit)
        return place + 1 + half
    if word in ONES:
        c.add_possible(place, [f"q:{plain_number(unit[1])}|{unit[0]}"], "number")
    return place


def _keep_amount_with_unit(c: Cursor, first: int, after: int, amount: float, unit: Unit) -> int:
    found = FoundValue("number", c.tokens[first].start, c.tokens[after - 1].end, readings=[amount], unit=unit)
    found.is_approximate = _is_approximate(c, first, after)
    _keep(c, found)
    return after


def _keep_quantity(c: Cursor, place: int, after: int, readings: list[float], scale: float) -> int:
    """Keep a number with its unit, currency and scale, and return the token after them."""
    if _is_reference_number(c, place) and not c.all_readings:
        return _read_identifier(c, place)
    token, first, last = c.tokens[place], place, after
    unit, with_unit = c.unit(after) if after < len(c.tokens) else (None, after)
    money_before = c.before(place) in CURRENCIES.keys() - _TIGHT_COINS and not _is_currency_of_amount_before(
        c, place - 1
    )
    money_at = after + (c.word(after) in {"us", "swiss"})
    gaps = frozenset({""}) if c.word(money_at) in _TIGHT_COINS else _BEFORE_MONEY
    if c.word(money_at) in CURRENCIES and c.near(money_at, gaps) and not (unit and money_before):
        last, unit = money_at + 1, None
    elif unit:  # "$15 \text{cm}$" is not money
        money_before, last = False, with_unit
        more, behind = _half_behind_unit(c, last)
        readings, last = [reading + more for reading in readings], behind
    first -= money_before
    is_money = money_before or (last > after and not unit)
    part = _COIN_FACTORS.get(CURRENCIES.get(c.word(money_at), ""), 1.0) if is_money and not money_before else 1.0
    if last > after and c.tokens[last - 1].text[0] >= _FIRST_HAN and (decimals := _decimals_behind_unit(c, last)):
        readings, last = [reading + decimals for reading in readings], last + 1
    found = FoundValue(
        "money" if is_money else "number", c.tokens[first].start, c.tokens[last - 1].end, readings=readings
    )
    found.unit, found.scale = unit, scale * part
    found.currency = _currency(c, place, money_at) if is_money else ""
    found.is_approximate = _is_approximate(c, first, last) or (scale != 1 and token.text not in SCALES)
    has_digits = token.kind == "n" and sum(sign.isdigit() for sign in token.text) > 1
    is_long = has_digits or max(readings) * scale > _SMALL
    found.is_stated = is_money or bool(unit) or (is_long and not _is_no_amount(c, place, last))
    _keep(c, found, place)
    if c.all_readings:
        _add_implied(c, place, last, found)
    if unit:
        add_distant_days(c, place, last, readings[0] * scale, unit)
    return last


def _is_currency_of_amount_before(c: Cursor, place: int) -> bool:
    # "12 dollars 50 cents", but not "£31 £3,100" or "EUR 31. EUR 3,100"
    if len(c.gap(place)) > len(c.gap(place + 1)):
        return False
    previous = _amount_before(c, c.tokens[place].start)
    if previous is None or c.text.startswith(c.word(place), previous.start):
        return False
    return previous.end >= c.tokens[place].end


def _currency(c: Cursor, place: int, behind: int) -> str:
    word = c.word(behind) if c.word(behind) in CURRENCIES and c.near(behind) else c.before(place)
    # "$T = 5$" is a formula, not money.
    is_sure = word not in _SHARED_SIGNS and not (word == "$" == c.word(behind))
    code = CURRENCIES.get(word, "") if is_sure else ""
    return "" if code in _COIN_FACTORS else code


def _half_behind_unit(c: Cursor, place: int) -> tuple[float, int]:
    # "two kilos and a half"
    if c.word(place) == "半" and not c.gap(place):
        return 0.5, place + 1
    more, size = added_fraction(c, place)
    after = place + size
    is_of_another = c.near(after) and (c.word(after) in UNITS or c.word(after) in DOZENS)
    return (0.0, place) if is_of_another else (more, after)


def _decimals_behind_unit(c: Cursor, place: int) -> float:
    # Chinese writes decimals directly after the unit.
    token = c.tokens[place] if c.kind(place) == "n" and not c.gap(place) else None
    if (
        token is None
        or len(token.text) > _MAX_DECIMALS
        or not set(token.text) <= _DIGITS
        or _has_unit_or_currency(c, place)
    ):
        return 0.0
    following = c.text[token.end : token.end + 1]
    is_within = following >= _FIRST_HAN and following.isalpha() and following not in _LETTERS_AFTER_DECIMALS
    if c.tokens[place - 1].text not in _UNITS_BEFORE_DECIMALS or is_within:
        return 0.0
    return float(token.data[0] / 10 ** len(token.text))


def _has_unit_or_currency(c: Cursor, place: int) -> bool:
    return place + 1 < len(c.tokens) and (c.unit(place + 1)[0] is not None or c.word(place + 1) in CURRENCIES)


def _add_implied(c: Cursor, place: int, after: int, found: FoundValue) -> None:
    """Add values that only the surroundings imply: a key's unit, a year of two digits, the numbers of a short range."""
    number, digits, start = found.readings[0] * found.scale, c.tokens[place].text, c.tokens[place].start
    if (
        not found.unit
        and (key := _KEY_BEFORE.search(c.text[max(0, start - _CHARACTERS_BEFORE_KEY) : start]))
        and key[1] in UNITS
    ):
        unit, factor = UNITS[key[1]]
        implied = FoundValue(
            "number",
            start,
            c.tokens[place].end,
            frozenset({f"q:{plain_number(number * factor)}|{unit}"}),
            is_stated=False,
        )
        implied.amounts = [(number * factor, unit)]
        c.found.append(implied)
    if found.unit and found.unit[0] == DEGREES:
        other = celsius_from_fahrenheit(number) if c.text[found.end - 1] == "f" else fahrenheit_from_celsius(number)
        form = frozenset({f"q:{plain_number(other)}|{DEGREES}"})
        c.found.append(FoundValue("degrees", start, found.end, form, is_stated=False, amounts=[(other, DEGREES)]))
    if c.word(after - 1) in _YEAR_MARKS and digits.isdecimal() and len(digits) == 2:  # noqa: PLR2004
        c.add_possible(place, [f"n:{century + int(digits)}" for century in (1900, 2000)], "number")
    if (share := _OUT_OF_BEFORE.search(c.text[max(0, start - _CHARACTERS_OF_OUT_OF) : start])) and int(
        share[1]
    ) < number:
        percentage = 100 * int(share[1]) / number
        shares = [(percentage, ""), (percentage / 100, "")]
        share_forms = frozenset(f"n:{plain_number(one)}" for one, _ in shares)
        c.found.append(FoundValue("share", start, c.tokens[place].end, share_forms, is_stated=False, amounts=shares))
    if c.word(place - 1) in RANGE_WORDS and c.near(place - 1) and c.near(place):
        _add_days_of_range(c, place, (c.small(place - 2), c.small(place)), found)
    if c.gap(place) != "-":
        return
    if c.kind(place - 1) == "version":
        c.add_possible(place, [f"p:.{digits}"], "version")
    first = c.tokens[place - 1].data[0] if c.kind(place - 1) == "n" else number
    if 0 < number - first <= _MAX_SHORT_RANGE_LENGTH:
        forms = (f"n:{plain_number(first + step)}" for step in range(1, int(number - first)))
        c.add_possible(place, forms, "number")
    _add_days_of_range(c, place, (c.small(place - 1), c.small(place)), found)


def _add_days_of_range(c: Cursor, place: int, days: tuple[int, int], found: FoundValue) -> None:
    # The two numbers may be days of a month.
    if 1 <= days[0] < days[1] <= _LAST_DAY and not found.unit:
        c.add_possible(place, [f"o:{day}" for day in days])


def _is_approximate(c: Cursor, first: int, after: int) -> bool:
    before = c.word(first - 1) if c.near(first) or c.gap(first) in {".", ". "} else ""
    if before in _APPROXIMATE_WORDS or (before in _BETWEEN_APPROXIMATE_AND_NUMBER and c.word(first - 2) in APPROXIMATE):
        return True
    end = c.tokens[after - 1].end
    return _APPROXIMATE_NOTE.match(c.text[end : end + _CHARACTERS_OF_NOTE]) is not None


def is_term(c: Cursor, place: int) -> bool:
    """Whether a short code is a term of a formula: "2as" in "v² = u² + 2as", "v0" in "v0 = 14"."""
    start, end = c.tokens[place].start, c.tokens[place].end
    if end - start > _MAX_TERM_LENGTH or not _TERM.match(c.cased[start:end]):
        return False
    before, behind = _around(c, start, end)
    return _has_operator(before, behind) and not (_WORD_BEFORE.search(before) or _WORD_BEHIND.match(behind))


def _around(c: Cursor, start: int, end: int) -> tuple[str, str]:
    return c.text[max(0, start - _CHARACTERS_BEFORE) : start], c.text[end : end + _CHARACTERS_AFTER]


def _has_operator(before: str, behind: str) -> bool:
    return _OPERATOR_BEFORE.search(before) is not None or _OPERATOR_AFTER.match(behind) is not None


def _is_no_amount(c: Cursor, place: int, after: int) -> bool:
    start, end = c.tokens[place].start, c.tokens[after - 1].end
    before, behind = _around(c, start, end)
    if _REFERENCE.search(before) or _has_operator(before, behind):
        return True
    if c.word(place - 1) in NUMBERING and len(c.gap(place)) <= 2:  # noqa: PLR2004 - a space, a colon
        return True
    begins_line = "\n" in before or start < _CHARACTERS_BEFORE
    return begins_line and not before.rpartition("\n")[2].strip(" >-") and _LIST_MARK.match(behind) is not None


def _keep(c: Cursor, found: FoundValue, place: int | None = None) -> None:
    """Compute the forms of an amount and keep it, joined to the amount before if both are one."""
    previous = _amount_before(c, found.start)
    between = (
        c.text[previous.end : found.start].strip()
        if previous and found.start - previous.end <= _MAX_CHARACTERS_BETWEEN
        else None
    )
    if previous and between is not None:
        _share_unit_in_range(c, previous, found, between)
    _set_forms(found, all_readings=c.all_readings)
    if place is not None and c.kind(place) == "n":
        _add_digit_forms(c, found, place)
    if previous and between in _SIDES and found.unit and found.unit[0] in _MEASURES_OF_SIDES:
        _share_unit_of_sides(c, found)
    if c.all_readings and previous and between in _JOINTS:
        _add_sum_with_rest(c, previous, found)
    if previous and between == "-" and previous.kind == "number" and not previous.unit and place is not None:
        previous.forms |= forms_of_first_day(previous.readings[0], c.tokens[place].text)
    if previous and between in _JOINTS and _are_one_amount(previous, found):
        _join(c, previous, found)
    else:
        c.found.append(found)


def _amount_before(c: Cursor, start: int) -> FoundValue | None:
    # Other possible meanings of the number at "start" are skipped.
    for one in c.found[: -_MAX_VALUES_BACK - 1 : -1]:
        if one.readings:
            return one
        if one.start < start:
            return None
    return None


def _share_unit_in_range(c: Cursor, previous: FoundValue, found: FoundValue, between: str) -> None:
    is_range = between in _RANGE_SIGNS or (between in _RANGE_SIGNS_WITHOUT_SCALE and found.scale == 1)
    is_bare = not previous.unit and previous.scale == 1 and previous.kind == "number"
    if is_range and is_bare and (found.unit or found.scale != 1) and max(previous.readings) < _THOUSAND:
        previous.unit, previous.scale = found.unit, found.scale
        previous.is_stated |= bool(found.unit)
        previous.is_approximate |= found.is_approximate
        _set_forms(previous, all_readings=c.all_readings)


def _set_forms(found: FoundValue, *, all_readings: bool) -> None:
    """Fill in the forms and amounts of a number with its unit and scale."""
    scaled = [reading * found.scale for reading in found.readings]
    if found.scale < 1 or (all_readings and found.scale != 1):  # coins, or a scale that others leave out
        scaled += found.readings
    base, factor = found.unit or ("", 1.0)
    forms = {f"n:{plain_number(amount)}" for amount in scaled}
    found.amounts = [(amount, "") for amount in scaled]
    if base == "%":
        forms |= {f"n:{plain_number(amount * factor / 100)}" for amount in scaled}
        forms |= {f"n:{plain_number(amount * factor)}" for amount in scaled}
    elif base:
        forms |= {f"q:{plain_number(amount * factor)}|{base}" for amount in scaled}
        found.amounts += [(amount * factor, base) for amount in scaled]
    found.forms = frozenset(forms)


def _add_digit_forms(c: Cursor, found: FoundValue, place: int) -> None:
    """Add the forms of what digits may be besides an amount: a code, version or day, two numbers of a Chinese text."""
    token = c.tokens[place]
    digits = token.text
    if digits.isdecimal() and len(digits) > 2 and (len(digits) >= _MIN_DIGITS_OF_CODE or digits[0] == "0"):  # noqa: PLR2004
        found.forms |= {f"i:{digits}"}
        found.kind = "identifier" if found.kind == "number" and not found.unit else found.kind
    is_plain = found.kind == "number" and not found.unit and found.scale == 1
    if is_plain:
        is_day = names_day(c, place)
        if c.all_readings or len(digits) > 4 or is_day:  # noqa: PLR2004
            found.forms |= short_day_and_time_forms(digits)
        if digits.isdecimal() and not c.all_readings and (is_day or is_near_last_date(c, place)):
            found.forms |= forms_in_month_of_last_date(c, int(digits))
        if not c.all_readings and (weekday := weekday_of_day(c, place)) is not None:
            _state_day_of_weekday(c, found, moments.form_of_weekday(weekday, int(digits)))
    is_hour = is_plain and c.before(place) in BEFORE_TIMES
    if is_hour or (c.near(place + 1) and c.word(place + 1) in CLOCK):  # "alle 8.30", "8.50 uur"
        found.forms |= {form for form in short_day_and_time_forms(digits) if form[:2] == "t:"}
    if c.text[token.start] == ".":  # ".10" may be the end of a network address, but not in "p = .10"
        digits = c.text[token.start + 1 : token.end]
        is_end = c.all_readings or not _OPERATOR_OR_SIGN_BEFORE.search(c.text[max(0, token.start - 2) : token.start])
        found.forms |= {f"p:.{digits}", *([f"n:{int(digits)}"] if is_end else ())}
    if c.all_readings:
        found.forms |= {f"v:{digits}", *forms_of_eight_digits(digits)}
    around = c.text[max(0, token.start - _CHARACTERS_BEFORE) : token.start] + c.text[token.end : token.end + 1]
    is_list = found.kind == "number" and not found.unit and c.all_readings and is_in_hundreds(digits)  # "12,34,567"
    if is_list or (("," in digits or " " in digits) and any("\u3001" <= sign <= "\u9fff" for sign in around)):
        parts = [f"n:{int(part[:20])}" for part in digits.replace(" ", ",").split(",") if part.isdecimal()]
        found.forms |= set(parts) if c.all_readings else {"&".join(parts)}


def _state_day_of_weekday(c: Cursor, found: FoundValue, form: str) -> None:
    # Before another word the number may count something: "on Saturday 12 came".
    if c.text[found.end : found.end + 2].strip()[:1] in _MARKS_AFTER_DAY:
        found.forms, found.readings = frozenset({form}), []  # its kind is not "date", since it has no month
    else:
        found.forms |= {form}


def _share_unit_of_sides(c: Cursor, found: FoundValue) -> None:
    # "90 x 60 x 75 cm"
    following = found
    for previous in c.found[: -_MAX_SIDES - 1 : -1]:
        between = (
            c.text[previous.end : following.start] if following.start - previous.end <= _MAX_CHARACTERS_BETWEEN else ""
        )
        is_bare = previous.kind == "number" and previous.readings and not previous.unit and previous.scale == 1
        if not is_bare or between.strip() not in _SIDES:
            break
        previous.unit = found.unit
        _set_forms(previous, all_readings=c.all_readings)
        following = previous


def _add_sum_with_rest(c: Cursor, previous: FoundValue, found: FoundValue) -> None:
    """Add the sum of two amounts if the second has no unit or counts coins: "4 h 5", "12 euros 50"."""
    first, rest = previous.readings[0] * previous.scale, found.readings[0] * found.scale
    of_coins = found.kind == "money" and found.scale < 1 <= previous.scale
    is_bare = found.kind == "number" and not found.unit and not c.text[previous.end : found.start].strip()
    rest_of_money = rest if of_coins else rest / 100 if is_bare and rest >= _SMALL else 0
    if previous.kind == "money" and 0 < rest_of_money < 1:
        total = first + rest_of_money
        c.found.append(
            FoundValue("money", previous.start, found.end, frozenset({f"n:{plain_number(total)}"}), is_stated=False)
        )
    if previous.unit is None or found.unit is not None or found.kind != "number":
        return
    base, factor = previous.unit
    parts = _PARTS_OF_UNIT.get(previous.unit)
    if parts and rest < parts:
        total = first * factor + rest * factor / parts
        forms = frozenset({f"q:{plain_number(total)}|{base}", *_clock_form(previous, rest)})
        c.found.append(FoundValue("number", previous.start, found.end, forms, is_stated=False))


def _clock_form(larger: FoundValue, rest: float) -> frozenset[str]:
    """A length of time as a clock would show it: "6:40" for "6 min 40 s" or "6 h 40"."""
    is_timed = larger.unit in {("s", 60.0), ("s", 3_600.0)}
    return frozenset({f"l:{int(larger.readings[0])}:{int(rest):02}"} if is_timed else ())


def _are_one_amount(previous: FoundValue, found: FoundValue) -> bool:
    (first, larger), (second, smaller) = previous.unit or ("", 1.0), found.unit or ("", 1.0)
    return first == second and first not in {"", "%"} and larger > smaller


def _join(c: Cursor, previous: FoundValue, found: FoundValue) -> None:
    """Keep two amounts as one: "2 h 15 min"."""
    base = found.unit[0] if found.unit else ""
    total = sum(one.readings[0] * one.scale * (one.unit[1] if one.unit else 1) for one in (previous, found))
    joined = FoundValue(
        previous.kind, previous.start, found.end, frozenset({f"q:{plain_number(total)}|{base}"}), not c.all_readings
    )
    joined.amounts = [(total, base)]
    joined.is_approximate = previous.is_approximate or found.is_approximate
    if c.all_readings:
        joined.forms |= _clock_form(previous, found.readings[0])
        c.found += [joined, found]
        return
    joined.readings, joined.unit = [total], (base, 1.0)
    first, second = (plain_number(one.readings[0] * one.scale) for one in (previous, found))
    joined.forms |= {f"n:{first}&n:{second}"}
    c.found[-1] = joined
