"""Numbers that are written out, as tables: another language is another table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.text.patterns import compiled

_UNITS: Final = """one 1|two 2|three 3|four 4|five 5|six 6|seven 7|eight 8|nine 9|ten 10|eleven 11|twelve 12|thirteen 13
|fourteen 14|fifteen 15|sixteen 16|seventeen 17|eighteen 18|nineteen 19|twenty 20|thirty 30|forty 40|fifty 50|sixty 60
|seventy 70|eighty 80|ninety 90|dozen 12
|один одна одно одного одной одному одну одним 1|два две двух двум двумя 2|три трех трёх трем трём тремя 3
|четыре четырех четырёх четырем четырём четырьмя 4|пять пяти пятью 5|шесть шести шестью 6|семь семи семью 7
|восемь восьми восемью восьмью 8|девять девяти девятью 9|десять десяти десятью 10|одиннадцать одиннадцати 11
|двенадцать двенадцати 12|тринадцать тринадцати 13|четырнадцать четырнадцати 14|пятнадцать пятнадцати 15
|шестнадцать шестнадцати 16|семнадцать семнадцати 17|восемнадцать восемнадцати 18|девятнадцать девятнадцати 19
|двадцать двадцати двадцатью 20|тридцать тридцати тридцатью 30|сорок сорока 40|пятьдесят пятидесяти 50
|шестьдесят шестидесяти 60|семьдесят семидесяти 70|восемьдесят восьмидесяти 80|девяносто девяноста 90
|сто ста 100|двести двухсот 200|триста трехсот трёхсот 300|четыреста четырехсот четырёхсот 400|пятьсот пятисот 500
|шестьсот шестисот 600|семьсот семисот 700|восемьсот восьмисот 800|девятьсот девятисот 900|полтора полторы 1.5
|anderthalb anderthalbe 1.5|zweieinhalb 2.5|dreieinhalb 3.5|viereinhalb 4.5|fünfeinhalb 5.5|sechseinhalb 6.5
|zwei 2|drei 3|vier 4|fünf 5|sechs 6|sieben 7|acht 8|neun 9|zehn 10|zwölf 12|zwanzig 20
|deux 2|trois 3|quatre 4|cinq 5|sept 7|huit 8|neuf 9|dix 10|douze 12|vingt 20|cent 100
|dos 2|tres 3|cuatro 4|cinco 5|seis 6|siete 7|ocho 8|nueve 9|diez 10|doce 12|veinte 20|cien 100"""
_SCALES: Final = """hundred 100|thousand 1000|million millions 1000000|billion billions 1000000000
|тысяча тысячи тысяч тысячу тысяче тысячам тысячами тыс 1000
|миллион миллиона миллионов миллиону миллионе миллионам млн 1000000
|миллиард миллиарда миллиардов млрд 1000000000|hundert 100|tausend mille mil 1000|millionen millones 1000000"""


_HALVES: Final = frozenset({"half", "половиной"})
_ORDINALS: Final = """first первого первое 1|second второго второе 2|third третьего третье 3
|fourth четвертого четвёртого 4|fifth пятого 5|sixth шестого 6|seventh седьмого 7|eighth восьмого 8|ninth девятого 9
|tenth десятого 10|eleventh одиннадцатого 11|twelfth двенадцатого 12|thirteenth тринадцатого 13
|fourteenth четырнадцатого 14|fifteenth пятнадцатого 15|sixteenth шестнадцатого 16|seventeenth семнадцатого 17
|eighteenth восемнадцатого 18|nineteenth девятнадцатого 19|twentieth двадцатого 20|thirtieth тридцатого 30"""


def _table(text: str) -> dict[str, float]:
    table: dict[str, float] = {}
    for row in text.replace("\n", "").split("|"):
        *words, value = row.split()
        if value[0].isdigit():
            table.update(dict.fromkeys(words, float(value)))
    return table


WORDS: Final[Mapping[str, float]] = _table(_UNITS)
SCALES: Final[Mapping[str, float]] = _table(_SCALES)
_FIRSTS: Final = _table(_ORDINALS)
ORDINALS: Final[Mapping[str, int]] = {
    **{word: int(value) for word, value in _FIRSTS.items()},
    **{
        f"{tens}{between}{word}": base + int(value)
        for tens, between, base in (
            ("twenty", "-", 20),
            ("twenty", " ", 20),
            ("thirty", "-", 30),
            ("двадцать", " ", 20),
            ("тридцать", " ", 30),
        )
        for word, value in _FIRSTS.items()
        if value < 10 and word.isascii() == tens.isascii()  # noqa: PLR2004 - twenty-first to twenty-ninth
    },
}
"""Days of a month, written out."""

_ANY = "|".join(sorted({*WORDS, *SCALES}, key=len, reverse=True))
WORD_NUMBER: Final = compiled(
    rf"\b(?:(?:an?|half an?)\s+(?=hundred\b|thousand\b|million\b|billion\b|dozen\b))?"
    rf"(?:{_ANY})\b(?:(?:\s+and\s+|\s+|-)(?:{_ANY})\b|\s+(?:and\s+a\s+half|с\s+половиной)\b){{0,9}}"
)
"""One or more number words in a row."""

_DIGITS: Final[Mapping[str, int]] = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
}
_TENS: Final[Mapping[str, int]] = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS: Final[Mapping[str, int]] = {"万": 10_000, "亿": 100_000_000}
HAN_SIGNS: Final = "零〇一二两三四五六七八九十百千万亿"
_BETWEEN: Final = compiled(r"[\s-]+")
HAN_ANY: Final = compiled(f"[{HAN_SIGNS}]")
HAN_NUMBER: Final = compiled(rf"[{HAN_SIGNS}]{{1,20}}(?:点[零一二三四五六七八九]{{1,6}})?")


def read_words(text: str) -> float | None:
    """The number that these words make ("one million two hundred thousand"), ``None`` when they make none."""
    total = group = last = 0.0
    for word in _BETWEEN.split(text):
        if last and word in WORDS and word != "dozen" and not _goes_on(last, WORDS[word]):
            return None  # "three two-week sprints" are two numbers
        last = WORDS.get(word, 0.0)
        if word in WORDS:
            group = group * WORDS[word] if word == "dozen" and group else group + WORDS[word]
        elif word in _HALVES:
            group += 0.5
        elif word in SCALES:
            scale = SCALES[word]
            if scale > 100:  # noqa: PLR2004 - hundreds stay within their group
                total, group = total + (group or 1) * scale, 0.0
            else:
                group = (group or 1) * scale
    return total + group or None


def _goes_on(last: float, following: float) -> bool:
    """Whether two words make one number: "forty-five", "двести сорок"."""
    return (last >= 20 and following < 10) or (last >= 100 and following < 100)  # noqa: PLR2004 - tens, hundreds


def read_han(text: str) -> float | None:
    """The number that Chinese or Japanese numerals make, ``None`` when they make none."""
    whole, _, decimals = text.partition("点")
    total = section = digit = 0
    for sign in whole:
        if sign in _DIGITS:
            digit = digit * 10 + _DIGITS[sign] if digit and whole.isdigit() else _DIGITS[sign]
        elif sign in _TENS:
            section, digit = section + (digit or 1) * _TENS[sign], 0
        else:
            total, section, digit = total + ((section + digit) or 1) * _MYRIADS[sign], 0, 0
    value = float(total + section + digit)
    if decimals:
        value += float("0." + "".join(str(_DIGITS[sign]) for sign in decimals))
    return value or None
