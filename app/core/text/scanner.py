"""Scans a text once: everything that may be part of a value becomes a token, and all other words are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from app.core.text import shapes
from app.core.text import tables as t
from app.core.text.homographs import with_homographs_decided
from app.core.text.numerals import HAN_SIGNS
from app.core.text.patterns import compiled
from app.core.text.plain_text import PlainText
from app.core.text.scan_results import Token
from app.core.text.scripts import EAST_ASIAN, MARKS, SCRIPTS
from app.core.text.vocabulary import HAN_WORDS, NOT_HAN_NUMBERS
from app.core.text.word_lists import GENERIC

_FRACTIONS: Final = "".join(t.FRACTION_SIGNS)
_LETTER: Final = rf"[^\W\d_{EAST_ASIAN}{_FRACTIONS}]"
_INNER: Final = rf"[^\W{EAST_ASIAN}{_FRACTIONS}]"
_EXTENSIONS: Final = (
    "py|pyi|js|mjs|ts|tsx|jsx|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|env|sql|html?|css|scss|go|rs|java|kt|swift"
    "|c|h|cpp|hpp|cs|rb|php|sh|bat|csv|tsv|xlsx?|docx?|pptx?|odt|ods|pdf|png|jpe?g|gif|svg|zip|gz|tar|log|lock|ipynb"
    "|proto|tf|db|sqlite|mp3|mp4|wav|mov|tex|bib|xml"
)
_DOMAINS: Final = "com|org|net|io|dev|de|ru|cn|edu|gov|info|app|example|eu|uk|ch|at"
_NO_BLANK: Final = r"[^\s<>\"'»”`|。，、；！？）」』】\x00-\x1f]"
_POINT: Final = "点"
_HAN_DIGIT: Final = "[零一二三四五六七八九]"
_HAN_DECIMALS: Final = f"(?:{_POINT}{_HAN_DIGIT}{{1,6}})?"
_FEW_HAN: Final = "[零〇一二两三四五六七八九十]"
_OF_LENGTH: Final = "|".join(sorted({unit[1:] for unit in t.UNITS if unit[0] in t.HOUR_SIGNS} - {""})) or "(?!)"
"""The signs that turn an hour's sign into a length of time."""
_DIGITS_OF_AREA: Final = (r"\d", r"\d\d", r"\d{3}", r"\d{4}")
_AREA: Final = "|".join([r"[ /-]?\((?=\d{1,4}\))", *(rf"(?<=\({digits})\)[ /-]?" for digits in _DIGITS_OF_AREA)])
"""Brackets within a telephone number; those around the whole number are no part of it."""
_CODES: Final = "|".join(sorted(word for word, code in t.CURRENCIES.items() if word == code.lower() not in GENERIC))
_LETTERED_SIGNS: Final = "|".join(sorted(re.escape(word) for word in t.CURRENCIES if word[0].isalpha() and "$" in word))
"""Signs of currencies that begin with letters: "R$" is not the dollar."""
_ATTACHED: Final = (
    r"(?:[\u0621-\u063a\u0641-\u064a]{1,4}\u0640{1,2}|[\u0648\u0641\u0628\u0643\u0644]{1,2}"
    r"|[\u05d5\u05d1\u05db\u05dc\u05de\u05d4\u05e9]{1,2}-?)(?=\d)"
)
"""What Arabic and Hebrew write in one word with a number: "for 300" is "ب300" or "بـ300", and "ב-300"."""
_SHAPES: Final = (
    rf"(?P<plain>{_LETTER}++)(?:[,;]\s*+|\s++)",  # nearly every word; it comes first only for speed
    r"(?:[\s,;:!?)]|\.(?!\S))++",  # signs with which nothing begins
    (
        rf"(?P<url>(?:https?|ftp|wss?|postgres(?:ql)?|redis|file)://{_NO_BLANK}{{1,2000}}+|\bwww\.{_NO_BLANK}{{1,2000}}+"
        rf"|(?<![\w.@/-])[a-z][a-z0-9-]{{1,62}}+(?:\.[a-z][a-z0-9-]{{0,62}}+){{0,3}}\.(?:{_DOMAINS})(?![\w.@-])"
        rf"(?:/{_NO_BLANK}{{0,300}}+)?)"
    ),
    # "react@18.2.0" has a version, and is no address; "root@10.0.0.5" is one.
    (
        r"(?P<email>(?<![a-z0-9_.+-])[a-z0-9_.+-]{1,64}+@"
        r"(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\w)|[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}\.[^\W\d][\w-]{0,62}))"
    ),
    (
        r"(?P<path>(?<![^\s\"'`(\[<«„“:=,])(?:[a-z]:\\|~/|\.{1,2}/|/)[\w.@+-]{1,255}(?:[/\\][\w.@+-]{1,255}){0,40}/?"
        rf"|(?<![\w/\\.~@-])(?:[\w.@-]{{1,100}}+/){{0,20}}[\w@-]{{1,100}}+(?:\.[\w-]{{1,30}}+){{0,3}}\.(?:{_EXTENSIONS})\b)"
    ),
    (
        rf"(?P<reference>(?<![\w./@-])(?P<names>(?:{_LETTER}{{1,8}}+/){{1,4}})(?P<numbers>\d{{1,8}}+(?:[/-]\d{{1,8}}+){{1,3}})"
        r"(?![\w/]|[.-]\w))"
    ),
    rf"(?P<version>(?<!{_INNER})v\d{{1,5}}(?:\.\d{{1,5}}){{1,4}}(?!{_INNER}))",
    r"(?P<uuid>(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-]))",
    # The address of a device, or a fingerprint: "9a:41:c7". Fewer than four pairs of only digits are a time.
    r"(?P<octets>(?<![\w:-])(?=[\d:]{0,10}[a-f]|(?:\d\d:){3})[0-9a-f]{2}(?::[0-9a-f]{2}){2,63}+(?![\w:-]))",
    (
        r"(?P<iso>(?<![\w-])\d{4}-\d{2}-\d{2}"
        r"(?:[t ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:z|[+-]\d{2}:?\d{2})?)?(?![\w-]))"
    ),
    rf"(?P<currency>(?<![\w.@/-])(?:{_CODES})(?=\d(?:[\d.,']| (?=\d)){{0,30}}+(?![\w-])))",  # "USD500", not "EUR2X"
    rf"(?P<currency_sign>(?<![^\W_])(?:{_LETTERED_SIGNS}))",
    r"(?P<apart>(?<![\w.,/-])(?:\d{1,2}\. ?\d{1,2}\. \d{4}|\d{4}\. \d{1,2}\. \d{1,2}(?=\.))(?![\w/-]|[.,]\d))",
    (
        r"(?P<phone>(?<![\w+])"
        r"(?:\d{2,4} \d{6,8}"
        r"|(?:\+\d|0\d{2,5}[ -]\d|\(0?\d{2,4}\) ?\d|8[ -]\(?\d{3}\)?[ -]\d)"
        rf"(?:(?:{_AREA}|[ /-]{{0,2}})\d){{5,13}})(?!\w))"
    ),
    rf"(?P<percent>百分之(?P<share>\d{{1,3}}(?:\.\d{{1,3}})?|[{HAN_SIGNS}]{{1,8}}{_HAN_DECIMALS}))",
    rf"(?P<parts>(?P<under>[{HAN_SIGNS}]{{1,4}})分之(?P<over>[{HAN_SIGNS}]{{1,4}}))",
    (
        rf"(?P<han_date>(?:(?P<year>\d{{4}}|{_FEW_HAN}{{4}}) ?[{t.YEAR_SIGNS}] ?)?"
        rf"(?P<month>\d{{1,2}}|{_FEW_HAN}{{1,2}}) ?[{t.MONTH_SIGNS}](?!饼)"
        rf"(?: ?(?P<day>\d{{1,2}}(?![\d:{t.YEAR_SIGNS}{t.MONTH_SIGNS}{t.HOUR_SIGNS}])|{_FEW_HAN}{{1,3}})"
        rf" ?[{t.DAY_SIGNS}]?)?)"
    ),
    rf"(?P<han_day>(?<!\d)(?P<lone>\d{{1,2}}|{_FEW_HAN}{{1,3}})[{t.DAY_SIGNS}](?!线))",
    rf"(?P<han_decimal>[{HAN_SIGNS}]{{1,20}}+{_POINT}(?!零){_HAN_DIGIT}(?![十分刻]){_HAN_DIGIT}{{0,5}})",
    (
        rf"(?P<han_time>(?<![\d.])(?P<hour>\d{{1,2}}|{_FEW_HAN}{{1,3}})[{t.HOUR_SIGNS}](?!{_OF_LENGTH})"
        rf"(?:(?P<part> ?[{t.HALF_SIGNS}]|一刻|三刻|整|钟)"
        rf"|(?P<minute>\d{{1,2}}(?!\.?\d)|{_FEW_HAN}{{1,3}})[{t.MINUTE_SIGNS}]?"
        rf"| (?P<minutes>\d{{1,2}}) ?[{t.MINUTE_SIGNS}])?)"
    ),
    r"(?P<weekday>(?P<which>上上|上|下下|下|这|本)?个?(?:周|星期|礼拜)(?P<name>[一二三四五六日天]))",
    r"(?P<span>上上?个?(?:周末|周|星期|礼拜|月)|下下?个?(?:周末|周|星期|礼拜|月)|[这本]个?(?:周末|周|星期|礼拜|月)|[今明去后前]年)",
    rf"(?P<skip>{NOT_HAN_NUMBERS})",
    rf"(?P<decimal>(?<![\w.)\]])\.\d{{1,12}}(?!\.?\d|{_LETTER}{_INNER}*\d))",  # ".024"
    (
        r"(?P<number>(?P<digits>\d{1,3}(?:[ ']\d{3}(?!\d))++(?:[.,]\d{1,9})?"
        r"|\d++(?:-\d{1,3}(?:[ ']\d{3}(?!\d))++|(?:[.,:'/]|\.?-)\d++)*+)"
        r"(?:(?P<half> ?[ap](?:m\b|\. ?m\b\.?))"
        rf"|(?P<tail>m\d{{1,2}}\.\d{{1,6}}s\b|{_LETTER}{_INNER}*+(?:-{_LETTER}++)*+|(?:-{_LETTER}++)++))?)"
    ),
    rf"(?P<attached>{_ATTACHED})",
    (
        rf"(?P<word>{_LETTER}{_INNER}*+(?:[{MARKS}]++{_INNER}*+)*+(?:[-']{_LETTER}{_INNER}*+|-\d{_INNER}*+)*+"
        rf"(?:(?:(?<=-\d{{3}})|(?<=-\d{{4}})|(?<=-\d{{5}}))/\d{{1,6}}(?![\w/]))?|_{_INNER}*+)"
    ),
    rf"(?P<syllables>[{SCRIPTS['hangul']}]++)",
    rf"(?P<han_word>{'|'.join(HAN_WORDS)})",
    rf"(?P<han_number>[{HAN_SIGNS}]{{1,20}}+{_HAN_DECIMALS})",
    rf"(?P<fraction>[{_FRACTIONS}])",
    r"(?P<sign>[$€£¥₽₹₴₩₸₺¢%~≈]|°[cf]?\b|°)",
)
_SCAN: Final = compiled("|".join(_SHAPES))
_READERS: Final[dict[str, Callable[[re.Match[str]], Iterator[Token]]]] = {
    "url": shapes.url, "email": shapes.email, "path": shapes.path, "version": shapes.version, "uuid": shapes.code,
    "octets": shapes.octets, "iso": shapes.iso, "apart": shapes.date_apart, "currency": shapes.word,
    "currency_sign": shapes.word,
    "phone": shapes.phone, "percent": shapes.percent, "parts": shapes.parts,
    "han_date": shapes.han_date, "han_day": shapes.han_day, "han_decimal": shapes.han_number,
    "han_time": shapes.han_time, "weekday": shapes.weekday, "span": shapes.span,
    "syllables": shapes.syllables, "han_word": shapes.word,
    "decimal": shapes.decimal,
    "han_number": shapes.han_number, "fraction": shapes.fraction, "sign": shapes.sign,
}  # fmt: skip


