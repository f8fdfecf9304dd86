"""Where the formulae of a text stand: what sticks together in one is a product, and no code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from app.core.text.patterns import compiled

_UP_TO: Final = r"[^\\]*+(?:\\[^()\[\]][^\\]*+)*+"
_FORMULA: Final = compiled(
    r"\$\$[^$]{1,2000}+\$\$"
    r"|(?<![a-zA-Z0-9$])\$(?!\s)(?P<within>[^$\n]{1,500}+)(?<!\s)\$(?![a-zA-Z0-9$])"
    rf"|\\\({_UP_TO}\\\)|\\\[{_UP_TO}\\\]"
)
_OF_MATHEMATICS: Final = compiled(r"[\\^_={}]")
"""Signs without which words between two dollars are about money: "$5 (in US$)"."""


class Formulae:
    """The stretches of a text between dollars, or brackets with a backslash."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, text: str) -> None:
        found = list(_spans(text)) if "$" in text or "\\" in text else []
        self._starts = [start for start, _ in found]
        self._ends = [end for _, end in found]

    def hold(self, place: int) -> bool:
        """Whether a place is within one of them."""
        before = bisect_right(self._starts, place)
        return before > 0 and place < self._ends[before - 1]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _FORMULA.finditer(text):
        within = match["within"] or ""
        if " " not in within or _OF_MATHEMATICS.search(within):
            yield match.span()
