"""Decides whether a text only supposes something: then it does not state, replace or settle anything."""

from __future__ import annotations

from typing import Final

from app.core.text.cue_patterns import CuePatterns
from app.core.text.languages.combined_words import sources_of

_SUPPOSED: Final = CuePatterns(sources_of("claims", "supposed"))


def is_supposed(text: str) -> bool:
    """Whether a text calls what it says a hypothesis, a guess or a probability."""
    return _SUPPOSED.is_in(text)
