"""Numbers and money in a text: digits or words, with scale, unit or currency on either side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from app.core.text.canonical.number_words import HAN_ANY, HAN_NUMBER, WORD_NUMBER, read_han, read_words
from app.core.text.canonical.units import CURRENCIES, SCALES, UNITS, YEN_OR_YUAN, alternatives
from app.core.text.canonical.values import Value, plain
from app.core.text.patterns import compiled

_LONGEST: Final = 15  # digits; longer runs are codes
_AMOUNT: Final = (
    r"\d{1,3}(?:[.,'’\u00a0\u202f ]\d{3}(?!\d)){1,5}(?:[.,]\d{1,6}(?!\d))?|\d{1,40}(?:[.,]\d{1,9}(?![\d]))?"
)
_CURRENCY: Final = alternatives(CURRENCIES)
_BEFORE: Final = alternatives({word: code for word, code in CURRENCIES.items() if not word.isalpha() or len(word) == 3})  # noqa: PLR2004 - ISO codes
_SCALE: Final = alternatives(SCALES)
_UNIT: Final = alternatives(UNITS)
_AFTER: Final = (
    rf"(?:\s?(?P<scale>{_SCALE})\.?)?"
    rf"(?:[\s-]?(?:swiss |us |u\.s\. |canadian |швейцарских )?(?P<currency>{_CURRENCY})|[\s-]?(?P<unit>{_UNIT}))?"
)
_NO_LETTER: Final = r"(?<![^\W_\u3040-\u30ff\u3400-\u9fff])"
"""No word's end stands before it; Chinese and Japanese put no blank between their signs and digits."""
_NUMBER: Final = compiled(
    rf"{_NO_LETTER}(?<!\d[.,])(?P<sign>(?<!\d)(?<!\d\s)[-−+]|百分之)?(?P<amount>{_AMOUNT})"
    rf"(?:\s?(?:[-–—]|to|до)\s?(?P<second>{_AMOUNT}))?(?:st|nd|rd|th|-?го|-?й|-?я|-?е|-?х|-?м)?(?![^\W\d_]{{0,2}}\d){_AFTER}"
)
_CURRENCY_BEFORE: Final = compiled(rf"{_NO_LETTER}(?P<currency>{_BEFORE})\s?\Z")
_LONGEST_BEFORE: Final = 5  # characters: a code and a blank
_AFTER_WORDS: Final = compiled(_AFTER)
_ONE_UNIT: Final = compiled(
    rf"\b(?:an?|each|per|every|через|за|eine?r?|полтора|пол)\s?(?P<unit>{_UNIT})", re.IGNORECASE
)
_DEGREES: Final = {"°C": ("°",), "°F": ("°",), "°": ("°C", "°F")}
"""Where the scale is left out it is open; said, it is not the other one."""
_PART_OF_UNIT: Final = compiled(
    rf"(?<![^\W_])(?:(?P<half>half|пол|полу?|半)|quarter of|четверть)(?:-|\s)?(?:an?\s)?(?P<unit>{_UNIT})",
    re.IGNORECASE,
)
_GROUPED: Final = compiled(r"[ '’\u00a0\u202f]")
_NO_POINTS: Final = str.maketrans("", "", ".,")
_HAN: Final = compiled(rf"(?P<sign>百分之)?(?P<amount>{HAN_NUMBER.pattern})(?:多|余)?{_AFTER}")


def find_numbers(text: str) -> Iterator[Value]:
    """Numbers and money of a text of small letters: digits, then words, then Chinese numerals."""
    inside: set[int] = set()
    for match in _NUMBER.finditer(text):
        yield from _from_digits(match)
        inside.update(range(match.start(), match.end()))
    for match in WORD_NUMBER.finditer(text):
        amount = read_words(match.group())
        after = _AFTER_WORDS.match(text, match.end())
        if amount is not None and after is not None and match.start() not in inside:
            yield _value(match.start(), after.end(), [amount], _around(after), is_word=True)
    if HAN_ANY.search(text):
        for match in _HAN.finditer(text):
            amount = read_han(match["amount"])
            if amount is not None and match.start() not in inside:
                scale, money, unit = _around(match)
                told = (scale, money, "%" if match["sign"] else unit)
                yield _value(match.start(), match.end(), [amount], told, is_word=True)


def find_single_units(text: str) -> Iterator[Value]:
    """One of a unit, or a part of one ("a week", "через неделю", "half an hour"); only of use as what a text gives."""
    for match in _ONE_UNIT.finditer(text):
        yield _value(match.start(), match.end(), [1.0], ("", "", match["unit"]), is_word=True)
    for match in _PART_OF_UNIT.finditer(text):
        amount = 0.5 if match["half"] else 0.25
        yield _value(match.start(), match.end(), [amount], ("", "", match["unit"]), is_word=True)


