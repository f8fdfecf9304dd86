"""A text in plain letters, in which values are looked for. Places in it can be mapped to places in the original."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import unescape
from typing import Final

from app.core.text.patterns import compiled
from app.core.text.plain_view import PlainView

_ACCENTS: Final = "\u0300-\u036f"
_UNSEEN_IN_WORD: Final = "\u00ad\u200c\u200d\u2060\ufeff"
_UNSEEN: Final = f"{_UNSEEN_IN_WORD}\u200b\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069"
"""Signs that no reader sees: breaks that are not needed, and marks of the direction of writing."""
_MARKUP: Final = compiled(
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
    r"|\\[dt]?frac ?(?:\{ ?(?P<over>\d{1,9}) ?\} ?\{ ?(?P<under>\d{1,9}) ?\}|(?P<digit>\d) ?(?P<other>\d))"
    r"|\\(?:text|mathrm|mathbf|textbf|mathit|operatorname|bf|rm) ?\{"
    r"|(?P<degree>\^ ?\{? ?\\circ\b(?: ?\})?|\\circ\b|\\degree\b)"
    r"|(?P<blank>\\[,;:! ]|\\quad\b|</?(?:b|i|u|em|strong|td|th|tr|br|p|li|sub|sup|span|code)(?: [^<>]{0,80})?/?>)"
    r"|(?<![\w:/\\.])(?P<command>\\[a-zA-Z]{2,20}+_?+)(?=\d)"
    r"|\\(?P<sign>[%$#_&])|\{(?P<comma>[.,])\}|(?P<times>\\times\b|\\cdot\b)"
    r"|(?P<emphasis>\*\*|~~|`|(?<![\w)])\*(?!\s)|(?<![\s*])\*(?!\w|(?<=[\d)]\*)[.(]\w))"
    rf"|(?P<accented>[^\W\d_][{_ACCENTS}]{{1,4}})"
    rf"|(?P<unseen>(?<=[\d/.,:-])[{_UNSEEN}]{{1,4}}(?=[\d/.,:-])|(?<=\w)[{_UNSEEN_IN_WORD}]{{1,4}}(?=\w))"
)
_FORMULA: Final = compiled(
    r"\${1,2}(?:[^$\n\\^_{]{0,300}+[\\^_{]|(?<!\d\$)(?<!\d \$)[^$\n=+]{0,300}+[=+](?=[^$\n]{1,300}+(?<!\s)\$))"
    r"[^$\n]{0,300}+\${1,2}(?![A-Za-z0-9_])"
)
"""A formula between dollar signs, which do not mean money there; "$5 + $6" and "5$ + 6$" are money."""
_COMMAND: Final = compiled(r"\\(?![dt]?frac)[a-zA-Z]{2,20}+_?+(?=\d|\\[dt]?frac)")
_PLAIN: Final = {"degree": "°", "times": "×", "blank": " ", "command": " "}
_MAY_HAVE_MARKUP: Final = compiled(rf"[\\&*`<{{~${_ACCENTS}{_UNSEEN}]")
_SIGNS: Final = {
    **{ord(sign): "-" for sign in "‐‑‒–—―−﹣－"},
    **{ord(sign): " " for sign in "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t"},
    **{ord(sign): "'" for sign in "’‘ʼ′"},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in "，－"},
    **{ord(sign): str(digit) for digit, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    ord("\u066b"): ".", ord("\u066c"): ",", ord("\u066a"): "%",
    ord("ё"): "е", ord("點"): "点", ord("時"): "时", ord("號"): "号", ord("週"): "周", ord("億"): "亿", ord("萬"): "万",
    ord("兩"): "两", ord("個"): "个", ord("塊"): "块", ord("年"): "年", ord("～"): "~", ord("∶"): ":",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlainText(PlainView):
    """A text in lower case and without markup, with its dashes, spaces and wide characters unified."""

    cased: str = ""
    """The same text with its capitals; it has the same length."""


def plain_text_of(text: str) -> PlainText:
    """The form of a text in which values are looked for. Places in the result can be mapped to the original."""
    bare, breaks, distances = _without_markup(text) if _MAY_HAVE_MARKUP.search(text) else (text, (0,), (0,))
    cased = bare.translate(_SIGNS)
    small = cased.lower()
    if len(small) != len(cased):  # some letter has a lower-case form of two characters
        small = "".join(sign.lower()[:1] for sign in cased)
    return PlainText(small, breaks, distances, cased)


def _without_markup(marked: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    text = _FORMULA.sub(_formula_without_commands, marked)
    pieces: list[str] = []
    breaks, distances = [0], [0]
    position = length = 0
    for match in _MARKUP.finditer(text):
        instead = _instead(match)
        pieces += [text[position : match.start()], instead]
        length += match.start() - position + len(instead)
        position = match.end()
        breaks.append(length - 1 if instead else length)
        distances.append(position - length)
    return "".join([*pieces, text[position:]]), tuple(breaks), tuple(distances)


def _formula_without_commands(found: re.Match[str]) -> str:
    # What is removed is replaced by spaces, so that places stay the same.
    return _COMMAND.sub(lambda command: " " * len(command[0]), found[0].replace("$", " "))


def _instead(match: re.Match[str]) -> str:
    if over := match["over"] or match["digit"]:
        return f"{over}/{match['under'] or match['other']}"
    if match.group().startswith("&"):
        return unescape(match.group())
    if accented := match["accented"]:
        return unicodedata.normalize("NFC", accented)
    return _PLAIN.get(match.lastgroup or "", match["sign"] or match["comma"] or "")
