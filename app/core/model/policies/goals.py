"""How languages state a goal: one TOML file per language in ``goal_tables/``, read once; another is one file more.

``statements`` are regular expressions without regard to case, with straight apostrophes; ``^`` is the start of a line.
Every repetition in them is bounded, which bounds the time that they can take.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from app.core.text.factors import Index, fold
from app.core.text.patterns import compiled

LOOKED_AT: Final = 4_000
"""Characters of a message in which a goal is looked for: nobody states one behind pages of pasted text."""

_FOLDER: Final = "goal_tables"
_APOSTROPHE: Final = str.maketrans("’ʼ", "''")


def _read() -> dict[str, tuple[str, ...]]:
    """Patterns by language, in the order of the files' names."""
    found = [
        file for file in files("app.core.model.policies").joinpath(_FOLDER).iterdir() if file.name.endswith(".toml")
    ]
    tables = [tomllib.loads(file.read_text("utf-8")) for file in sorted(found, key=lambda file: file.name)]
    return {table["language"]: tuple(table["statements"]) for table in tables}


class _Statements:
    """Patterns, each tried only on texts that it may fit."""

    def __init__(self, tables: Mapping[str, Sequence[str]]) -> None:
        self._index = Index()
        self.patterns = {
            self._index.add(pattern): compiled(pattern, re.IGNORECASE | re.MULTILINE)
            for patterns in tables.values()
            for pattern in patterns
        }

    def fit(self, text: str) -> bool:
        """Whether one of them fits."""
        opened = self._index.open(fold(text))
        return any(bit & opened and pattern.search(text) for bit, pattern in self.patterns.items())


GOALS: Final[Mapping[str, tuple[str, ...]]] = _read()
_GOALS: Final = _Statements(GOALS)


def states_goal(text: str, tables: Mapping[str, Sequence[str]] | None = None) -> bool:
    """Whether a text says what somebody is after, in any of the tables' languages."""
    statements = _GOALS if tables is None else _Statements(tables)
    return statements.fit(text[:LOOKED_AT].translate(_APOSTROPHE))
