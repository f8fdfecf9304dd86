"""One scan of a text: everything in it that may be part of a value, as tokens; all other words are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from app.core.text.folding import Folded
from app.core.text.numerals import HAN_SIGNS, of_compound, of_german, of_han, readings
from app.core.text.tables import (
    AGO, AHEAD, APPROXIMATE, ARTICLES, BEFORE_HOURS, BEFORE_MONTHS, CLOCK, CUBES, CURRENCIES, DATE_FILL, EARLY, ENDS,
    HALF_HOURS, HALF_UNITS, HALVES_AFTER, HEADS, LATE, LATER, MONTH_ENDS, MONTHS, NAMED_HOURS, NEAR, NEXT, NIGHT,
    NUMBER_ENDINGS, NUMBERING, NUMBERS, ORDINAL_ENDINGS, ORDINALS, PAST, RANGE_WORDS, SCALES, SHARES, SIGNS, SPANS,
    SQUARES, THIS, UNITS, WEEKDAYS,
)  # fmt: skip
from app.domain.words.patterns import compiled


@dataclass(slots=True)
class Token:
    """One piece of a text.

    ``kind`` is ``w`` (a known word), ``s`` (a sign), ``n`` (a number; ``data`` its readings), ``o`` (an ordinal; its
    number), ``f`` (a fraction; its amount), ``d`` (a date; its possible days), ``t`` (a time; hours, minutes, seconds,
    half of the day), ``r`` (Chinese weekday with what stands before it), or a name of ``values.Kind`` for what is a
    value by itself (``data`` its forms).
    """

    kind: str
    text: str
    start: int
    end: int
    data: Any = None


_VOCABULARY: Final = frozenset().union(
    NUMBERS, SCALES, UNITS, CURRENCIES, MONTHS, WEEKDAYS, NEAR, ORDINALS, SHARES, HALF_UNITS, HALF_HOURS, ARTICLES,
    HALVES_AFTER, APPROXIMATE, SQUARES, CUBES, NUMBERING, RANGE_WORDS, BEFORE_HOURS, BEFORE_MONTHS, LATE, EARLY, NIGHT,
    CLOCK, NAMED_HOURS, PAST, NEXT, THIS, AHEAD, LATER, AGO, DATE_FILL, SPANS, ENDS, MONTH_ENDS,
    {"past", "без", "个半", "ist", "vor", "nach", "quarter", "viertel", "четверти", "четверть", "or", "so", "couple", "odd"},
)  # fmt: skip
_HAN: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_FRACTIONS: Final = "".join(SIGNS)
_HAN_WORDS: Final = sorted(
    (word for word in _VOCABULARY if word[0] >= "\u3400" and not set(word) <= set(HAN_SIGNS)),
    key=lambda word: (-len(word), word),
)
_NOT_HAN_NUMBERS: Final = (
    "一(?:些|下|起|直|般|样|定|点|旦|边|面|共|切|向|律|再|度|致|方|同|系列|番|口气|块|来|会|道|家人|次性|堆)|二(?:手|维|话|战)|万一|万能|千万别|三明治"
    "|十分(?![钟鐘之])|四(?:川|处|周|季)|七夕|五(?:金|官)|百(?:度|合|货)|[零一二两三四五六七八九十百]{1,6}(?=(?:等奖|级|号线))|六一|第[零〇一二两三四五六七八九十百]{1,6}|(?:之|同|统|唯|万|专)一"
)
_EXTENSIONS: Final = (
    "py|pyi|js|mjs|ts|tsx|jsx|md|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|env|sql|html?|css|scss|go|rs|java|kt|swift"
    "|c|h|cpp|hpp|cs|rb|php|sh|bat|csv|tsv|xlsx?|docx?|pptx?|odt|ods|pdf|png|jpe?g|gif|svg|zip|gz|tar|log|lock|ipynb"
    "|proto|tf|db|sqlite|mp3|mp4|wav|mov|tex|bib|xml"
)
_NO_ADDRESS: Final = r"[^\s<>\"'»”`|。，、；！？）」』】\x00-\x1f]"
_SCAN: Final = compiled(
    rf"(?P<url>(?:https?|ftp|wss?|postgres(?:ql)?|redis|file)://{_NO_ADDRESS}{{1,2000}}+|\bwww\.{_NO_ADDRESS}{{1,2000}}+)"
    r"|(?P<email>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})"
    rf"|(?P<domain>(?<![\w.@/-])[a-z][a-z0-9-]{{1,62}}(?:\.[a-z][a-z0-9-]{{0,62}}){{0,3}}\.(?:com|org|net|io|dev|de|ru|cn|edu|gov|info|app|example|eu|uk|ch|at)(?![\w.@-])(?:/{_NO_ADDRESS}{{0,300}}+)?)"
    r"|(?P<path>(?<![^\s\"'`(\[<«„“:=,])(?:[a-z]:\\|~/|\.{1,2}/|/)[\w.@+-]{1,255}(?:[/\\][\w.@+-]{1,255}){0,40}/?"
    rf"|(?<![\w/\\.~@-])(?:[\w.@-]{{1,100}}/){{0,20}}[\w@-]{{1,100}}(?:\.[\w-]{{1,30}}){{0,3}}\.(?:{_EXTENSIONS})\b)"
    r"|(?P<tagged>\bv\d{1,5}(?:\.\d{1,5}){1,4}\b)"
    r"|(?P<uuid>(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-]))"
    r"|(?P<iso>(?<![\w-])\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:z|[+-]\d{2}:?\d{2})?)?(?![\w-]))"
    r"|(?P<phone>(?<![\w+])(?:\+\d|0\d{2,5}[ -]\d|\(0?\d{2,4}\) ?\d|8[ -]\(?\d{3}\)?[ -]\d)(?:[ ()/-]{0,2}\d){5,13}(?![\w]))"
    rf"|(?P<share>百分之)(?P<percent>\d{{1,3}}(?:\.\d{{1,3}})?|[{HAN_SIGNS}]{{1,8}})"
    rf"|(?P<hfrac>(?P<under>[{HAN_SIGNS}]{{1,4}})分之(?P<over>[{HAN_SIGNS}]{{1,4}}))"
    rf"|(?P<hdate>(?:(?P<year>\d{{4}}|[零〇一二三四五六七八九]{{4}})年)?(?P<month>\d{{1,2}}|[一二三四五六七八九十]{{1,2}})月(?!饼)"
    rf"(?:(?P<day>\d{{1,2}}(?![\d年月点:])|[一二三四五六七八九十]{{1,3}})[日号]?)?|(?<!\d)(?P<lone>\d{{1,2}}|[一二三四五六七八九十]{{1,3}})[日号](?!线))"
    rf"|(?P<htime>(?<![\d.])(?P<hour>\d{{1,2}}|[零一二两三四五六七八九十]{{1,3}})[点时](?![零一二三四五六七八九]{{2}}\w)"
    rf"(?:(?P<part>半|一刻|三刻|整|钟)|(?P<minute>\d{{1,2}}|[零〇一二三四五六七八九十]{{1,3}})分?)?)"
    r"|(?P<hday>(?P<which>上上|上|下下|下|这|本)?个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天]))"
    r"|(?P<hspan>上上?个?(?:周末|周|星期|礼拜|月)|下下?个?(?:周末|周|星期|礼拜|月)|[这本]个?(?:周末|周|星期|礼拜|月)|[今明去后前]年)"
    rf"|(?P<skip>{_NOT_HAN_NUMBERS})"
    r"|(?P<num>(?:\d{1,3}(?:[ ']\d{3}(?!\d))++(?:[.,]\d{1,9})?|\d++(?:(?:[.,:'/]|\.?-)\d++)*+))"
    rf"(?P<half> ?[ap](?:m\b|\. ?m\b\.?))?(?P<tail>(?<!m\.)[^\W\d_{_HAN}{_FRACTIONS}][^\W{_HAN}{_FRACTIONS}]*+(?:-[^\W\d_{_HAN}]++)*+|-[^\W\d_{_HAN}]++(?:-[^\W\d_{_HAN}]++)*+)?"
    rf"|(?P<run>[^\W\d{_HAN}{_FRACTIONS}][^\W{_HAN}{_FRACTIONS}]*+(?:[-'][^\W_{_HAN}{_FRACTIONS}][^\W{_HAN}{_FRACTIONS}]*+)*+)"
    rf"|(?P<hword>{'|'.join(_HAN_WORDS)})"
    rf"|(?P<hnum>[{HAN_SIGNS}]{{1,20}}+(?:点[零一二三四五六七八九]{{1,6}})?)"
    rf"|(?P<frac>[{_FRACTIONS}])|(?P<sign>[$€£¥₽₹₴₩₸₺%~≈]|°[cf]?\b|°)"
)
_DAY_MONTH_YEAR: Final = compiled(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
_YEAR_MONTH_DAY: Final = compiled(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})")
_YEAR_MONTH: Final = compiled(r"(\d{4})[-./](0[1-9]|1[0-2])")
_CLOCK: Final = compiled(r"(\d{1,3}):(\d{2})(?::(\d{2}))?")
_VERSION: Final = compiled(r"\d{1,5}(?:\.\d{1,5}){2,5}")
_FRACTION: Final = compiled(r"(\d{1,4})/(\d{1,4})")
_HOURS_IN_ONE: Final = compiled(r"(?:h|ч|std|uhr)(\d{1,2})(?:m|min|м|мин)?")
_WORD_VERSION: Final = compiled(r"v\d{1,5}")
_CENTURY: Final = 2000
_SQUASHED: Final = compiled(r"[\W_]")
_TRAILING: Final = ".,;:!?)]}…»”'\"*_"


def tokens(text: Folded) -> list[Token]:
    """Scan a text; a text of any length in time proportional to it."""
    found: list[Token] = []
    for match in _SCAN.finditer(text.text):
        kind = match.lastgroup
        if kind == "run":
            _run(match.group(), match.start(), text, found)
        elif kind is not None:
            _other(match, found)
    return found


def squashed(text: str) -> str:
    """Letters and digits alone."""
    return _SQUASHED.sub("", text)


def _run(run: str, start: int, text: Folded, found: list[Token]) -> None:
    end = start + len(run)
    if run in _VOCABULARY:
        found.append(Token("w", run, start, end))
        return
    if run.isalpha():
        _unknown_word(run, start, found)
        return
    if not any(sign.isdigit() for sign in run):
        place = start
        for part in _split(run):
            if part in _VOCABULARY:
                found.append(Token("w", part, place, place + len(part)))
            else:
                _unknown_word(part, place, found)
            place += len(part) + 1
        return
    parts = _split(run)
    is_plain = len(parts) > 1 and all(part.isalpha() or part.isdigit() for part in parts)
    if is_plain and text.cased[start:end].islower() and any(part in _VOCABULARY for part in parts):
        place = start
        for part in parts:
            if part.isdigit():
                found.append(Token("n", part, place, place + len(part), readings(part)))
            elif part in _VOCABULARY:
                found.append(Token("w", part, place, place + len(part)))
            place += len(part) + 1
        return
    if run in UNITS:
        found.append(Token("w", run, start, end))
        return
    _identifier(run, start, found)


def _identifier(run: str, start: int, found: list[Token]) -> None:
    forms = {f"s:{run}", f"i:{squashed(run)}"}
    if _WORD_VERSION.fullmatch(run):
        found.append(Token("version", run, start, start + len(run), forms | {f"v:{run[1:]}", f"n:{run[1:]}"}))
        return
    digits = [part for part in _split(run) if part.isdigit()]
    if len(digits) == 1 and len(digits[0]) < len(run) - 1:
        forms |= {f"n:{int(digits[0])}"}
    found.append(Token("identifier", run, start, start + len(run), forms))


def _split(run: str) -> list[str]:
    return run.replace("'", "-").split("-")


def _unknown_word(word: str, start: int, found: list[Token]) -> None:
    if len(word) < 5 or word[:3] not in HEADS:  # noqa: PLR2004 - no compound is shorter
        return
    number = of_german(word)
    if number:
        found.append(Token("n", word, start, start + len(word), [number]))
        return
    compound = of_compound(word)
    if compound:
        end = start + len(word)
        found.append(Token("n", word, start, end, [compound[0]]))
        if compound[1]:
            found.append(Token("w", compound[1], end, end))


def _other(match: re.Match[str], found: list[Token]) -> None:
    kind, text, start, end = match.lastgroup or "", match.group(), match.start(), match.end()
    if match["num"]:
        _number(match, found)
    elif kind == "hword":
        found.append(Token("w", text, start, end))
    elif kind == "hnum":
        value = of_han(text)
        if value or text in SCALES or text == "零":
            found.append(Token("n", text, start, end, [value]))
    elif kind == "sign":
        found.append(Token("s", text[:1] if text[0] == "°" else text, start, end))
    elif kind == "frac":
        found.append(Token("f", text, start, end, SIGNS[text]))
    elif match["url"] or match["domain"]:
        text = text.rstrip(_TRAILING)
        found.append(Token("url", text, start, start + len(text), {f"s:{address(text)}"}))
    elif match["email"]:
        text = text.rstrip(".-")
        found.append(Token("email", text, start, start + len(text), {f"s:{text}"}))
    elif match["path"]:
        text = text.rstrip(".,-")
        last = text.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
        found.append(
            Token("path", text, start, start + len(text), {f"s:{text}", f"s:{last}"} if last else {f"s:{text}"})
        )
    elif match["tagged"]:
        forms = {f"v:{text[1:]}", f"s:{text[1:]}", f"n:{text[1:]}"}
        found.append(Token("version", text, start, end, forms))
    elif match["uuid"] or match["phone"]:
        forms = {f"i:{squashed(text)}"}
        if match["phone"] and len(squashed(text)) > 9:  # noqa: PLR2004 - without the country's or the trunk's digits
            forms |= {f"i:{squashed(text)[-9:]}"}
        found.append(Token("identifier", text, start, end, forms))
    elif match["iso"]:
        found.append(Token("d", text[:10], start, start + 10, [(int(text[:4]), int(text[5:7]), int(text[8:10]))]))
        if len(text) > 10:  # noqa: PLR2004 - a time follows the day
            clock = _CLOCK.match(text, 11)
            if clock:
                found.append(Token("t", clock.group(), start + 11, start + clock.end(), _clock(clock, "")))
    elif match["share"]:
        value = (
            float(match["percent"])
            if match["percent"][0].isdigit() and match["percent"].isascii()
            else of_han(match["percent"])
        )
        found += [Token("n", match["percent"], start, end, [value]), Token("w", "%", end, end)]
    elif match["hfrac"]:
        under = of_han(match["under"])
        if under:
            found.append(Token("f", text, start, end, of_han(match["over"]) / under))
    else:
        _chinese(match, found)


def _chinese(match: re.Match[str], found: list[Token]) -> None:
    text, start, end = match.group(), match.start(), match.end()

    def number(name: str) -> int | None:
        digits = match[name]
        return None if not digits else int(digits) if digits.isdecimal() and digits.isascii() else int(of_han(digits))

    if match["lone"]:
        found.append(Token("o", text, start, end, number("lone")))
    elif match["hdate"]:
        found.append(Token("d", text, start, end, [(number("year"), number("month"), number("day"))]))
    elif match["htime"]:
        part = match["part"]
        minute = {"半": 30, "一刻": 15, "三刻": 45}.get(part or "", number("minute") or 0)
        is_plain = bool(part or match["minute"] or match["hour"].isascii())
        found.append(Token("t", text, start, end, (number("hour") or 0, minute, None, "" if is_plain else "?")))
    elif match["hday"]:
        found.append(
            Token(
                "r",
                text,
                start,
                end,
                (
                    match["which"] or "",
                    "一二三四五六日天".index(match["weekday"]) % 7 if match["weekday"] != "天" else 6,
                ),
            )
        )
    elif match["hspan"]:
        step = {"上": -1, "去": -1, "前": -2, "下": 1, "明": 1, "后": 2}.get(text[0], 0) * (
            2 if text[:2] in {"上上", "下下"} else 1
        )
        span = next(
            span
            for word, span in (("周末", "weekend"), ("月", "month"), ("年", "year"), ("", "week"))
            if text.endswith(word)
        )
        found.append(Token("span", text, start, end, (step, span)))


def _number(match: re.Match[str], found: list[Token]) -> None:
    digits, half, tail, start = match["num"], match["half"], match["tail"], match.start()
    end = start + len(digits)
    if tail and not half:
        name, *more = tail.removeprefix("-").split("-")
        clock = _HOURS_IN_ONE.fullmatch(tail)
        moment = _CLOCK.fullmatch(digits)
        if moment and tail in {"z", "utc", "h", "uhr"}:
            found.append(Token("t", match.group(), start, match.end(), _clock(moment, "0")))
            return
        if tail.removeprefix("-") in ORDINAL_ENDINGS and digits.isdigit():
            found.append(Token("o", match.group(), start, match.end(), int(digits[:9])))
            return
        if clock and digits.isdigit() and len(digits) <= 2:  # noqa: PLR2004 - "17h30"
            found.append(Token("t", match.group(), start, match.end(), (int(digits), int(clock[1]), None, "h")))
            return
        known = name in _VOCABULARY or name in NUMBER_ENDINGS or tail[0] == "-"
        if not known and not tail.isalpha():
            known = name.isalpha() and bool(more) and name in _VOCABULARY
        if not known:
            stem = next((unit for size in range(9, 2, -1) if (unit := COMPOUND_UNITS.get(name[:size]))), None)
            if stem is None:
                _identifier(match.group(), start, found)
                return
        _digits(digits, start, found)
        place = match.start("tail") + tail.startswith("-")
        for part in (name, *more):
            word = part if part in _VOCABULARY else _compound_unit(part)
            if word:
                found.append(Token("w", word, place, place + len(part)))
            place += len(part) + 1
        return
    if half:
        clock = _CLOCK.fullmatch(digits.replace(".", ":"))
        letter = half.strip()[0]
        if clock or (digits.isdigit() and int(digits[:3]) <= 12):  # noqa: PLR2004 - hours of a half day
            data = _clock(clock, letter) if clock else (int(digits), 0, None, letter)
            found.append(Token("t", match.group(), start, start + len(digits) + len(half), data))
            return
        pieces = digits.rsplit("-", 1)
        if len(pieces) == 2:  # noqa: PLR2004 - "5-7 pm"
            place = start
            for piece in pieces:
                clock = _CLOCK.fullmatch(piece.replace(".", ":"))
                if clock or piece.isdigit():
                    part = letter if place > start else ""
                    data = _clock(clock, part) if clock else (int(piece[:3]), 0, None, part)
                    found.append(Token("t", piece, place, place + len(piece), data))
                place += len(piece) + 1
            return
    _digits(digits, start, found)
    del end


COMPOUND_UNITS: Final = {
    "летн": "год",
    "дневн": "день",
    "часов": "час",
    "минутн": "минута",
    "недельн": "неделя",
    "месячн": "месяц",
    "процентн": "%",
    "jährig": "jahr",
    "stündig": "h",
    "minütig": "min",
    "tägig": "tag",
    "wöchig": "woche",
    "prozentig": "%",
}


def _compound_unit(part: str) -> str:
    return next((unit for size in range(9, 2, -1) if (unit := COMPOUND_UNITS.get(part[:size]))), "")


def _clock(match: re.Match[str], half: str) -> tuple[int, int, int | None, str]:
    return (
        int(match[1]),
        int(match[2]),
        int(match[3]) if match[3] else None,
        half or ("0" if match[1][0] == "0" else ""),
    )


def _digits(digits: str, start: int, found: list[Token]) -> None:
    """One token for digits that belong together, one for each part of a range or a list."""
    end = start + len(digits)

    def add(kind: str, data: object) -> None:
        found.append(Token(kind, digits, start, end, data))

    if digits.isdigit() or " " in digits:
        add("n", readings(digits) or [float(digits[:300])])
    elif match := _YEAR_MONTH_DAY.fullmatch(digits):
        add("d", [(int(match[1]), int(match[3]), int(match[4]))])
    elif match := _DAY_MONTH_YEAR.fullmatch(digits):
        year = int(match[4]) + (_CENTURY if len(match[4]) < 4 else 0)  # noqa: PLR2004 - two digits
        days: list[tuple[int, int, int]] = [(year, int(match[3]), int(match[1]))]
        add("d", days if match[2] == "." else [*days, (year, int(match[1]), int(match[3]))])
    elif (match := _YEAR_MONTH.fullmatch(digits)) and digits[4] != ".":
        add("d", [(int(match[1]), int(match[2]), None)])
    elif match := _CLOCK.fullmatch(digits):
        add("t", _clock(match, ""))
    elif _VERSION.fullmatch(digits) and not (grouped := readings(digits)):
        add("version", {f"v:{digits}", f"s:{digits}"})
    elif match := _FRACTION.fullmatch(digits):
        add("f", int(match[1]) / int(match[2]) if int(match[2]) else 0.0)
    elif digits.count("-") >= 2 and digits.replace("-", "").isdigit() and len(digits) >= 9:  # noqa: PLR2004 - a telephone's, an order's number
        add("identifier", {f"i:{squashed(digits)}", f"s:{digits}"})
    elif found_readings := readings(digits):
        add("n", found_readings)
    else:
        separator = next((sign for sign in "-/,:" if sign in digits), "")
        if not separator:
            add("version", {f"s:{digits}", f"v:{digits}"})
            return
        place = start
        for piece in digits.split(separator):
            if piece.strip("."):
                _digits(piece.rstrip("."), place, found)
            place += len(piece) + 1


def address(url: str) -> str:
    """A URL without its scheme, ``www.``, escapes and the slash at its end."""
    bare = url.partition("://")[2] or url
    return unquote(bare.removeprefix("www.")).rstrip("/" + _TRAILING).lower()
