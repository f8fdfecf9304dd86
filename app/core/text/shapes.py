"""Makes tokens of texts with a known shape: addresses, paths, numbers, Chinese dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from app.core.text.moments import is_day
from app.core.text.numerals import (
    HAN_DIGITS,
    number_and_unit_of_compound,
    number_of_han,
    number_of_han_place,
    number_words_at_start,
    number_words_within,
    numbers_of_han,
    readings_of_digits,
)
from app.core.text.patterns import compiled
from app.core.text.scan_results import Token
from app.core.text.scripts import is_kana
from app.core.text.tables import (
    CLOCK,
    COMPOUND_STEMS,
    CURRENCIES,
    EARLY,
    ENDINGS,
    FRACTION_SIGNS,
    HALF_SIGNS,
    HEADS,
    LATE,
    MONTHS,
    NIGHT,
    NUMBER_ENDINGS,
    ORDINAL_ENDINGS,
    SCALES,
    SPANS,
    UNITS,
)
from app.core.text.vocabulary import SCANNED

_DAY_MONTH_YEAR: Final = compiled(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
_YEAR_MONTH_DAY: Final = compiled(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})")
_YEAR_MONTH: Final = compiled(r"(\d{4})[-/](0[1-9]|1[0-2])")
_MONTH_YEAR: Final = compiled(r"(0?[1-9]|1[0-2])[./]((?:19|20)\d{2})")
_HAN_BEFORE: Final = compiled(r"\A[\u3400-\u9fff]{1,255}")
"""Chinese words directly before a file's name, without a space: 修改了config.py."""
_CLOCK: Final = compiled(r"(\d{1,3})[:.](\d{2})(?::(\d{2}))?")
_HALF_DAY_IN_ONE: Final = compiled(r"(1[0-2]|[1-9])([0-5]\d)()[ap]m")
"""A time without a sign between hour and minutes: "730pm"."""
_FRACTION: Final = compiled(r"(\d{1,4})/(\d{1,4})")
_CODE: Final = compiled(r"\d{1,20}(?:-\d{1,20}){2,8}")
_YEAR: Final = r"20(?!00)[0-4]\d"
_NUMBER_OF_YEAR: Final = compiled(
    rf"(?!{_YEAR}/{_YEAR}$)(?:(?:(?:\d{{3,5}}|3[2-9]|[4-9]\d)(?:/\d{{1,4}})?|1[3-9]|2\d|3[01])/{_YEAR}|{_YEAR}/\d{{3,6}})"
)
"""A reference number with its year, such as 311/2026, which is not a fraction of two thousand."""
_LONG_BEHIND: Final = compiled(r"\d{1,3}-\d{3,12}(?!000$)\d{3}|\d{1,5}-0\d{3,12}")
"""Two numbers that are not a range, since the second is too much longer than the first."""
_HOURS_IN_ONE: Final = compiled(r"(?:h|ч|std|uhr)(\d{1,2})(?:m|min|м|мин)?")
_SECONDS_IN_ONE: Final = compiled(r"m(\d{1,2}(?:\.\d{1,6})?)s")
_SIMPLE_VERSION: Final = compiled(r"v\d{1,5}")
_SQUASHED: Final = compiled(r"[\W_]")
_SQUASHED_WITHIN: Final = compiled(r"[^\w:;,\n]|_|,(?=\S)")
"""Separators within one identifier, without those of a time of day, a list or an end of a line."""
_ADDRESS: Final = compiled(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}")
"""A network address; it is one even if it could be a number with separated thousands."""
_DIMENSIONS: Final = compiled(r"[xх]\d{1,6}(?:[xх]\d{1,6})?")
_POWERS: Final = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")
_FIRST_OF_INDIA, _LAST_OF_INDIA = "\u0900", "\u0dff"
"""Where the scripts begin and end that write what follows a number in one word with it."""
FILE: Final = "f:"
"""The prefix of the form of a file's name without its folders."""
_TRAILING: Final = ".,;:!?)]}…»”'\"*_"
_CENTURY: Final = 2000
_HALF_DAY: Final = 12
_LOCAL: Final = 9
"""The last digits of a telephone number, without those of the country or the trunk."""
_MAX_UNIT_LENGTH: Final = 6
_MIN_CODE_DIGITS: Final = 9
_MAX_LETTERS_AFTER_CODE: Final = 4
"""The most capitals after the number of a contract or a case: "45-CB"."""
_LONG: Final = 3
"""The fewest digits of a number that identifies something by itself."""
_MIN_COMPOUND_LENGTH: Final = 5
_WEEKDAYS: Final = {sign: day for day, sign in enumerate("一二三四五六日")} | {"天": 6}
_STEPS: Final = {"上": -1, "上上": -2, "下": 1, "下下": 2, "这": 0, "本": 0}
_YEARS: Final = {"今年": 0, "明年": 1, "去年": -1, "后年": 2, "前年": -2}
_BEHIND_DIGITS: Final = UNITS.keys() | SCALES.keys() | CURRENCIES.keys() | MONTHS.keys() | CLOCK | LATE | EARLY | NIGHT
"""Words that may follow digits without a space: "30min"; the letter of "28E" is not one of them."""
_MINUTES: Final = {"一刻": 15, "三刻": 45} | dict.fromkeys(HALF_SIGNS, 30)


