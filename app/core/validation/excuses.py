"""Texts in which a model talks about its task instead of doing it: refusals, and requests for input."""

from __future__ import annotations

import re
from typing import Final

from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled

_EXCUSE: Final = compiled(
    rf"\W*(?:(?:{alternatives('refusals', 'openings')})\b[\s,.!:—¿¡-]*){{0,2}}(?:{alternatives('refusals', 'forms')})",
    re.IGNORECASE,
)


def is_excuse(text: str) -> bool:
    """Whether a text begins like a model that talks about its task instead of doing it.

    Only the beginning counts, in the first person or as a request: a record that tells of such a sentence in the third
    person ("the assistant could not help with …") is a record.
    """
    return _EXCUSE.match(text[:400]) is not None
