"""Taking text apart: sentences, content words, light stems. Every pattern runs in linear time."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from app.core.text.identifiers import identifiers as identifiers  # noqa: PLC0414 - belongs to this module's words
from app.core.text.patterns import capped, compiled
from app.core.text.word_lists import FRAME, GENERIC, NOISE, STOPWORDS

_FENCE: Final = compiled(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_END: Final = compiled(
    r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]*_]{0,4}+(?=\s)"  # Latin, Cyrillic and the like: a blank must follow
    r"|[。！？｡؟।۔]++[」』”’）]{0,4})"
)
_BEFORE: Final = 24  # characters before a full stop that are looked at
_WORD_BEFORE: Final = capped(r"([^\W_]+(?:\.[^\W_]{1,3}){0,3})\.$", _BEFORE + 1)
_LIST_MARK: Final = compiled(r"\s*(?:[-*+•–—]|\(?\d{1,3}[.)]|\(?[a-zа-я][.)]|#{1,6}|>)\s")
_TABLE_RULE: Final = compiled(r"[\s|:=_*-]+")
_ABBREVIATIONS: Final = frozenset(
    """mr mrs ms dr prof sr jr st vs etc e.g i.e eg ie cf al approx no nos fig vol dept est inc ltd co corp p
        pp a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun u.s u.k ph.d rev
        gen min max т.е т.д т.п т.к т.н и.о н.э др пр см ср стр рис гл им ул д кв г гг в вв руб коп тыс млн млрд
        проф акад тел напр z.b d.h u.a bzw ca nr usw evtl ggf sog art av bd p.ex ej sra ud""".split()
)
_GERMAN_DATE: Final = compiled(r"\s(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w{0,6}\b")
_SHORTEST_LAST_WORD: Final = 3  # before a small letter, shorter ones are mostly abbreviations
_SOFT_WRAP: Final = 60  # a line at least this long may go on in the next

_TOKEN: Final = compiled(
    r"(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
    r"|(?P<number>\d+(?:[.,:]\d+)*)"
    r"|(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+(?:['’][^\W\d_]{1,3}\b)?)"
)
_ASCII_TOKEN: Final = compiled(r"\d+(?:[.,:]\d+)*|[a-z]+(?:'[a-z]{1,3}\b)?", re.ASCII)
_APOSTROPHE: Final = str.maketrans("’ё", "'е")


def sentences(text: str) -> list[str]:
    """Split into sentences, in order, without blank ones.

    Line breaks separate, unless a long line plainly goes on; list items stand alone; a fenced block of code is one
    sentence; abbreviations, initials, decimals, versions and addresses do not split.
    """
    found: list[str] = []
    for is_code, block in _blocks(text):
        if is_code:
            found.append(block.strip())
            continue
        for line in _lines(block):
            found.extend(_split_line(line))
    return [sentence for sentence in found if sentence]


def _blocks(text: str) -> list[tuple[bool, str]]:
    """Prose and fenced code, in turns; an open fence runs to the end."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    if not fences:
        return [(False, text)]
    blocks: list[tuple[bool, str]] = []
    position = 0
    for opening, closing in zip(fences[::2], [*fences[1::2], None], strict=False):
        end = len(text) if closing is None else (text.find("\n", closing) + 1 or len(text))
        blocks += [(False, text[position:opening]), (True, text[opening:end])]
        position = end
    return [*blocks, (False, text[position:])]


def _lines(block: str) -> list[str]:
    lines: list[str] = []
    open_line: list[str] = []
    for raw in block.splitlines():
        line = raw.strip()
        if not line or _TABLE_RULE.fullmatch(line):
            lines.append(" ".join(open_line))
            open_line = []
            continue
        goes_on = open_line and len(open_line[-1]) >= _SOFT_WRAP and not _LIST_MARK.match(line)
        if goes_on and line[0].islower() and open_line[-1][-1] not in ".!?:;…。！？":
            open_line.append(line)
            continue
        lines.append(" ".join(open_line))
        open_line = [line]
    return [line for line in [*lines, " ".join(open_line)] if line]


def _split_line(line: str) -> list[str]:
    mark = _LIST_MARK.match(line)
    start, pieces = 0, []
    for end in _END.finditer(line, mark.end() if mark else 0):
        if _is_end(line, end):
            pieces.append(line[start : end.end()].strip())
            start = end.end()
    pieces.append(line[start:].strip())
    return [piece for piece in pieces if piece]


def _is_end(line: str, end: re.Match[str]) -> bool:
    if not end.group().startswith(".") or end.group().startswith(".."):
        return True
    word = _WORD_BEFORE.search(line[max(0, end.start() - _BEFORE) : end.start() + 1])
    if word is None:
        return True
    last = word.group(1)
    if last.lower() in _ABBREVIATIONS or (len(last) == 1 and last.isupper() and last != "I"):
        return False
    if last.isdigit() and _GERMAN_DATE.match(line, end.end()):
        return False
    following = line[end.end() : end.end() + 2].strip()
    is_word = "." not in last and (len(last) >= _SHORTEST_LAST_WORD or last.lower() in NOISE)
    return is_word or not following[:1].islower()


