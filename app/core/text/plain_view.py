r"""A text as a reader sees it, without hidden, wide and look-alike characters; places can be mapped to the original.

It is used to look for shapes in texts. A word reads the same, and is found, with a zero-width space in it, with a
Cyrillic letter among Latin ones, in wide letters, with HTML entities, or with the escapes of JSON (``\u043f``).
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from typing import Final

from app.core.text.escaping import plain_letters
from app.core.text.patterns import compiled

_UNSEEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
"""What Unicode says to show nothing for, control characters, and signs that belong to no one script."""
_BLANKS: Final = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_DASHES: Final = "\u2010-\u2013\u2212\ufe63\uff0d"
_WIDE: Final = (
    "\uff01-\uff0c\uff0e-\uff5e\ufe50-\ufe62\ufe64-\ufe6b\u00b2\u00b3\u00b9\u2070-\u208e\u2460-\u2468\u24b6-\u24e9"
    "\U0001d400-\U0001d7ff"
)
_DIGITS: Final = "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59"
_JOINING: Final = "\u0300-\u036f\u0653-\u0655\u1161-\u1175\u11a8-\u11c2\u3099\u309a"
"""Signs that may be one letter together with the sign before them: accents, vowels and ends of Korean syllables."""
_COMMAND: Final = r"(?:\[[0-?]{0,60}[ -/]?[@-~]|\([0B])"
"""The rest of a command to a terminal after its escape character: it changes how the text after it looks."""
_SIGNS: Final = f"&{_JOINING}{_UNSEEN}{_BLANKS}{_DASHES}{_WIDE}{_DIGITS}"
_REST: Final = (
    rf"(?:(?<=&)(?:quot|apos|amp|lt|gt|nbsp|#[0-9]{{2,6}}|#[xX][0-9a-fA-F]{{2,5}});|(?<=\x1b){_COMMAND}"
    rf"|(?<=[{_JOINING}])[{_JOINING}]{{1,3}})?"
)
_ODD: Final = compiled(f"[{_SIGNS}]{_REST}")
_ODD_OR_ESCAPE: Final = compiled(
    rf"[\\{_SIGNS}](?:(?<=\\)\\{{0,3}}(?:(?:u001[bB]|x1[bB]|033|e){_COMMAND}|u[0-9a-fA-F]{{4}}|x[0-7][0-9a-fA-F]|/)"
    rf"|(?<!\\){_REST})"
)
"""The same, and what JSON or a program escapes, even twice."""
_JOINED: Final = compiled(f"[{_JOINING}]")
_BLANK: Final = compiled(f"[{_BLANKS}]")
_DASH: Final = compiled(f"[{_DASHES}]")
_HIDDEN: Final = compiled(f"[{_UNSEEN}]")
_OTHER: Final = "\u0370-\u0481\u048a-\u04ff"
"""Greek and Cyrillic letters, without the signs above them."""
_MEETING: Final = compiled(f"[{_OTHER}](?:(?<=[A-Za-z].)|(?=[A-Za-z]))")
_MIXED: Final = compiled(f"(?<![A-Za-z{_OTHER}])(?:[A-Za-z]++[{_OTHER}]|[{_OTHER}]++[A-Za-z])[A-Za-z{_OTHER}]*+")
_CYRILLIC: Final = str.maketrans("aceopxykmtAECOPXKMTHB", "асеорхукмтАЕСОРХКМТНВ")


@dataclass(frozen=True, slots=True)
class PlainView:
    """A text in plain characters."""

    text: str
    breaks: tuple[int, ...] = (0,)
    """The places in it from which on the distance to the original changes."""
    distances: tuple[int, ...] = (0,)

    def original(self, place: int) -> int:
        """The place in the original for a place in this text."""
        return place + self.distances[bisect_right(self.breaks, place) - 1]


def plain_view(text: str) -> PlainView:
    """The plain view of a text; a text of plain characters is its own view."""
    mixed = _MIXED.sub(_in_one_alphabet, text) if _MEETING.search(text) else text
    pieces: list[str] = []
    breaks, distances = [0], [0]
    done = length = 0
    for odd in (_ODD_OR_ESCAPE if "\\" in mixed else _ODD).finditer(mixed):
        sign, start = odd.group(), odd.start()
        if _JOINED.match(sign):  # "é" is one letter, even if written as two characters
            start = max(start - 1, done)
            instead = _joined(mixed[start : odd.end()])
        else:
            instead = _instead(sign)
        pieces += (mixed[done:start], instead)
        length += start - done + len(instead)
        done = odd.end()
        if done - length != distances[-1]:
            breaks.append(length)
            distances.append(done - length)
    return PlainView("".join([*pieces, mixed[done:]]), tuple(breaks), tuple(distances)) if pieces else PlainView(mixed)


@lru_cache(maxsize=1_024)
def _joined(signs: str) -> str:
    """A letter together with the signs that belong to it; of the others, those that are seen."""
    return _HIDDEN.sub("", unicodedata.normalize("NFC", signs))


@lru_cache(maxsize=1_024)
def _instead(sign: str) -> str:
    if len(sign) > 1 and sign[0] in "\x1b\\":
        return _unescaped(sign.lstrip("\\"))
    if len(sign) > 1:
        return _instead(unescape(sign) or "\0")  # HTML has no character for some numbers
    if _HIDDEN.match(sign):
        return ""
    if _BLANK.match(sign):
        return " "
    if _DASH.match(sign):
        return "-"
    digit = unicodedata.digit(sign, None)
    plain = unicodedata.normalize("NFKC", sign) if digit is None else str(digit)
    return plain if len(plain) == 1 and plain.isascii() else sign


def _unescaped(code: str) -> str:
    if code == "/":
        return code
    if "[" in code or "(" in code:  # a command to a terminal
        return ""
    # A quotation mark keeps its backslash: without it, it would end a value.
    sign = chr(int(code[1:], 16))
    escaped = json.dumps(sign, ensure_ascii=False)[1:-1]
    return escaped if len(escaped) > 1 else _instead(sign)


def _in_one_alphabet(found: re.Match[str]) -> str:
    word = found.group()
    latin = [letter if letter.isascii() else plain_letters(letter) for letter in word]
    if all(len(letter) == 1 and letter.isascii() for letter in latin):
        return "".join(latin)
    return word.translate(_CYRILLIC)
