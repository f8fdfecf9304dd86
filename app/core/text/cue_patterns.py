"""Patterns that classify texts. Each is tried only on texts that have the letters it needs (``required_literals``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.core.text.patterns import capped, capped_later
from app.core.text.required_literals import PatternIndex, alternatives

_NOTHING: Final = capped(r"(?!)", 1)


CUE_INDEX: Final = PatternIndex()
"""The literals that the cues of all modules need: one search of a text tells which cues may match it."""


class CuePatterns:
    """A set of patterns. A text has the cue if it matches one of them; case is ignored.

    Args:
        patterns: The patterns; empty ones are left out.
        longest: How many characters of a text the patterns see; ``None``: all.
    """

    __slots__ = ("_parts", "mask", "pattern")

    def __init__(self, patterns: Iterable[str], longest: int | None = None) -> None:
        parts = [one for pattern in patterns if pattern for one in alternatives(pattern)]
        self._parts: Final = {
            CUE_INDEX.add_needing(needed): capped_later(part, longest, re.IGNORECASE) for part, needed in parts
        }
        self.mask: Final = sum(self._parts)
        joined = "|".join(f"(?:{part})" for part, _ in parts)
        self.pattern: Final = capped_later(joined, longest, re.IGNORECASE) if parts else _NOTHING

    def is_in(self, text: str) -> bool:
        """Whether a text has the cue."""
        return self.matches((text,), CUE_INDEX.may_match_text(text))

    def matches(self, texts: Sequence[str], possible_cues: int) -> bool:
        """Whether one of these texts has the cue.

        Args:
            texts: Parts of one text.
            possible_cues: The result of ``SAID.may_match_text`` for that text.
        """
        remaining = self.mask & possible_cues
        while remaining:
            bit = remaining & -remaining
            if any(map(self._parts[bit].search, texts)):
                return True
            remaining ^= bit
        return False

    def places(self, text: str, possible_cues: int) -> Iterator[re.Match[str]]:
        """The places of the cue in a text. If only one of its patterns may match, only this one is tried."""
        return self._parts.get(self.mask & possible_cues, self.pattern).finditer(text)


def cue_matches(text: str, cues: Iterable[CuePatterns]) -> Iterator[re.Match[str]]:
    """The places of these cues in a text, one cue after the other."""
    possible_cues = CUE_INDEX.may_match_text(text)
    return (found for cue in cues if cue.mask & possible_cues for found in cue.places(text, possible_cues))