def words(text: str) -> list[str]:
    """Content words in order, lower case, function words left out; runs of Chinese and Japanese as pairs of signs."""
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        value = token.group().lower().translate(_APOSTROPHE)
        if token.lastgroup == "cjk":
            found.extend([value] if len(value) == 1 else [value[i : i + 2] for i in range(len(value) - 1)])
        elif token.lastgroup == "number" or (value not in NOISE and (len(value) > 1 or not value.isascii())):
            base = value.removesuffix("'s")
            found.extend([base] if base == value or base not in STOPWORDS["en"] else [])
    return found


def stems(text: str) -> list[str]:
    """``words`` with inflection folded."""
    if text.isascii():  # the same, in a third of the time
        return stems_of_tokens(ascii_tokens(text))
    return [stem(word) for word in words(text)]


def ascii_tokens(text: str) -> list[str]:
    """Words and numbers of a text of ASCII, in lower case, function words among them."""
    return _ASCII_TOKEN.findall(text.lower())


def stems_of_tokens(tokens: list[str]) -> list[str]:
    """The stems of such words, those without content left out."""
    return list(filter(None, map(_stem_of_token, tokens)))


_RUSSIAN_ENDINGS: Final = tuple(
    """иями ями ами ого его ому ему ыми ими ешь ете ите ишь ать ять ить еть уть ала ила ела яла али или ели яли
        ает яет ует еет ают яют уют ах ях ых их ым им ов ев ей ой ый ий ая яя ое ее ые ие ую юю ом ем ам ям ию ия ью
        ал ил
        ел ял ет ит ут ют ат ят а я о е ы и у ю ь й""".split()
)
_MIN_RUSSIAN: Final = 3
_MIN_ENGLISH: Final = 3
_VOWELS: Final = frozenset("aeiouy")
_SHORT_STEM: Final = compiled(r"[^aeiouy]+[aeiouy][^aeiouywx]")
_REMEMBERED: Final = 65_536  # words of a large vocabulary; the same ones come again and again


@lru_cache(maxsize=_REMEMBERED)
def stem(word: str) -> str:
    """Fold the commonest endings of a lower-case English or Russian word; other words come back as they are."""
    if "а" <= word[:1] <= "я":
        return _stem_russian(word)
    return _stem_english(word) if word.isascii() and len(word) > _MIN_ENGLISH and word.isalpha() else word


@lru_cache(maxsize=_REMEMBERED)
def _stem_of_token(token: str) -> str:
    """The stem of one token of ASCII; empty for a word without content."""
    return next((stem(word) for word in words(token)), "")


def _stem_russian(word: str) -> str:
    base = word[:-2] if word.endswith(("ся", "сь")) and len(word) > _MIN_RUSSIAN + 2 else word
    for ending in _RUSSIAN_ENDINGS:
        if base.endswith(ending) and len(base) - len(ending) >= _MIN_RUSSIAN:
            return base[: -len(ending)]
    return base


def _stem_english(word: str) -> str:
    base = word
    if base.endswith("ies") and len(base) > 4:  # noqa: PLR2004 - "ties", "lies"
        base = base[:-3] + "y"
    elif base.endswith(("sses", "shes", "ches", "xes", "zes")):
        base = base[:-2]
    elif base.endswith("s") and not base.endswith(("ss", "us", "is")):
        base = base[:-1]
    for ending in ("ing", "ed"):
        rest = base[: -len(ending)]
        if base.endswith(ending) and len(rest) >= _MIN_ENGLISH and _VOWELS & set(rest):
            base = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest + "e" * _needs_e(rest)
            break
    if base.endswith("ly") and len(base) > 5:  # noqa: PLR2004 - "only", "reply"
        base = base[:-2]
    if base.endswith("y") and len(base) > _MIN_ENGLISH:
        base = base[:-1] + "i"
    return base[:-1] if base.endswith("e") and len(base) > _MIN_ENGLISH and not _needs_e(base[:-1]) else base


def _needs_e(base: str) -> bool:
    """Whether it would be another word without its last "e" ("care", "plane"): Porter's rule for short stems."""
    return _SHORT_STEM.fullmatch(base) is not None


GENERIC_STEMS: Final[frozenset[str]] = frozenset(stem(word) for word in GENERIC)
"""Stems too common in talk to name a topic."""
FRAME_STEMS: Final[frozenset[str]] = frozenset(stem(word) for word in FRAME)
"""Stems of the record's own voice: whose words are told, and that they were said."""
