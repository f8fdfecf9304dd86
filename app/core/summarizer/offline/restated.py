"""Statements by their form: "the deadline is …", whatever the value, so that a newer value replaces the older one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.text.identifiers import Identifier, Kind
from app.core.text.languages.joined import alternatives
from app.core.text.patterns import compiled
from app.core.text.supposing import is_supposed

_VALUES: Final[frozenset[Kind]] = frozenset(
    {"date", "time", "money", "number", "version", "code", "uuid", "url", "email"}
)
_STATES: Final = compiled(
    rf"(?:^|\s)(?:{alternatives('clauses', 'equates', spaced=True)}|[=—])\s|:\s"
    rf"|(?:{alternatives('clauses', 'equates', spaced=False)})",
    re.IGNORECASE,
)
"""Behind it stands what is said of the subject."""

_OPEN_SUBJECT: Final = compiled(rf"^(?:{alternatives('clauses', 'open_subjects')})\b", re.IGNORECASE)

_LONGEST: Final = 60  # characters of a subject


def statement_of(text: str, found: Sequence[Identifier]) -> str | None:
    """The text with the values of what it says of its subject left open; ``None`` when it states no value of one.

    Two texts with the same form say what the same thing is, at different times. Two hypotheses stand side by side.
    """
    if is_supposed(text):
        return None
    verb = _STATES.search(text)
    if verb is None or not 0 < verb.start() <= _LONGEST or _OPEN_SUBJECT.match(text):
        return None
    values = [item for item in found if item.kind in _VALUES and item.start >= verb.start()]
    if not values:
        return None
    pieces: list[str] = []
    end = 0
    for item in values:
        pieces += [text[end : item.start], f"<{item.kind}>"]
        end = item.start + len(item.text)
    return " ".join("".join([*pieces, text[end:]]).casefold().split()).rstrip(".! ")
