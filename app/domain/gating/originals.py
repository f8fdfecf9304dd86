"""How a text goes on where it was taken from: whether its last words end there, go on, or stand within a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from app.domain.words.language_tables import words_of
from app.domain.words.patterns import compiled

_MOST: Final = 6  # words of an end that are looked for
_FEWEST: Final = 3  # words that say that an end is an original's own
_SIGNS_PER_WORD: Final = 2
_PLACES: Final = 40  # at which one end is looked at
_SIGN: Final = compiled(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]")
_GOES_ON: Final = compiled(r"[ .,:/@_'’-][^\W_]| [\"'“«(]")
"""Another word, or more of a value or a compound."""
_ENDS: Final = "\n.!?…。！？｡؟।۔"
_WORD: Final = compiled(r" (\w+)")
_JOINS: Final = words_of("ending", "joins")
_REST: Final = compiled(r"\w*")
_REMEMBERED: Final = 512


@dataclass(frozen=True, slots=True)
class After:
    """What the longest stretch of last words meets in the originals."""

    ends: bool = False
    """A sentence or a message ends there too."""
    goes_on: int = 0
    """Words that stand so in an original which goes on within its clause; 0 where it does not."""
    inside: int = 0
    """Words that stand so before a longer last one; 0 where there is none."""
    whole: str = ""
    """That longer word."""
    is_known: bool = False
    """Whether the last word stands somewhere as it is."""


class Originals:
    """Texts that a state is about.

    Args:
        texts: Asked for once, when something is looked up.
    """

    def __init__(self, texts: Callable[[], Iterable[str]] = tuple) -> None:
        self._texts = texts
        self.after = lru_cache(maxsize=_REMEMBERED)(self._after)

    @cached_property
    def _lines(self) -> str:
        lines = (" ".join(line.casefold().split()) for text in self._texts() for line in text.splitlines())
        return "\n".join(["", *filter(None, lines), ""])

    def _after(self, text: str) -> After:
        """What comes after a text's last words; nothing known where they stand nowhere."""
        folded = " ".join(text.casefold().split())
        if not folded or len(self._lines) == 1:
            return After()
        words = folded.split(" ")
        # Beyond the places that are looked at, too: a talk that repeats itself ends somewhere in these very words.
        last = " ".join(words[-_MOST:])
        if f" {last}\n" in self._lines or f"\n{last}\n" in self._lines:
            return After(ends=True, is_known=True)
        if _SIGN.match(folded[-1]):
            return self._after_signs(folded)
        best, is_known = After(), False
        for count in range(1, min(len(words), _MOST) + 1):
            found = set(self._met(" ".join(words[-count:])))
            if not found:
                break
            is_known = is_known or any(kind != "inside" for kind, _ in found)
            best = self._judged(found, count, is_all=count == len(words), is_known=is_known)
        return best

    def _judged(self, found: set[tuple[str, str]], count: int, *, is_all: bool, is_known: bool) -> After:
        kinds = {kind for kind, _ in found}
        if "ends" in kinds:
            return After(ends=count >= _FEWEST or is_all, is_known=is_known)
        if "pauses" in kinds:
            return After(is_known=is_known)
        if "goes on" in kinds:
            return After(goes_on=count, is_known=is_known)
        return After(inside=count - 1, whole=min(whole for _, whole in found), is_known=is_known)

    def _after_signs(self, text: str) -> After:
        """Of a script without blanks."""
        for length in range(min(len(text), _MOST * _SIGNS_PER_WORD), _SIGNS_PER_WORD * _FEWEST - 1, -1):
            places = list(self._places(text[-length:]))
            if places:
                after = {self._lines[end] for _, end in places}
                if not all(map(_SIGN.match, after)):
                    return After(ends=not after.isdisjoint(_ENDS))
                return After(goes_on=length // _SIGNS_PER_WORD)
        return After()

    def _met(self, tail: str) -> Iterator[tuple[str, str]]:
        """How each stretch of an original with these words goes on, and the last word as it stands there."""
        last = tail.rpartition(" ")[2]
        for start, end in self._places(tail):
            if self._lines[start - 1].isalnum() and tail[0].isalnum():
                continue
            rest = self._lines[end : end + 2]
            if rest[0].isalnum() and tail[-1].isalnum():
                more = _REST.match(self._lines, end)
                yield "inside", last + (more[0] if more else "")
            elif _GOES_ON.match(rest):
                following = _WORD.match(self._lines, end)
                yield "pauses" if following and following[1] in _JOINS else "goes on", last
            else:
                yield "ends" if rest[0] in _ENDS else "pauses", last

    def _places(self, tail: str) -> Iterator[tuple[int, int]]:
        start = self._lines.find(tail)
        for _ in range(_PLACES):
            if start < 0:
                return
            yield start, start + len(tail)
            start = self._lines.find(tail, start + 1)
