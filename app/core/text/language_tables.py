"""What languages say, as one TOML file each in ``language_tables/``, read once; another language is one file more.

* ``language``: ISO 639-1; ``spaced``: whether its words stand between blanks (unset: they do).
* ``work``: ``done`` (something was made, changed or looked at), ``ahead`` (it is yet to be done).
* ``contrary``: ``denies`` (the words after it), ``hedges`` (what may deny, limit or put a condition, in words of its
  own), ``yet`` (of these, what does not limit a denial), ``joins`` (words between clauses), ``answers`` (a no, to begin
  with), ``asks`` (what a question ends with, its mark apart), ``pronouns`` (what a word of no content begins with).
* ``ending``: ``never`` (words after which something has to come), ``joins`` (before which a sentence may be left).

``pronouns``, ``never`` and ``ending.joins`` are words between blanks. All else are regular expressions without regard
to case, tried on texts of every language: those of a language with spaced words fit whole words only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from app.core.text.patterns import compiled

_NOTHING: Final = r"(?!)"


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """One language."""

    language: str
    is_spaced: bool
    texts: Mapping[str, Mapping[str, str]]
    """By section and key."""

    def text(self, section: str, key: str) -> str:
        """What stands there; empty where the language says nothing of it."""
        return self.texts.get(section, {}).get(key, "")


def read_language_tables(folder: Traversable) -> tuple[LanguageTable, ...]:
    """Every ``.toml`` file of a folder, by name.

    Raises:
        KeyError: A file names no language.
    """
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return tuple(_table(tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in found)


def pattern_of(section: str, key: str, tables: Sequence[LanguageTable] | None = None) -> re.Pattern[str]:
    """What fits where any language says this; nothing where none does."""
    return compiled(alternatives(section, key, tables), re.IGNORECASE)


def alternatives(section: str, key: str, tables: Sequence[LanguageTable] | None = None) -> str:
    """Source of a group that fits what any language says here: whole words where words are spaced."""
    given = [(table, text) for table in _or_all(tables) if (text := table.text(section, key))]
    words = "|".join(text for table, text in given if table.is_spaced)
    signs = "|".join(text for table, text in given if not table.is_spaced)
    parts = [rf"\b(?:{words})\b"] if words else []
    return f"(?:{'|'.join([*parts, *([signs] if signs else [])]) or _NOTHING})"


def words_of(section: str, key: str, tables: Sequence[LanguageTable] | None = None) -> frozenset[str]:
    """Every language's words of this key."""
    return frozenset(word for table in _or_all(tables) for word in table.text(section, key).split())


def _table(given: Mapping[str, Any]) -> LanguageTable:
    sections = {name: value for name, value in given.items() if isinstance(value, dict)}
    return LanguageTable(language=given["language"], is_spaced=given.get("spaced", True), texts=sections)


def _or_all(tables: Iterable[LanguageTable] | None) -> Iterable[LanguageTable]:
    return LANGUAGE_TABLES if tables is None else tables


# The files are part of the program, as the patterns of its modules are: read with it, once, from wherever it stands.
LANGUAGE_TABLES: Final = read_language_tables(files("app.core.text") / "language_tables")