def squashed(text: str) -> str:
    """Only the letters and digits of a text."""
    return _SQUASHED.sub("", text)


def squashed_within(text: str) -> str:
    """A text to be searched for identifiers, without separators within them; separators between them are kept."""
    return _SQUASHED_WITHIN.sub("", text)


def address(text: str) -> str:
    """A URL without its scheme, ``www.``, escapes and the slash at its end."""
    bare = text.partition("://")[2] or text
    return unquote(bare.removeprefix("www.")).rstrip("/" + _TRAILING).lower()


def url(match: re.Match[str]) -> Iterator[Token]:
    """The URL of a page."""
    text = match.group().rstrip(_TRAILING)
    yield _token("url", text, match.start(), {f"s:{address(text)}"})


def email(match: re.Match[str]) -> Iterator[Token]:
    """An e-mail address, or a login to a device, whose own address is told alone too: "root@10.0.0.5"."""
    text, start = match.group().rstrip(".-"), match.start()
    host = text.partition("@")[2]
    if not _ADDRESS.fullmatch(host):
        yield _token("email", text, start, {f"s:{text}"})
        return
    host_at = start + len(text) - len(host)
    yield Token("email", text, start, host_at, {f"s:{text}"})
    yield _version(host, host_at)


def path(match: re.Match[str]) -> Iterator[Token]:
    """A file or folder. It is also found by its last part alone, if its folders occur anywhere."""
    text = match.group().rstrip(".,-")
    if text[1:].isdecimal():  # "216 W /230", no folder
        yield from _digit_tokens(text[1:], match.start() + 1)
        return
    forms = {f"s:{part}" for part in (text, _HAN_BEFORE.sub("", text)) if part}
    parts = [part for part in text.replace("\\", "/").split("/") if part.strip(".~")]
    if parts:
        last = _HAN_BEFORE.sub("", parts[-1]) or parts[-1]
        forms.add("&s:".join([f"{FILE}{last}", *parts[:-1]]))
    yield _token("path", text, match.start(), forms)


def version(match: re.Match[str]) -> Iterator[Token]:
    """A version, such as "v2.4.1"."""
    yield _version(match.group(), match.start())


def code(match: re.Match[str]) -> Iterator[Token]:
    """A UUID."""
    yield _token("identifier", match.group(), match.start(), {f"i:{squashed(match.group())}"})


def octets(match: re.Match[str]) -> Iterator[Token]:
    """The address of a device, or a fingerprint: bytes separated by colons."""
    yield _code_token(match.group(), match.start())


def phone(match: re.Match[str]) -> Iterator[Token]:
    """A telephone number."""
    digits = squashed(match.group())
    yield _token("identifier", match.group(), match.start(), {f"i:{digits}", f"i:{digits[-max(_LOCAL, 7) :]}"})


def iso(match: re.Match[str]) -> Iterator[Token]:
    """A day, perhaps with its time."""
    text, start = match.group(), match.start()
    yield _token("d", text[:10], start, [(int(text[:4]), int(text[5:7]), int(text[8:10]))])
    clock = _CLOCK.match(text, 11)
    if clock:
        yield _token("t", clock.group(), start + 11, _clock_parts(clock))


