r"""Compiles every regular expression of the app and registers it, so that a test can measure each of them.

The reason: ``re`` holds the interpreter for as long as a pattern runs, and no timeout of the service can stop it. One
slow pattern and one crafted message stop every request of a process. So each pattern has to take time in proportion to
its text. That cannot be seen by reading a pattern, but it can be measured, if no pattern is left out.

Three rules keep a pattern linear. A repetition is possessive (``*+``, ``++``) unless it has to give something back. Two
neighbouring repetitions never fit the same characters. A pattern that is searched does not begin with a repetition: it
would be tried again from each place of a run (``(?<!\s)\s++x`` begins only once). If something cannot be written so, it
is not done with a pattern, or the pattern is ``capped``: it sees only the beginning of the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from inspect import currentframe
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Known:
    """A pattern that was compiled."""

    pattern: re.Pattern[str]
    longest: int | None
    """The most characters of a text that it reads; ``None``: all."""
    place: str
    """The module and line that compiled it first."""


_KNOWN: Final[dict[tuple[str, int, int | None], Known]] = {}
_AROUND: Final[set[tuple[str, int]]] = set()
"""The lookbehinds and flags used with ``any_literal`` so far. One pattern of each is measured: literals are alike."""
_LATER: Final[list[Capped]] = []


def known() -> Mapping[tuple[str, int, int | None], Known]:
    """Every pattern so far, by source, flags and cap; complete once all modules are imported.

    Patterns that were to be compiled at their first use are compiled now, which takes half a second of CPU once.
    """
    for one in _LATER:
        _ = one.pattern
    return MappingProxyType(_KNOWN)


def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern for texts of any length. Call it when a module is imported, and never with words of a text.

    Raises:
        re.error: The source is not a pattern.
    """
    return _registered(re.compile(source, flags), None, _calling_line())


def fault_of(source: str) -> str | None:
    """What is wrong with a source, for its author; ``None`` if nothing is. The pattern is not registered."""
    try:
        re.compile(f"(?:{source})")
    except re.error as error:
        return str(error)
    return None


class Capped:
    """A pattern that reads only the first characters of a text, or that is compiled only at its first use."""

    __slots__ = ("_end", "_flags", "_longest", "_pattern", "_place", "_source")

    def __init__(self, source: str, longest: int | None, flags: int, place: str) -> None:
        self._source: Final = source
        self._flags: Final = flags
        self._longest: Final = longest
        self._end: Final = sys.maxsize if longest is None else longest
        self._place: Final = place
        self._pattern: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern itself, compiled when it is first needed."""
        if self._pattern is None:
            self._pattern = _registered(re.compile(self._source, self._flags), self._longest, self._place)
        return self._pattern

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the beginning of a text."""
        return (self._pattern or self.pattern).search(text, 0, self._end)

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the start of a text; ``None`` without one."""
        return (self._pattern or self.pattern).match(text, 0, self._end)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Every match in the beginning of a text."""
        return self.pattern.finditer(text, 0, self._end)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """The text with each match in its beginning replaced."""
        return self.pattern.sub(replacement, text[: self._end]) + text[self._end :]


def capped(source: str, longest: int, flags: int = 0) -> Capped:
    """Compile a pattern that may take more than linear time, but sees so few characters that this does not matter.

    Raises:
        re.error: The source is no pattern.
    """
    found = Capped(source, longest, flags, _calling_line())
    _ = found.pattern
    return found


def capped_later(source: str, longest: int | None, flags: int = 0) -> Capped:
    """A ``Capped`` pattern that is compiled only at its first use, since a text needs few of many patterns.

    Without a cap it has to be linear, like those of ``compiled``. The source must be known to be a valid pattern.
    """
    found = Capped(source, longest, flags, _calling_line())
    _LATER.append(found)
    return found


def any_literal(texts: Collection[str], *, before: str = "", flags: int = 0) -> re.Pattern[str]:
    """A pattern that finds texts known only at run time, literally, up to the end of a word, the longest first.

    Args:
        texts: The texts, at least one.
        before: A lookbehind for what has to stand before them: one of a few that the code has.
        flags: The flags of ``re``.
    """
    if (before, flags) not in _AROUND:
        _AROUND.add((before, flags))
        _registered(re.compile(rf"{before}(?:ab|a)(?!\w)", flags), None, _calling_line())
    longest = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile(rf"{before}(?:{'|'.join(map(re.escape, longest))})(?!\w)", flags)


def _registered(pattern: re.Pattern[str], longest: int | None, place: str) -> re.Pattern[str]:
    key = (pattern.pattern, pattern.flags, longest)
    if key not in _KNOWN:
        _KNOWN[key] = Known(pattern, longest, place)
    return pattern


def _calling_line() -> str:
    frame = currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return f"{caller.f_globals['__name__']}:{caller.f_lineno}" if caller else ""