_SHARES: Final = {
    "50": r"half|половин\w{1,2}|hälfte|moitié|mitad|一半|半数",
    "25": r"(?:a|one) quarter|четверт[ьи]|viertel|四分之一",
    "75": r"three[ -]quarters|три четверти|四分之三",
    "33": r"(?:a|one)[ -]third|треть|трети|drittel|三分之一",
    "20": r"(?:a|one)[ -]fifth|пят(?:ая|ую) часть|五分之一",
    "10": r"(?:a|one)[ -]tenth|десят(?:ая|ую) часть|十分之一",
}
_SHARE: Final = {percent: compiled(rf"(?<![a-zа-яё])(?:{words})(?![a-zа-яё])") for percent, words in _SHARES.items()}


def find_shares(text: str) -> Iterator[str]:
    """Shares that are written out ("half of the team"), in percent; only of use as what a text gives."""
    for percent, pattern in _SHARE.items():
        if pattern.search(text):
            yield f"n:{percent}|%"


def readings(amount: str) -> list[float]:
    """What digits may mean: "5,000" is five thousand, or five; "1.150" likewise."""
    joined = _GROUPED.sub("", amount)
    points = [sign for sign in joined if sign in ".,"]
    if len(points) == 0:
        return [float(joined)]
    last = max(joined.rfind("."), joined.rfind(","))
    whole, decimals = joined[:last], joined[last + 1 :]
    as_decimal = float(whole.translate(_NO_POINTS) + "." + decimals)
    as_group = float(joined.translate(_NO_POINTS))
    if len(set(points)) == 1 and len(points) > 1:
        return [as_group]
    if len(points) == 1 and len(decimals) == 3 and whole not in {"", "0"}:  # noqa: PLR2004 - groups of three
        return [as_group] if points == [","] else [as_group, as_decimal]
    return [as_decimal]


def _from_digits(match: re.Match[str]) -> Iterator[Value]:
    scale, money, unit = _around(match)
    before = _CURRENCY_BEFORE.search(match.string[max(0, match.start() - _LONGEST_BEFORE) : match.start()])
    first = match.start() - len(before.group()) if before else match.start("amount")
    money = money or (before["currency"] if before else "")
    unit = "%" if match["sign"] == "百分之" else unit
    for name in ("amount", "second"):
        if match[name] is None or len(match[name]) > _LONGEST + 5:
            continue
        amounts = readings(match[name])
        if name == "amount" and match["sign"] in {"-", "−"}:
            amounts = [-amount for amount in amounts]
        start = first if name == "amount" else match.start(name)
        end = match.end() if name == "second" or match["second"] is None else match.end(name)
        yield _value(start, end, amounts, (scale, money, unit), parts=_GROUPED.split(match[name]))


def _around(match: re.Match[str]) -> tuple[str, str, str]:
    return ((match["scale"] or ""), (match["currency"] or ""), (match["unit"] or ""))


def _value(
    start: int,
    end: int,
    amounts: Iterable[float],
    around: tuple[str, str, str],
    *,
    parts: Iterable[str] = (),
    is_word: bool = False,
) -> Value:
    scale, money, unit = around
    code, (base, factor) = CURRENCIES.get(money, ""), UNITS.get(unit, ("", 1.0))
    bare = list(amounts)
    if code:
        bare = bare[:1]
    scaled = [amount * SCALES[scale] for amount in bare] if scale else bare
    both = [*scaled, *(bare if scale == "m" and not code else [])]
    gives = [f"n:{plain(amount)}" for amount in {*both, *(abs(amount) for amount in both), *_pieces(parts)}]
    if code:
        codes = YEN_OR_YUAN if code == "YEN" else (code,)
        needs = [f"m:{plain(amount)}|{each}" for amount in scaled for each in codes]
        gives += [f"c:{each}" for each in codes]
    elif base:
        needs = [f"n:{plain(amount * factor)}|{base}" for amount in scaled]
        gives += [f"n:{plain(amount)}|{other}" for amount in scaled for other in _DEGREES.get(base, ())]
    else:
        needs = [f"n:{plain(amount)}" for amount in both]
        gives += [f"n:{plain(abs(amount))}|*" for amount in both]
        if scale == "m":  # or metres
            needs += [f"n:{plain(amount)}|m" for amount in bare]
    return Value(
        kind="money" if code else "number",
        start=start,
        end=end,
        needs=tuple(needs),
        gives=tuple(dict.fromkeys([*needs, *gives])),
        amount=scaled[0] * (factor if base and not code else 1),
        unit=code or base,
        is_word=is_word,
    )


def _pieces(parts: Iterable[str]) -> set[float]:
    """The numbers that a blank between digits may part: "10 200" is one number, or two."""
    found = [part for part in parts if part.isdigit()]
    return {float(part) for part in found} if len(found) > 1 else set()
