"""What a text says by the cues of the languages whose letters it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.core.anchors.tables import Table
from app.core.text.memo import memoized


@memoized()
def says(text: str, tables: tuple[Table, ...], cue: str) -> bool:
    """Whether a cue of ``turn`` stands in it."""
    return next(_all(text, tables, cue), None) is not None


def named_by(text: str, tables: tuple[Table, ...], cue: str) -> list[str]:
    """What the groups of a cue of ``turn`` name in it, in order."""
    return [group for found in _all(text, tables, cue) for group in found.groups() if group]


def _all(text: str, tables: tuple[Table, ...], cue: str) -> Iterator[re.Match[str]]:
    plain = text.replace("’", "'")
    for table in tables:
        if table.letters.search(plain):
            yield from getattr(table, cue).all_in(plain)
