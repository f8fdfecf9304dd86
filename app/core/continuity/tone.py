"""Whether what is served keeps the tone of a stretch: its language, and the moods and manners that can be heard in it.

A simple measure: whether a mood of the user is told at all, by a word for it or a word of it; not how well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.continuity.statements import sample
from app.core.model.conversation import Message
from app.core.reading.cues import DELIGHT, DISTRESS, FRUSTRATION, INFORMAL, POLITE
from app.core.reading.labels import PHRASES
from app.core.text.language import detect, differs

_FEWEST: Final = 2  # messages in which a mood is heard before it counts
_MOST_CHARACTERS: Final = 6_000
_MOODS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (FRUSTRATION, "frustrated"),
    (DISTRESS, "upset"),
    (DELIGHT, "friendly"),
    (POLITE, "polite"),
    (INFORMAL, "informal"),
)
"""What a mood sounds like, and the name of the phrase that tells it."""


def tone_kept(span: Sequence[Message], told: str) -> float | None:
    """The share of what can be heard in a stretch that what is served tells: its language, each mood; 0–1.

    Args:
        span: The folded messages.
        told: What stands for them.

    Returns:
        ``None`` where neither a language nor a mood can be told.
    """
    texts = [one.content for one in sample(span, _MOST_CHARACTERS) if one.role == "user" and not one.is_command]
    spoken = "\n".join(texts)[:_MOST_CHARACTERS]
    told = told[:_MOST_CHARACTERS]
    checks = [told.strip() != "" and not differs(told, spoken)] if detect(spoken) else []
    for pattern, name in _MOODS:
        if sum(bool(pattern.search(text[:_MOST_CHARACTERS])) for text in texts) >= _FEWEST:
            checks.append(bool(pattern.search(told)) or _is_named(name, told))
    return round(sum(checks) / len(checks), 4) if checks else None


def _is_named(name: str, told: str) -> bool:
    return any(str(getattr(known, name)).casefold() in told.casefold() for known in PHRASES.values())
