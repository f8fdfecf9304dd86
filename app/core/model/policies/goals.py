"""How languages state a goal: one TOML file per language in ``goal_tables/``, read once; another is one file more.

``statements`` are regular expressions without regard to case, with straight apostrophes; ``^`` is the start of a line.
Every repetition in them is bounded, which bounds the time that they can take.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from app.core.text.factors import fold, pieces
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


@dataclass(frozen=True, slots=True)
class _Statement:
    """One pattern, with the pieces of which a text must hold one for it to fit; ``None``: it is always tried."""

    pattern: re.Pattern[str]
    needs: frozenset[str] | None
    words: frozenset[str]
    """The longest word of each piece: many pieces have the same one."""

    def fits(self, text: str, folded: str) -> bool:
        may_fit = self.needs is None or any(piece in folded for piece in self.needs)
        return may_fit and self.pattern.search(text) is not None


def _compiled(tables: Mapping[str, Sequence[str]]) -> tuple[_Statement, ...]:
    return tuple(
        _Statement(compiled(pattern, re.IGNORECASE | re.MULTILINE), needs, frozenset(map(_longest_word, needs or ())))
        for patterns in tables.values()
        for pattern in patterns
        for needs in [pieces(pattern)]
    )


def _longest_word(piece: str) -> str:
    return max(piece.split(), key=len, default=piece)


GOALS: Final[Mapping[str, tuple[str, ...]]] = _read()
_GOALS: Final = _compiled(GOALS)


def states_goal(text: str, tables: Mapping[str, Sequence[str]] | None = None) -> bool:
    """Whether a text says what somebody is after, in any of the tables' languages."""
    plain = text[:LOOKED_AT].translate(_APOSTROPHE)
    folded = fold(plain)
    statements = _GOALS if tables is None else _compiled(tables)
    there = {word for word in (_WORDS if tables is None else _words(statements)) if word in folded}
    near = (one for one in statements if one.needs is None or not one.words.isdisjoint(there))
    return any(one.fits(plain, folded) for one in near)


def _words(statements: Sequence[_Statement]) -> frozenset[str]:
    return frozenset().union(*(one.words for one in statements))


_WORDS: Final = _words(_GOALS)
