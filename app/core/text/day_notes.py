"""How code writes the day of a message behind a text whose times depend on it: `` (said Mon 12 May 2025)``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_values import Relative
from app.core.text.patterns import compiled


def any_of(words: Collection[str]) -> str:
    """The source of a pattern for any of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def written_days(table: Relative, forms: Iterable[str]) -> list[str]:
    """The sources of patterns for days as one language writes them in these forms, in its brackets."""
    months, weekdays = any_of(table.months), any_of(table.weekdays)
    return [
        re.escape(table.brackets.replace("{}", form))
        .replace(r"\{day\}", r"\d{1,2}")
        .replace(r"\{year\}", r"\d{4}")
        .replace(r"\{month\}", f"(?:{months})")
        .replace(r"\{weekday\}", f"(?:{weekdays})")
        for form in dict.fromkeys(forms)
    ]


def notes_of(table: Relative) -> str:
    """The source of a pattern for the notes of one language."""
    return "|".join(written_days(table, [table.said.weekday, table.said.day, table.said.month]))


_NOTE: Final = compiled(
    rf"(?:{'|'.join(notes_of(one.relative) for one in languages() if one.relative)})[.。]?", re.IGNORECASE
)


def end_of_note(text: str, place: int) -> int:
    """The end of the note that begins at a place of a text; the same place if none does."""
    note = _NOTE.match(text, place) if text[place : place + 2].lstrip()[:1] in {"(", "（"} else None
    return note.end() if note else place