def date_apart(match: re.Match[str]) -> Iterator[Token]:
    """A day with spaces between its numbers: "28. 6. 2027", "2027. 6. 28."; numbers if there is no such day."""
    days = _days(match.group().replace(" ", ""))
    if days and all(map(is_day, days)):
        yield _token("d", match.group(), match.start(), days)
        return
    start = match.start()
    for piece in match.group().split(" "):
        yield from _digit_tokens(piece.rstrip("."), start)
        start += len(piece) + 1


def percent(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese percentage, such as "百分之十五"."""
    share = match["share"]
    yield Token(
        "n", share, match.start(), match.end(), [float(share) if share[0].isdecimal() else number_of_han(share)]
    )
    yield Token("w", "%", match.end(), match.end())


def parts(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese fraction, such as "四分之一"."""
    under = number_of_han(match["under"])
    if under:
        yield _token("f", match.group(), match.start(), number_of_han(match["over"]) / under)


def han_date(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese date, such as "2026年9月12日", "九月十二日"."""
    yield _token("d", match.group(), match.start(), [tuple(_integer(match[part]) for part in ("year", "month", "day"))])


def reference(match: re.Match[str], cased: str) -> Iterator[Token]:
    """The number of a letter, a case or an invoice: "AH/2026/1187". Without capitals only its numbers count."""
    text, start = match.group(), match.start()
    if cased[start : match.end("names")].isupper():
        yield _code_token(text, start)
    else:
        yield from _known_words(match["names"].split("/"), start)
        yield from _digit_tokens(match["numbers"], match.start("numbers"))


def han_day(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese day of the month, such as "12号"."""
    yield _token("o", match.group(), match.start(), _integer(match["lone"]))


def han_time(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese time, such as "八点半"; numerals with only 点 may also be points."""
    part, hour = match["part"] or "", match["hour"]
    minute = _MINUTES.get(part.strip()) or _integer(match["minute"] or match["minutes"]) or 0
    is_plain = bool(part or match["minute"] or match["minutes"]) or hour[0].isdecimal()
    yield _token("t", match.group(), match.start(), (_integer(hour), minute, None, "" if is_plain else "?"))


def weekday(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese weekday, such as "下周五"."""
    yield _token("weekday", match.group(), match.start(), (_STEPS.get(match["which"] or ""), _WEEKDAYS[match["name"]]))


def span(match: re.Match[str]) -> Iterator[Token]:
    """A Chinese span, such as "上个月", "明年"."""
    text = match.group()
    if text in _YEARS:
        yield _token("span", text, match.start(), (_YEARS[text], "year"))
        return
    name = "weekend" if text.endswith("末") else "month" if text.endswith("月") else "week"
    yield _token("span", text, match.start(), (_STEPS.get(text[:2], _STEPS[text[0]]), name))


def word(match: re.Match[str]) -> Iterator[Token]:
    """A known word."""
    yield _token("w", match.group(), match.start())


def syllables(match: re.Match[str]) -> Iterator[Token]:
    """A Korean word of numbers, a unit or another known word, and an ending; nothing if the word has any other part."""
    text, start = match.group(), match.start()
    numbers, size = ([], 0) if text in SCANNED else number_words_at_start(text)
    if len(numbers) > 1 and text[size - numbers[-1][1] : size] in UNITS and not _is_unit_behind(match, size):
        size -= numbers.pop()[1]  # the word for 1 is also the word for "day"
    if len(numbers) > 1 and text[size - numbers[-1][1] :] in ENDINGS:  # the word for 2 is also the start of endings
        size -= numbers.pop()[1]
    known = next(
        (end for end in range(min(len(text), size + _MAX_UNIT_LENGTH), size, -1) if text[size:end] in SCANNED), size
    )
    is_told = known > size or len(numbers) > 1 or match.string[max(0, start - 1) : start].isdigit()
    if (known < len(text) and text[known:] not in ENDINGS) or not is_told:
        return
    for word, length in numbers:
        yield Token("w", word, start, start + length)
        start += length
    if known > size:
        yield _token("w", text[size:known], start)


def _is_unit_behind(match: re.Match[str], size: int) -> bool:
    following = match.string[match.end() : match.end() + 1 + _MAX_UNIT_LENGTH]
    ends = range(2, len(following) + 1)
    is_blank = size == len(match.group()) and following[:1] == " "
    return is_blank and any(following[1:end] in UNITS or following[1:end] in CURRENCIES for end in ends)


def han_number(match: re.Match[str]) -> Iterator[Token]:
    """Chinese numerals, also as a scale after digits. After 周 the numeral that was read as a weekday is included."""
    text, start = match.group(), match.start()
    text_before = match.string[max(0, start - 3) : start]
    if text[0] not in HAN_DIGITS and SPANS.get(text_before[-2:-1]) == "week":
        both = [number_of_han(text_before[-1] + text), number_of_han(text)]
        yield _token("n", text, start, [one for one in (both[::-1] if text_before[:1] in _STEPS else both) if one])
    elif (place := number_of_han_place(text)) and _is_before_japanese(match):
        yield _token("n", text, start, [place])
    elif any(values := numbers_of_han(text, is_full=_is_before_japanese(match))) or text in SCALES or text == "零":
        yield _token("n", text, start, values or [0.0])


def _is_before_japanese(match: re.Match[str]) -> bool:
    following = match.string[match.end() : match.end() + 1]
    return is_kana(following) or CURRENCIES.get(following) == "JPY"


def fraction(match: re.Match[str]) -> Iterator[Token]:
    """A fraction in one character, such as "½"."""
    yield _token("f", match.group(), match.start(), FRACTION_SIGNS[match.group()])


def sign(match: re.Match[str]) -> Iterator[Token]:
    """The sign of a currency or a unit; the sign of degrees for either scale."""
    yield Token("s", match.group()[:1], match.start(), match.end())


def plain(text: str, start: int, cased: str) -> Iterable[Token]:
    """Letters alone: a known word or a number; nothing if they are neither."""
    if text in SCANNED:
        return (_token("w", text, start),)
    return run(text, start, cased) if text[:3] in HEADS or not text.isalpha() else ()


def run(text: str, start: int, cased: str) -> Iterator[Token]:
    """Letters, perhaps with digits, hyphens and apostrophes: words, or an identifier."""
    text = text.removesuffix("'s")
    if text in SCANNED:
        yield _token("w", text, start)
        return
    if not _POWERS.isdisjoint(text):  # a part of a formula
        return
    pieces = [text] if text.isalpha() else text.replace("'", "-").split("-")
    if not any(letter.isdigit() for letter in text):
        yield from _known_words(pieces, start)
        return
    if "/" in text:
        yield from _code_or_year(text, start, cased)
        return
    is_phrase = len(pieces) > 1 and all(piece.isalpha() or piece.isdecimal() for piece in pieces)
    if is_phrase and cased[start : start + len(text)].islower() and not SCANNED.isdisjoint(pieces):  # "mid-2026"
        yield from _known_words(pieces, start)
        return
    yield _identifier(text, start, pieces)


def _code_or_year(text: str, start: int, cased: str) -> Iterator[Token]:
    # "A-2026-311/2" is a code, "pre-2020/21" is not.
    if cased[start].isupper():
        yield _code_token(text, start)
        return
    head, _, tail = text.partition("/")
    yield from run(head, start, cased)
    yield from _digit_tokens(tail, start + len(head) + 1)


def decimal(match: re.Match[str]) -> Iterator[Token]:
    """A decimal without the zero before its point, such as ".024"."""
    text = f"0{match.group()}"
    yield Token("n", text, match.start(), match.end(), [float(text)])


def number(match: re.Match[str], cased: str) -> Iterator[Token]:
    """Digits with what directly follows them: "5pm", "12-го", "18k", "42-year-old", "17h30", "4f5e", "45-CB"."""
    digits, half, tail, start = match["digits"], match["half"], match["tail"], match.start()
    if times := list(_half_day(match) if half else _minutes_and_seconds(digits, tail or "", start)):
        yield from times
        return
    if not tail or _FIRST_OF_INDIA <= tail[0] <= _LAST_OF_INDIA:  # "9:30కి": "at 9:30"
        yield from _digit_tokens(digits, start)
        return
    clock, minutes = _CLOCK.fullmatch(digits), _HOURS_IN_ONE.fullmatch(tail)
    name, *more = tail.removeprefix("-").split("-")
    if clock and tail in {"z", "utc", "h", "uhr"}:
        yield _token("t", match.group(), start, _clock_parts(clock, "0"))
    elif digits.isdecimal() and not more and name in ORDINAL_ENDINGS:
        yield _token("o", match.group(), start, int(digits[:9]))
    elif digits.isdecimal() and minutes and len(digits) <= 2:  # noqa: PLR2004 - hours
        yield _token("t", match.group(), start, (int(digits), int(minutes[1]), None, "h"))
    elif digits != "0" and _DIMENSIONS.fullmatch(tail):
        sides = tail.replace("х", "x").split("x")[1:]
        for side in (digits, *sides):
            yield from _digit_tokens(side, start)
            start += len(side) + 1
    elif not more and name not in SCANNED and not _POWERS.isdisjoint(name):  # "3x²"
        return
    elif not _ends_with_code(tail, cased[match.start("tail") : match.end()]) and (
        name in _BEHIND_DIGITS or name in NUMBER_ENDINGS or tail[0] == "-" or _unit_of_compound(name)
    ):
        yield from _digit_tokens(digits, start)
        yield from _known_words(
            [_unit_of_compound(piece) or piece for piece in (name, *more)], match.start("tail") + (tail[0] == "-")
        )
    else:
        yield _identifier(match.group(), start, match.group().split("-"))


def _ends_with_code(tail: str, cased: str) -> bool:
    letters = tail[1:]
    is_known = letters in SCANNED or letters in NUMBER_ENDINGS
    return (
        tail[0] == "-"
        and letters.isalpha()
        and len(letters) <= _MAX_LETTERS_AFTER_CODE
        and cased.isupper()
        and not is_known
    )


def _minutes_and_seconds(minutes: str, tail: str, start: int) -> Iterator[Token]:
    found = _SECONDS_IN_ONE.fullmatch(tail)
    if found and minutes.isdecimal():
        end = start + len(minutes)
        yield from _digit_tokens(minutes, start)
        yield Token("w", "min", end, end + 1)
        yield _token("n", found[1], end + 1, [float(found[1])])
        yield _token("w", "s", end + len(tail) - 1)


def _token(kind: str, text: str, start: int, data: object = None) -> Token:
    return Token(kind, text, start, start + len(text), data)


def _integer(digits: str | None) -> int | None:
    if not digits:
        return None
    return int(digits) if digits.isdecimal() else int(number_of_han(digits))


def _code_token(text: str, start: int) -> Token:
    return _token("identifier", text, start, {f"i:{squashed(text)}", f"s:{text}"})


def _version(text: str, start: int) -> Token:
    bare = text.removeprefix("v")
    network, _, host = bare.rpartition(".")
    short = {f"p:{network}&p:.{host}"} if bare.count(".") == 3 else set()  # noqa: PLR2004 - an address: ".10" may be told
    return _token("version", text, start, {f"v:{bare}", f"s:{bare}", f"n:{bare}", *short})


def _identifier(text: str, start: int, pieces: list[str]) -> Token:
    if text in UNITS:
        return _token("w", text, start)
    if _SIMPLE_VERSION.fullmatch(text):
        return _version(text, start)
    numbers = [piece for piece in pieces if piece.isdecimal()]
    codes = [piece for piece in pieces if not piece.isalpha()]
    names = [f"s:{piece}" for piece in pieces if piece.isalpha()]
    single = set[str]()
    if len(numbers) == 1:  # small numbers are in most texts: they only count together with the same names
        compound_parts = names if len(numbers[0]) < _LONG else []
        compound_parts += [f"s:{piece}" for piece in codes if piece not in numbers and len(piece) > _LONG]
        single = {"&".join([*compound_parts, f"n:{int(numbers[0][:20])}"])}
    elif len(codes) == 1 and len(pieces) > 1 and len(codes[0]) > 1:  # "N3-Packung"
        single = {f"s:{codes[0]}"}
    return _token("identifier", text, start, {f"s:{text}", f"i:{squashed(text)}", *single})


def _known_words(pieces: list[str], start: int) -> Iterator[Token]:
    for piece in pieces:
        if piece in SCANNED:
            yield _token("w", piece, start)
        elif piece.isdecimal():
            yield _token("n", piece, start, readings_of_digits(piece) or [0.0])
        elif len(piece) >= _MIN_COMPOUND_LENGTH and piece[:3] in HEADS:
            yield from _number_in_compound(piece, start)
        start += len(piece) + 1


def _number_in_compound(text: str, start: int) -> Iterator[Token]:
    if words := number_words_within(text):
        for word, size in words:
            yield Token("w", word, start, start + size)
            start += size
    elif compound := number_and_unit_of_compound(text):
        value, unit = compound
        yield _token("n", text, start, [value])
        if unit:
            yield Token("w", unit, start + len(text), start + len(text))


def _unit_of_compound(text: str) -> str:
    if text in SCANNED:
        return ""
    return next((COMPOUND_STEMS[text[:size]] for size in range(9, 3, -1) if text[:size] in COMPOUND_STEMS), "")


def _half_day(match: re.Match[str]) -> Iterator[Token]:
    """A time with its half of the day, such as "5 pm", "5-7 pm", "730pm". The half of the first of two is open."""
    half, start, pieces = match["half"], match.start(), match["digits"].split("-")
    sign = match.string[max(0, start - 2) : start].strip()[-1:]
    is_price = sign in CURRENCIES and not sign.isalnum()  # "£650pm"
    letter = half.strip()[0]
    for count, piece in enumerate(pieces, start=1):
        is_last = count == len(pieces)
        in_one = _HALF_DAY_IN_ONE.fullmatch(piece + half) if is_last and not is_price else None
        clock = _CLOCK.fullmatch(piece) or in_one
        if clock or (piece.isdecimal() and int(piece[:3]) <= _HALF_DAY):
            text = piece + half if is_last else piece
            hour = _clock_parts(clock) if clock else (int(piece[:3]), 0, None, "")
            yield _token("t", text, start, (*hour[:3], letter if is_last else hour[3]))
        start += len(piece) + 1


def _clock_parts(match: re.Match[str], half: str = "") -> tuple[int, int, int | None, str]:
    # A zero before the hour shows that the 24-hour clock is used.
    is_full = match[1][0] == "0"
    return int(match[1]), int(match[2]), int(match[3]) if match[3] else None, half or ("0" if is_full else "")


def _digit_tokens(digits: str, start: int) -> Iterator[Token]:
    token = None if " " in digits and "-" in digits else _digits_in_one(digits, start)  # "700-1 200"
    if token:
        yield token
        return
    separator = next((sign for sign in "-/,:'" if sign in digits), "")
    for piece in digits.split(separator) if separator else ():
        if piece.strip("."):
            yield from _digit_tokens(piece.rstrip("."), start)
        start += len(piece) + 1


def _digits_in_one(digits: str, start: int) -> Token | None:
    amounts = [] if _ADDRESS.fullmatch(digits) else readings_of_digits(digits)
    if digits.isdecimal() or " " in digits:
        return _token("n", digits, start, amounts or [float(digits[:30].replace(" ", ""))])
    if _is_code_number(digits):
        return _code_token(digits, start)
    if days := _days(digits):
        return _token("d", digits, start, days)
    if match := _FRACTION.fullmatch(digits):
        return _token("f", digits, start, int(match[1]) / max(int(match[2]), 1))
    match = _CLOCK.fullmatch(digits)
    if amounts or match:
        return (
            _token("n", digits, start, amounts)
            if amounts or not match
            else _token("t", digits, start, _clock_parts(match))
        )
    is_version = not set(digits) & set("-/,:'")
    return _version(digits, start) if is_version else None


def _is_code_number(digits: str) -> bool:
    if _NUMBER_OF_YEAR.fullmatch(digits) or _LONG_BEHIND.fullmatch(digits):
        return True
    return len(digits) >= _MIN_CODE_DIGITS and _CODE.fullmatch(digits) is not None and not _days(digits)


def _days(digits: str) -> list[tuple[int, int, int | None]]:
    """The days that digits may mean; empty if they are not a date."""
    if match := _YEAR_MONTH_DAY.fullmatch(digits):
        return [(int(match[1]), int(match[3]), int(match[4]))]
    if match := _DAY_MONTH_YEAR.fullmatch(digits):
        year = int(match[4]) + (_CENTURY if len(match[4]) == 2 else 0)  # noqa: PLR2004
        first, second = int(match[1]), int(match[3])
        if match[2] != ".":
            return [(year, second, first), (year, first, second)]
        is_version = len(match[4]) == 2 and not is_day((year, second, first))  # noqa: PLR2004 - "2.0.30"
        return [] if is_version else [(year, second, first)]
    if match := _YEAR_MONTH.fullmatch(digits):
        return [(int(match[1]), int(match[2]), None)]
    match = _MONTH_YEAR.fullmatch(digits)
    return [(int(match[2]), int(match[1]), None)] if match else []
