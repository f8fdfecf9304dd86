"""Finds names, quoted titles, amounts, dates and codes as written, for anchors, recall and the offline model.

They are only copied, so each is found as it is written. What a value *means*, and whether a summary may state it, is
decided in ``values.py``. Every pattern runs in linear time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from app.core.text.languages.combined_words import alternatives, words_of
from app.core.text.languages.loading import languages
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.scripts import CHINESE_JAPANESE
from app.core.text.tables import (
    CURRENCIES,
    DATE_FILL,
    MONTHS,
    MONTHS_AND_VERBS,
    ORDINAL_ENDINGS,
    SCALES,
    UNITS,
    WORDS_AND_VERBS,
)
from app.core.text.word_lists import GENERIC, NOISE

Kind = Literal[
    "url", "email", "uuid", "quoted", "path", "date", "time", "money", "version", "code", "symbol", "number", "name"
]
EXACT_KINDS: Final[frozenset[Kind]] = frozenset(
    {"url", "email", "uuid", "path", "date", "time", "money", "version", "number", "code"}
)
"""Kinds of values that two texts hardly share by chance."""
NAME_KINDS: Final[frozenset[Kind]] = frozenset({"name", "quoted", "symbol"})
"""All other kinds: names, and words that other texts may have too."""


class Identifier(NamedTuple):
    """One exact value, verbatim, at ``start`` in its text."""

    kind: Kind
    text: str
    start: int


def _any_word(words: Iterable[str], *, capital: bool = False) -> str:
    by_letter: defaultdict[str, list[str]] = defaultdict(list)
    for word in sorted(words, key=lambda word: (-len(word), word)):
        # The words are grouped by their first letter, so that few are tried at each place.
        by_letter[word[0].upper() if capital else f"[{word[0]}{word[0].upper()}]"].append(re.escape(word[1:]))
    return "|".join(f"{first}(?i:{'|'.join(rest)})" for first, rest in by_letter.items())


def _any_month(words: Iterable[str]) -> str:
    every = frozenset(filter(str.isalpha, words))
    parts = (_any_word(every - MONTHS_AND_VERBS), _any_word(every & MONTHS_AND_VERBS, capital=True))
    return rf"(?:{'|'.join(filter(None, parts))})\b\.?"


def _any_unit(words: Iterable[str]) -> str:
    others = WORDS_AND_VERBS | words_of("values", "tight_units") | {word for word in NOISE if len(word) <= _SHORT}
    return _any_word(word for word in words if word not in others and word[0].islower() and "." not in word)


_SHORT: Final = 2
_FILL = rf"(?:\s(?:{'|'.join(sorted(DATE_FILL))}))?"
_MONTHS = _any_month(MONTHS)
_MONTHS_BEFORE_DAYS = (one.values.months for one in languages() if one.exact.month_first)
_FIRST_MONTHS = _any_month(word for months in _MONTHS_BEFORE_DAYS for _, words in months for word in words)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"  # the number of a day or a month: 8.0.36 is a version
_IN_HUNDREDS = r"\d{1,2}(?:,\d\d){1,5},\d{3}(?!\d)(?:\.\d{1,6})?"  # as India groups digits: 12,34,567.50
_AMOUNT = rf"(?:{_IN_HUNDREDS}|\d{{1,15}}(?:[.,\u00a0\u202f ]\d{{3}}(?!\d)){{0,5}}(?:[.,]\d{{1,6}})?)"
_SCALE = rf"(?:\s?+(?:{_any_word(word for word in SCALES if word.islower() and word.isalpha() and word != 'b')})\b\.?)"
_COINS = _any_unit(CURRENCIES.keys() - UNITS - GENERIC)
_CURRENCY = rf"(?:[$€£¥₽₹₴₩]|(?:{alternatives('exact', 'currencies')}|{_COINS})(?!\w))"
_UNIT = rf"(?:%|°[CF]?|(?:{alternatives('exact', 'counted')}|{_any_unit(UNITS)})\b)"
# These are fewer than the scanner has for ``values.py``: what is found here is stored, and weighted by fitted numbers.
_EXTENSIONS = (
    "py|pyi|js|mjs|ts|tsx|jsx|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|env|sql|html?|css|scss|go|rs|java|kt|swift|c|h"
    "|cpp|hpp|cs|rb|php|sh|bat|csv|tsv|xlsx?|docx?|pptx?|pdf|png|jpe?g|gif|svg|zip|gz|tar|log|lock|ipynb|proto|tf"
)
_LATIN_NAME = r"[A-Z\u00c0-\u00d6\u00d8-\u00de](?:[a-z\u00df-\u00f6\u00f8-\u00ff]|(?<=O)['’](?=[A-Z])){1,30}"
_CYRILLIC_NAME = r"[А-ЯЁІЇЄ][а-яёіїє]{1,30}"
_WITHIN_NAME = alternatives("exact", "within_names")
_ONE_NAME = rf"(?:{_LATIN_NAME}|{_CYRILLIC_NAME})(?![\w'’]*[A-Z_0-9])"
_NAMES = rf"(?<![\w'’@#]){_ONE_NAME}(?:(?:[ -]|\s(?:{_WITHIN_NAME})\s){_ONE_NAME}){{0,3}}"
_DAY_BEHIND = rf"\b{_FIRST_MONTHS}\s\d{{1,2}}(?:st|nd|rd|th)?\b(?![.,]\d)(?:,?\s\d{{4}}\b)?"
_BY_MONTH = rf"(?=\w++\.?\s\d)(?:{_DAY_BEHIND}|\b{_MONTHS}\s\d{{4}}\b)"
_ORDINAL = rf"(?:\.(?!\s(?i:{'|'.join(sorted(MONTHS_AND_VERBS))})\b)|-?(?:{'|'.join(sorted(ORDINAL_ENDINGS))}))?"

_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("url", r"(?:https?|ftp|wss?|postgres(?:ql)?|redis)://[^\s<>\"'»”`]{1,2000}|\bwww\.[^\s<>\"'»”`]{1,2000}"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"),
    ("uuid", r"(?<![\w-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![\w-])"),
    (
        "path",
        (
            r"(?<![\w/\\.~@-])(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[\w.@+-]{1,255}(?:[/\\][\w.@+-]{1,255}){0,40}/?"
            rf"|(?<![\w/\\.~@-])(?:[\w.@-]{{1,100}}+/){{0,20}}[\w@-]{{1,100}}+(?:\.[\w-]{{1,30}}+){{0,3}}\.(?:{_EXTENSIONS})\b"
        ),
    ),
    (
        "quoted",
        r"\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|«[^»\n]{2,80}»|「[^」\n]{1,80}」|`[^`\n]{1,80}`",
    ),
    (
        "date",
        (
            r"(?<![\w.-])\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z?)?)?(?![\w-])"
            rf"|(?<![\w.-]){_DAY}(?P<separator>[./-]){_DAY}(?P=separator)\d{{2}}(?:\d{{2}})?(?![\w])"
            rf"|\b\d{{1,2}}+(?!\d){_ORDINAL}{_FILL}\s{_MONTHS}(?:,?{_FILL}\s\d{{4}}\b)?"
            r"|\b\d{4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|\b\d{1,2}月\d{1,2}[日号]"
        ),
    ),
    ("time", r"\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[aApP]\.?[mM]\b\.?)?|\b\d{1,2}\s?[aApP]\.?[mM]\b"),
    (
        "money",
        rf"[$€£¥₽₹₴]\s?{_AMOUNT}{_SCALE}?|(?<![A-Za-z0-9_.,])(?>{_AMOUNT}){_SCALE}?\s?+{_CURRENCY}",
    ),
    ("version", r"(?<![\w.])v?\d{1,5}(?:\.\d{1,5}){2,4}(?:-[\w.]{1,30})?(?![\w])|\bv\d{1,4}(?:\.\d{1,5}){0,3}\b"),
    ("number", rf"(?<![\w.,])[-+]?(?>{_AMOUNT}){_SCALE}?\s?+{_UNIT}"),
    ("code", r"(?<![\w-])#?[A-Z]{1,8}-?\d{1,12}(?:[-_]?[A-Z0-9]{1,12}){0,3}(?![\w])|(?<!\w)#\d{1,9}\b"),
    (
        "symbol",
        (
            r"(?<![\w.])[A-Za-z_]\w{0,99}+(?:(?:\.|::|->)[A-Za-z_]\w{0,99}+){0,8}\(\)?"
            r"|(?<![\w])(?:[A-Za-z]\w{0,60})?_\w{1,99}(?<!_)|(?<![\w])[a-z]{1,30}+[A-Z]\w{0,60}"
            r"|(?<![\w])[A-Z][a-z]{1,30}+[A-Z]\w{0,60}|(?<![\w-])--?[a-z][\w-]{2,40}(?![\w])|(?<![\w])[A-Z]{2,12}(?![\w])"
            r"|(?<![\w])[a-zA-Z]{1,20}+\d{1,6}[a-zA-Z]{0,10}(?![\w])"
        ),
    ),
    ("number", rf"(?<![\w.,])[-+]?{_AMOUNT}(?:{_SCALE}|st\b|nd\b|rd\b|th\b)?(?![\w])|(?<!\w)\d{{1,40}}(?!\w)"),
    ("name", _NAMES),
)
_KIND_OF: Final[Mapping[str, Kind]] = {
    **{f"p{index}": kind for index, (kind, _) in enumerate(_PATTERNS)},
    "by_month": "date",
    "names": "name",
}
# In the middle of a word only an address, a quotation or an amount can begin: at other places no pattern is tried.
_MAY_BEGIN: Final = r"(?:(?<!\w)|(?=[$€£¥₽₹₴\"“„«「`\d]|https?://|ftp://|wss?://|postgres(?:ql)?://|redis://))"
# Only a date can begin with a lower-case word and a space: so most of a text is skipped at once.
_SMALL: Final = r"(?:[a-zа-я\u00df-\u00f6\u00f8-\u00ff]++|I)[,.;:!?]?+"
_PLAIN: Final = rf"(?<!\w)(?:{_SMALL}(?: (?!\d)|\Z))++"
_BEFORE_NUMBER: Final = rf"(?<!\w)(?:(?P<by_month>{_BY_MONTH})|{_SMALL} )"
# A capitalised word before a space can only begin a date or a name.
_CAPITAL: Final = rf"(?<!\w)(?=[A-Z][a-z]{{1,30}}+[,.;:!?]?+(?:\s|\Z))(?P<names>{_NAMES})"
_ANY: Final = "|".join(f"(?P<p{i}>{pattern})" for i, (_, pattern) in enumerate(_PATTERNS))
_OTHER_WORD: Final = r"(?<!\w)[^\W\d_]++(?!:)"  # within its letters nothing begins, unless they end in "https:"
_BETWEEN: Final = r"\s++|(?<![.,;:!?)])[.,;:!?)]++(?:\s++|\Z)"  # nothing begins with these
_SCAN: Final = compiled(f"{_PLAIN}|{_BETWEEN}|{_BEFORE_NUMBER}|{_CAPITAL}|{_MAY_BEGIN}(?:{_ANY})|{_OTHER_WORD}")
_CAPITALS: Final = r"A-ZА-ЯЁІЇЄ\u00c0-\u00de"
_TELLING: Final = r"\d/@_#$€£¥\"“„«「`("
_HAS_DIGIT_OR_CAPITAL: Final = compiled(
    rf"[{_TELLING}]|(?!^)[{_CAPITALS}]|[a-z][A-Z]|--?[a-z]|\.\w"
)  # a capitalised word at the start of the text begins a sentence: alone it is not a name
_SURE: Final = compiled(f"[{_TELLING}{_CAPITALS}]")
"""A quick test of a text after its first character: one of these characters is in nearly every value."""
_TRAILING: Final = ".,;:!?)]}…»”'\""
_BEFORE_START: Final = " \t\"'“”«»„(*_>#—–-•🙂"
_TITLE: Final = compiled(rf"\b(?:{alternatives('exact', 'titles')})$")
_STARTS: Final = ".!?…:;\n。！？|"
_NOT_NAMES: Final = words_of("exact", "no_names")


def identifiers(text: str) -> list[str]:
    """The distinct exact values in order of appearance: numbers, money, dates, paths, symbols, quotes, names."""
    return list(dict.fromkeys(found.text for found in find_identifiers(text)))


@memoized()
def find_identifiers(text: str) -> tuple[Identifier, ...]:
    """The values of a text with kind and place, repetitions included.

    A capitalised word at the start of a sentence is not a name, unless another capitalised word follows it.
    """
    return tuple(_scan(text)) if _SURE.search(text, 1) or _HAS_DIGIT_OR_CAPITAL.search(text) else ()


def _scan(text: str) -> Iterator[Identifier]:
    for match in _SCAN.finditer(_with_words_apart(text)):
        if match.lastgroup is None:
            continue
        kind = _KIND_OF[match.lastgroup]
        value, start = text[match.start() : match.end()], match.start()
        if kind == "name":
            value, start = _name(text, value, start)
        elif kind in {"time", "date", "money", "number"}:
            value = value if value.endswith((".m.", ".M.")) else value.rstrip(".")
        elif kind in {"url", "path", "symbol"}:
            value = value.rstrip(_TRAILING + "(") + ("()" if kind == "symbol" and "(" in value else "")
        if value and not (kind == "symbol" and value.lower() in _SHOUTED):
            yield Identifier(kind, value.strip(), start)


_SHOUTED: Final = words_of("exact", "shouted")
_NOT_SPACED: Final = compiled(f"[{CHINESE_JAPANESE}]")
_UNITS_NOT_SPACED: Final = "".join(sorted(set(_NOT_SPACED.findall(_SCAN.pattern))))
_WORD_NOT_SPACED: Final = compiled(rf"(\d ?[{_UNITS_NOT_SPACED}]{{1,4}})|[{CHINESE_JAPANESE}]")
_APART: Final = "·"


def _with_words_apart(text: str) -> str:
    """The text with Chinese and Japanese characters, except units of values, replaced by a mark; its length is kept."""
    if text.isascii() or not _NOT_SPACED.search(text):
        return text
    return _WORD_NOT_SPACED.sub(lambda found: found[1] or _APART, text)


def _name(text: str, value: str, start: int) -> tuple[str, int]:
    """A name without leading words that are capitalised for another reason, and its place; empty if nothing is left."""
    parts = value.split(" ")
    at_start = _starts_sentence(text, start)
    while parts:
        word = parts[0].lower().replace("’", "'")
        common = word in NOISE or word in _NOT_NAMES or (at_start and word in GENERIC and word != "new")
        if not common and not (at_start and len(parts) == 1):
            break
        start += len(parts.pop(0)) + 1
        at_start = at_start and common and bool(parts) and len(parts) > 1
    while parts and (parts[-1].lower() in NOISE or parts[-1].lower() in _NOT_NAMES):
        parts.pop()
    return " ".join(parts), start


def _starts_sentence(text: str, start: int) -> bool:
    position = start - 1
    floor = max(0, start - 12)
    while position >= floor and text[position] in _BEFORE_START:
        position -= 1
    if position >= 0 and text[position] == "." and _TITLE.search(text, max(0, position - 5), position):
        return False
    return position < 0 or text[position] in _STARTS or bool(text[position + 1 : start].strip())
