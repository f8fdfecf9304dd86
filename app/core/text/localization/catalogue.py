"""Catalogues: what the service itself says to people (notices, errors, the command line), by language.

Another language of these texts is another ``<language>.toml`` next to this module; nothing has to name it. What the
service *recognises* in conversations of a language is in ``app/core/text/languages`` instead.

The keys of a file: ``language`` (ISO 639-1); ``[numbers]`` with ``group`` and ``decimal``, the marks within a number;
and messages in any tables, named by their path (``stats.tokens.saved``). A message is a text, or a table of plural
forms chosen by its ``{count}`` by the rules of the CLDR for the language.
``{words}`` in braces are filled in. Messages that a file lacks are in English. ``[own]`` holds messages whose English
is in the code and not in the English file: ``use.<schema>``, ``title.<error code>``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Final

from babel import Locale
from babel.plural import PluralRule

from app.core.text.patterns import compiled

FALLBACK: Final = "en"
"""The language that has every message."""
FORMS: Final = frozenset({"zero", "one", "two", "few", "many", "other"})
"""The names that the CLDR gives to plural forms."""
OTHER: Final = "other"
"""The plural form for numbers to which no rule applies; every language has it."""

_PLACE: Final = compiled(r"\{(\w{1,40})\}")
_RANGE: Final = compiled(
    r"\s{0,8}([A-Za-z]{1,8})(?:[-_][A-Za-z0-9_-]{1,40})?\s{0,8}(?:;\s{0,8}q=([01](?:\.\d{0,3})?)\s{0,8})?"
)
_MAX_HEADER_LENGTH: Final = 1_000
_HEAD: Final = frozenset({"language", "numbers", "own"})

Number = int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The messages of one language."""

    language: str
    plurals: PluralRule
    group: str
    decimal: str
    messages: Mapping[str, str | Mapping[str, str]]
    own: Mapping[str, str]
    """Translations of texts whose English is in the code; empty for English."""

    def date(self, day: date, *, with_year: bool = True) -> str:
        """A day with its weekday, as the language writes it for a chat model."""
        month, weekday = self.text(f"context.month.{day.month}"), self.text(f"context.weekday.{day.isoweekday()}")
        key = "context.date" if with_year else "context.date_same_year"
        return self.text(key, weekday=weekday, day=str(day.day), month=month, year=str(day.year))

    def has(self, key: str) -> bool:
        """Whether this catalogue or the English one has the message."""
        return key in self.messages or key in CATALOGUES[FALLBACK].messages

    def wordings(self, section: str) -> tuple[str, ...]:
        """The messages of a table that has several wordings of the same, in their order."""
        home = self if any(key.startswith(f"{section}.") for key in self.messages) else CATALOGUES[FALLBACK]
        return tuple(self.text(key) for key in home.messages if key.startswith(f"{section}."))

    def number(self, value: Number, decimals: int = 0) -> str:
        """A number as the language writes it."""
        whole, _, fraction = f"{value:,.{decimals}f}".partition(".")
        written = whole.replace(",", self.group)
        return f"{written}{self.decimal}{fraction}" if fraction else written

    def text(self, key: str, **given: str | Number) -> str:
        """The message with the given values filled in; ``count`` chooses the plural form.

        Numbers are written as the language writes them, fractions with at most two digits.

        Raises:
            KeyError: Neither this catalogue nor the English one has the message.
        """
        home = self if key in self.messages else CATALOGUES[FALLBACK]
        message = home.messages[key]
        count = given.get("count", 0)
        if not isinstance(message, str):
            form = home.plurals(Decimal(count if isinstance(count, str) else _digits(count)))
            message = message.get(form, message[OTHER])
        filled = {name: item if isinstance(item, str) else self._written(item) for name, item in given.items()}
        return _PLACE.sub(lambda place: filled.get(place[1], place[0]), message)

    def word(self, section: str, word: str) -> str:
        """The name of a word of ours (``trigger``, ``manual``) in this language; without a message, the word itself."""
        key = f"{section}.{word}"
        return self.text(key) if self.has(key) else word.replace("_", " ")

    def _written(self, value: Number) -> str:
        return self.number(value, len(_digits(value).partition(".")[2]))


def _digits(value: Number) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def read_catalogues(folder: Traversable) -> Mapping[str, Catalogue]:
    """Every ``.toml`` file of a folder, by language.

    Raises:
        KeyError: A file lacks ``language``, or the characters of its numbers.
        UnknownLocaleError: The CLDR does not know the language.
        ValueError: A plural message has no form ``other``.
    """
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    made = (_catalogue(tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in found)
    return MappingProxyType({one.language: one for one in made})


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    texts = {name: item for name, item in given.items() if name not in _HEAD}
    return Catalogue(
        language=given["language"],
        plurals=Locale(given["language"]).plural_form,
        group=given["numbers"]["group"],
        decimal=given["numbers"]["decimal"],
        messages=MappingProxyType(dict(_messages(texts, ""))),
        own=MappingProxyType(dict(_own(given.get("own", {}), ""))),
    )


def _messages(given: Mapping[str, Any], path: str) -> Iterator[tuple[str, str | Mapping[str, str]]]:
    for name, item in given.items():
        key = f"{path}{name}"
        if isinstance(item, str):
            yield key, item
        elif item and set(item) <= FORMS:
            if OTHER not in item:
                raise ValueError(f"{key} has no form {OTHER!r}")
            yield key, item
        else:
            yield from _messages(item, f"{key}.")


def _own(given: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, item in given.items():
        if isinstance(item, str):
            yield f"{path}{name}", item
        else:
            yield from _own(item, f"{path}{name}.")


def catalogue_of(*wishes: str | None) -> Catalogue:
    """The catalogue for the first wish for which there is one; otherwise the English one.

    Args:
        wishes: Each is a BCP 47 tag (``ru-RU``) or an ``Accept-Language`` header; ``None``, ``*`` and nonsense are
            ignored.
    """
    spoken = (language for wish in wishes for language in languages(wish or ""))
    return next((CATALOGUES[language] for language in spoken if language in CATALOGUES), CATALOGUES[FALLBACK])


def languages(wish: str) -> Sequence[str]:
    """The primary languages of an ``Accept-Language`` header or of one tag, the most wanted first."""
    parts = [found for one in wish[:_MAX_HEADER_LENGTH].split(",") if (found := _RANGE.fullmatch(one))]
    weighed = [(float(found[2]) if found[2] else 1.0, found[1].lower()) for found in parts]
    return [language for weight, language in sorted(weighed, key=lambda one: -one[0]) if weight > 0]


# This does not count as I/O of the core: the files are part of the program, and are read once with it.
CATALOGUES: Final = read_catalogues(files("app.core.text.localization"))
"""The catalogues by language."""
