"""Patterns that classify texts. Each is tried only on texts that have the letters it needs (``required_literals``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.core.text.patterns import capped, capped_later
from app.core.text.required_literals import PatternIndex, alternatives

_NOTHING: Final = capped(r"(?!)", 1)


SAID: Final = PatternIndex()
"""The literals that the cues of all modules need: one search of a text tells which cues may match it."""


class Cue:
    """A set of patterns. A text has the cue if it matches one of them; case is ignored.

    Args:
        patterns: The patterns; empty ones are left out.
        longest: How many characters of a text the patterns see; ``None``: all.
    """

    __slots__ = ("_parts", "mask", "pattern")

    def __init__(self, patterns: Iterable[str], longest: int | None = None) -> None:
        parts = [one for pattern in patterns if pattern for one in alternatives(pattern)]
        self._parts: Final = {
            SAID.add_needing(needed): capped_later(part, longest, re.IGNORECASE) for part, needed in parts
        }
        self.mask: Final = sum(self._parts)
        joined = "|".join(f"(?:{part})" for part, _ in parts)
        self.pattern: Final = capped_later(joined, longest, re.IGNORECASE) if parts else _NOTHING

    def is_in(self, text: str) -> bool:
        """Whether a text has the cue."""
        return self.matches((text,), SAID.may_match_text(text))

    def matches(self, texts: Sequence[str], possible: int) -> bool:
        """Whether one of these texts has the cue.

        Args:
            texts: Parts of one text.
            possible: The result of ``SAID.may_match_text`` for that text.
        """
        left = self.mask & possible
        while left:
            bit = left & -left
            if any(map(self._parts[bit].search, texts)):
                return True
            left ^= bit
        return False


def all_in(text: str, cues: Iterable[Cue]) -> Iterator[re.Match[str]]:
    """The places of these cues in a text, one cue after the other."""
    possible = SAID.may_match_text(text)
    return (found for cue in cues if cue.mask & possible for found in cue.pattern.finditer(text))