def tokens(text: PlainText) -> list[Token]:
    """Scan a text of any length, in time proportional to its length."""
    found: list[Token] = []
    for match in _SCAN.finditer(text.text):
        kind = match.lastgroup or ""
        if kind == "plain":
            found.extend(shapes.plain(match["plain"], match.start(), text.cased))
        elif kind == "word":
            found.extend(shapes.run(match[kind], match.start(), text.cased))
        elif kind == "reference":
            found.extend(shapes.reference(match, text.cased))
        elif kind == "attached":
            found.append(Token("w", t.ATTACHED, match.start(), match.end()))
        elif kind == "number":
            found.extend(shapes.number(match, text.cased))
        elif kind in _READERS:
            found.extend(_READERS[kind](match))
    return with_homographs_decided(_with_decimals_as_elsewhere(found), text.text)


def _with_decimals_as_elsewhere(found: list[Token]) -> list[Token]:
    """Read "1.756" as decimals first, if the text writes its other decimals so ("1.78") and none with a comma.

    The same holds for a comma in place of the full stop.
    """
    numbers = [one for one in found if one.kind == "n" and ("." in one.text or "," in one.text)]
    signs = {_sign_of_decimals(one.text) for one in numbers if len(one.data) == 1}
    if len(signs) == 1:
        for one in numbers:
            if len(one.data) > 1 and _sign_of_decimals(one.text) in signs:
                one.data.reverse()
    return found


def _sign_of_decimals(digits: str) -> str:
    return "".join(sign for sign in digits if not sign.isdecimal())
