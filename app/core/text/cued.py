"""Patterns that say what a text is, each tried only on texts that contain what it needs: most contain none of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.core.text.patterns import capped, capped_later
from app.core.text.required_literals import PatternIndex, alternatives, normalized

_NOTHING: Final = capped(r"(?!)", 1)


class NormalizedText:
    """A text in the spelling that pieces are looked for in; what may match in it is found out once for each table."""

    __slots__ = ("_possible", "text")

    def __init__(self, text: str) -> None:
        self.text = normalized(text)
        self._possible: dict[int, int] = {}

    def may_match(self, cues: Cues) -> int:
        """The numbers, as bits, of the table's patterns that may match; found out once."""
        known = self._possible.get(id(cues))
        if known is None:
            known = self._possible[id(cues)] = cues.may_match(self.text)
        return known


class Cue:
    """Patterns of which one is enough, without regard to case."""

    __slots__ = ("_needed", "_parts", "mask", "pattern")

    def __init__(self, parts: Sequence[tuple[int, str, frozenset[str] | None]], longest: int | None) -> None:
        """From (bit, pattern, pieces of which one is needed) of each, and the characters of a text that they see."""
        self._parts: Final = {bit: capped_later(part, longest, re.IGNORECASE) for bit, part, _ in parts}
        self.mask: Final = sum(self._parts)
        joined = "|".join(f"(?:{part})" for _, part, _ in parts)
        self.pattern: Final = capped_later(joined, longest, re.IGNORECASE) if parts else _NOTHING
        needed = [pieces for _, _, pieces in parts]
        self._needed: Final = None if None in needed else frozenset[str]().union(*(need or () for need in needed))

    def matches(self, texts: Sequence[str], possible: int) -> bool:
        """Whether one of these texts has it.

        Args:
            texts: Parts of one text.
            possible: What ``NormalizedText.may_match`` says of that text.
        """
        left = self.mask & possible
        while left:
            bit = left & -left
            if any(map(self._parts[bit].search, texts)):
                return True
            left ^= bit
        return False

    def all_in(self, text: str) -> Iterator[re.Match[str]]:
        """Where the cue stands in a text of which nothing is looked up yet."""
        if self._needed is not None:
            folded = normalized(text)
            if not any(piece in folded for piece in self._needed):
                return iter(())
        return self.pattern.finditer(text)


class Cues(PatternIndex):
    """All the cues of one table, numbered as they come."""

    def __init__(self, longest: int | None = None) -> None:
        """``longest``: characters of a text that their patterns see; all where it is left out."""
        super().__init__()
        self._longest: Final = longest

    def cue(self, patterns: Iterable[str]) -> Cue:
        """Take one in."""
        return Cue(
            [
                (self.add_needing(needed), part, needed)
                for pattern in patterns
                if pattern
                for part, needed in alternatives(pattern)
            ],
            self._longest,
        )


SAID: Final = Cues()
"""What is looked for in every sentence, by whoever looks: one look tells what of it may stand there."""


class CuedPattern:
    """A pattern, without regard to case, that is tried only on texts that contain one of its literal pieces."""

    __slots__ = ("_bit", "_pattern")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern: Final = pattern
        self._bit: Final = SAID.add(pattern.pattern)

    def matches(self, text: str) -> bool:
        """Whether a text has it."""
        return bool(SAID.may_match_text(text) & self._bit) and self._pattern.search(text) is not None
