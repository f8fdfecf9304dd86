"""What is only supposed: it states no fact, takes the place of none, and settles nothing."""

from __future__ import annotations

from typing import Final

from app.core.text.cued import CuedPattern
from app.core.text.languages.joined import pattern_of

_SUPPOSED: Final = CuedPattern(pattern_of("claims", "supposed"))


def is_supposed(text: str) -> bool:
    """Whether a text calls what it says a hypothesis, a guess or a probability."""
    return _SUPPOSED.matches(text)
