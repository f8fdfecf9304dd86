"""Numbers as they are written: digits with their separators, words, Chinese numerals."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from app.core.text.patterns import compiled
from app.core.text.tables import COMPOUND_HEADS, COMPOUND_STEMS, DOZENS, NUMBER_WORDS, NUMBERS, SCALES

_GROUPED: Final = compiled(r"\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*+(?:(?!\1)[.,]\d{1,9})?")
_IN_HUNDREDS: Final = compiled(r"\d{1,2}(?:,\d\d){1,5},\d{3}(?:\.\d{1,9})?")
"""A number as India groups it: "1,00,000"."""
_DECIMAL: Final = compiled(r"\d{1,15}[.,]\d{1,12}")
_WRITTEN: Final = compiled(r"\b\d{1,15}[.,](\d{1,12})\b")
_SEPARATORS: Final = str.maketrans("", "", ".,' ")
_HAN_DIGITS: Final = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
HAN_DIGITS: Final = frozenset(_HAN_DIGITS)
_HAN_TENS: Final = {"十": 10, "百": 100, "千": 1_000}
_HAN_SCALES: Final = {"万": 10_000, "亿": 100_000_000}
_PAIR: Final = 2
_TWO_DIGITS: Final = compiled(f"[{''.join(sign for sign, digit in _HAN_DIGITS.items() if digit)}]{{{_PAIR}}}")
HAN_SIGNS: Final = "零〇一二两三四五六七八九十百千万亿"
_MAX_NUMBER: Final = 1e18
_MAX_NUMBER_LENGTH, _MAX_WORD_LENGTH = 96, 24
"""The most letters of a number in one word, and of one number word within it."""
_MAX_DIGITS: Final = 15
"""The most digits of an amount."""
_TENTH: Final = 0.1
"""The precision of numbers in words: "a quarter" does not state 0.25."""
DEGREES: Final = "°"
"""The base unit of temperatures, for both scales."""


def fahrenheit_from_celsius(degrees: float) -> float:
    """Degrees Celsius in Fahrenheit."""
    return degrees * 1.8 + 32


def celsius_from_fahrenheit(degrees: float) -> float:
    """Degrees Fahrenheit in Celsius."""
    return (degrees - 32) / 1.8


def plain_number(number: float) -> str:
    """A number without a sign and without trailing zeros: ``5000``, ``1.2``."""
    size = abs(number)
    if size > _MAX_NUMBER:
        return f"{size:.15g}"
    return str(int(size)) if size == int(size) else f"{size:.6f}".rstrip("0").rstrip(".")


def resolution(number: str) -> float:
    """The worth of the last digit that is not zero: 100 for 18,200, 0.1 for 2.5."""
    whole, _, decimals = number.partition(".")
    if decimals:
        return float(10 ** -len(decimals))
    return float(10 ** (len(whole) - len(whole.rstrip("0")))) if whole.strip("0") else 1.0


def resolution_as_written(text: str, number: float) -> float:
    """The worth of the last digit of a number as it is written: 0.01 for "3.10", 100 for "18,200", 0.1 in words."""
    for found in _WRITTEN.finditer(text):
        if float(found[0].replace(",", ".")) == abs(number):
            return float(10 ** -len(found[1]))
    is_in_words = not any(map(str.isdecimal, text))
    return max(resolution(plain_number(number)), _TENTH if is_in_words else 0.0)


def readings_of_digits(digits: str) -> list[float]:
    """The numbers that digits may mean: "1,234" may be more than a thousand, or between one and two.

    A space may also separate two numbers: then each part is a further reading. The list is empty for no amount.
    """
    if digits.isdigit():
        return [float(digits)] if len(digits) <= _MAX_DIGITS else []
    found: list[float] = []
    grouped = _GROUPED.fullmatch(digits)
    if grouped:
        last = max(digits.rfind("."), digits.rfind(","))
        has_decimals = last >= 0 and digits[last] != grouped[1]
        whole, decimals = (digits[:last], digits[last:]) if has_decimals else (digits, "")
        found.append(float(whole.translate(_SEPARATORS) + decimals.replace(",", ".")))
    elif is_in_hundreds(digits):
        found.append(float(digits.replace(",", "")))
    if _DECIMAL.fullmatch(digits):
        found.append(float(digits.replace(",", ".")))
    if " " in digits:
        found += [float(part) for part in digits.split(" ") if part.isdigit()]
    return found


def is_in_hundreds(digits: str) -> bool:
    """Whether digits are grouped as in India, by hundreds above the thousand: "12,34,567.50"."""
    return _IN_HUNDREDS.fullmatch(digits) is not None


def continues_number(last: float, following: float) -> bool:
    """Whether the second number word continues the first to one number: "forty-five", "двести сорок"."""
    is_ten = 20 <= last < 100 and last % 10 == 0  # noqa: PLR2004
    return following < 10 if is_ten else following < 100 <= last or following < 1_000 <= last  # noqa: PLR2004


def number_of_words(words: list[str]) -> float:
    """The number that these words mean together ("one million two hundred thousand"); 0 if they are not a number."""
    total = group = 0.0
    for word in words:
        scale = SCALES.get(word, 12.0 if word in DOZENS else 0.0)
        if word in DOZENS:
            group = (group or 1) * scale
        elif word in NUMBERS:
            group += NUMBERS[word]
        elif scale > 100:  # noqa: PLR2004 - hundreds stay within their group
            is_of_all = 0 < total < scale  # "mil millones", "two thousand five hundred million"
            total, group = (total + group) * scale if is_of_all else total + (group or 1) * scale, 0.0
        elif scale:
            group = (group or 1) * scale
    return total + group


def number_words_within(word: str) -> list[tuple[str, int]]:
    """The number words within one word ("zweitausendfünfhundert"), each with its length; empty for other words."""
    return number_words_at_start(word, is_whole=True)[0]


def number_words_at_start(word: str, *, is_whole: bool = False) -> tuple[list[tuple[str, int]], int]:
    """The number words at the beginning of a word, and their length; with ``is_whole`` they must be the whole word."""
    found = (_number_words_from(word, known) for known in NUMBER_WORDS)
    return max((one for one in found if not is_whole or one[1] == len(word)), key=itemgetter(1), default=([], 0))


def _number_words_from(word: str, known: Mapping[str, str]) -> tuple[list[tuple[str, int]], int]:
    ways: dict[int, list[tuple[str, int]]] = {0: []}
    for place in range(min(len(word), _MAX_NUMBER_LENGTH)):
        for end in range(place + 1, min(len(word), place + _MAX_WORD_LENGTH) + 1) if place in ways else ():
            if word[place:end] in known:
                ways.setdefault(end, [*ways[place], (known[word[place:end]], end - place)])
    last = max(ways)
    return ways[last], last


def number_of_han(signs: str) -> float:
    """The number that Chinese numerals mean; 0 if they are not a number ("万一", "千万")."""
    return next(iter(numbers_of_han(signs)), 0.0)


def number_of_han_place(sign: str) -> float:
    """The number of 十, 百 or 千 alone, as Japanese has them before a unit; 0 for anything else."""
    return float(_HAN_TENS.get(sign, 0))


def numbers_of_han(signs: str, *, is_full: bool = False) -> list[float]:
    """The numbers that Chinese numerals may mean: "三四百" 300 or 400, "七八" 78, 7 or 8; "万一" is not a number.

    With ``is_full``, as in Japanese, the last digit counts as it is written: "二百一" means 201 before 210.
    """
    whole, _, decimals = signs.partition("点")
    # Numerals without a digit are only scales; with a digit, the first scale may count once.
    if not whole or whole[0] in _HAN_SCALES or (whole[0] in _HAN_TENS and not _begins_number(whole)):
        return []
    rest = float("0." + "".join(str(_HAN_DIGITS.get(sign, 0)) for sign in decimals)) if decimals else 0.0
    if all(sign in _HAN_DIGITS for sign in whole):
        numbers = [float("".join(str(_HAN_DIGITS[sign]) for sign in whole))]
        numbers += [_HAN_DIGITS[sign] for sign in whole if len(whole) == _PAIR and _is_either(whole)]
    elif pair := _TWO_DIGITS.search(whole):
        # Two digits may mean "three or four". If they do not, the second belongs to the next word: "三百六一罐".
        digits = pair[0] if _is_either(pair[0]) else pair[0][:1]
        numbers = [_with_places(whole[: pair.start()] + digit + whole[pair.end() :]) for digit in digits]
    else:
        # Chinese may leave out the last place, while Japanese counts the last digit as it is and may leave out a one.
        numbers = [_with_places(whole), _with_places(whole, is_full=True)]
        numbers = numbers[::-1] if is_full or whole[0] in _HAN_TENS else numbers
    return [one + rest for one in dict.fromkeys(numbers)]


def _begins_number(signs: str) -> bool:
    # Japanese leaves out the one before hundred and thousand, also if another place follows.
    is_joined = _HAN_TENS.get(signs[1:2], _HAN_TENS[signs[0]]) < _HAN_TENS[signs[0]]
    return _HAN_TENS[signs[0]] == 10 or is_joined or not _HAN_DIGITS.keys().isdisjoint(signs)  # noqa: PLR2004


def _is_either(digits: str) -> bool:
    return 0 < _HAN_DIGITS[digits[0]] == _HAN_DIGITS[digits[1]] - 1


def _with_places(signs: str, *, is_full: bool = False) -> float:
    total = section = digit = 0
    for sign in signs:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif sign in _HAN_TENS:
            section, digit = section + (digit or 1) * _HAN_TENS[sign], 0
        elif sign in _HAN_SCALES:
            total, section, digit = total + ((section + digit) or 1) * _HAN_SCALES[sign], 0, 0
    if not is_full and len(signs) > 1 and digit and signs[-2] in "百千万亿":  # "两万八": 8 counts the next lower place
        digit *= {**_HAN_TENS, **_HAN_SCALES}[signs[-2]] // 10
    return float(total + section + digit)


def number_and_unit_of_compound(word: str) -> tuple[float, str] | None:
    """The number and the unit within one word ("семилетняя", "dreitägig"); the unit may be empty."""
    rest, number = word, 0.0
    while True:
        for size in range(min(len(rest), _MAX_WORD_LENGTH), 2, -1):
            if rest[:size] in COMPOUND_HEADS:
                head_number = COMPOUND_HEADS[rest[:size]]
                number = (number or 1) * head_number if rest[:size] in SCALES else number + head_number
                rest = rest[size:]
                break
        else:
            break
    if not number:
        return None
    for size in range(min(len(rest), 10), 1, -1):
        if rest[:size] in COMPOUND_STEMS:
            return number, COMPOUND_STEMS[rest[:size]]
    return None
