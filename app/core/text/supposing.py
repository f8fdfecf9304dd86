"""Whether a text only supposes something: then it states no fact, replaces none and settles nothing."""

from __future__ import annotations

from typing import Final

from app.core.text.cued import Cue
from app.core.text.languages.joined import sources_of

_SUPPOSED: Final = Cue(sources_of("claims", "supposed"))


def is_supposed(text: str) -> bool:
    """Whether a text calls what it says a hypothesis, a guess or a probability."""
    return _SUPPOSED.is_in(text)
