r"""The kinds of values that a file of a language has.

* ``Pattern``: a regular expression; unless its field says otherwise, case is ignored and apostrophes are straight.
  Every repetition in it is bounded or possessive (see ``app.core.text.patterns``). ``Patterns``: one, or a list.
* ``Words``: words separated by spaces.
* ``Rows``: lines with a value and the words for it, separated by spaces: ``10 ten``. ``минут/а/ы`` means the stem alone
  and with each ending, ``pasado_mañana`` means two words. They are in lower case, with "е" for "ё".
* ``Template``: a text with names in braces that are filled in; its field says which names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Formatter
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from app.core.text.patterns import fault_of

Script = Literal[
    "latin", "cyrillic", "han", "kana", "hangul", "arabic", "greek", "hebrew", "devanagari", "bengali", "tamil", "thai",
    "georgian", "armenian",
]  # fmt: skip
CHECKED: Final = {"patterns": True}
"""The context of a validation that also tries each pattern. That takes time, and is not needed for our own files."""


def _tried(source: str, info: ValidationInfo) -> str:
    if info.context == CHECKED and (fault := fault_of(source.replace("{number}", "1"))):
        raise ValueError(f"{source!r} is no regular expression: {fault}")
    return source


def _listed(given: object) -> object:
    return (given,) if isinstance(given, str) else given


def _parted(given: object) -> object:
    return tuple(given.split()) if isinstance(given, str) else given


def _naming(*names: str) -> Callable[[str], str]:
    def checked(template: str) -> str:
        unknown = {name for _, name, _, _ in Formatter().parse(template) if name is not None} - set(names)
        if unknown:
            shown = [", ".join(f"{{{name}}}" for name in each) or "none" for each in (sorted(unknown), names)]
            raise ValueError(f"unknown placeholder {shown[0]}; allowed: {shown[1]}")
        return template

    return checked


def spelled(word: str) -> Iterator[str]:
    """The words that one word of a row stands for."""
    stem, *endings = word.split("/")
    yield stem.replace("_", " ")
    yield from (stem + ending for ending in endings)


def _rows_of_lines(given: object) -> object:
    if not isinstance(given, str):
        return given
    rows = [line.split() for line in given.strip().splitlines()]
    return tuple(
        (first, tuple(form for word in words for form in spelled(word))) for first, *words in filter(None, rows)
    )


def _numbered(rows: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    for first, words in rows:
        try:
            float(first)
        except ValueError:
            raise ValueError(f"the row {' '.join([first, *words])!r} has to begin with a number") from None
    return rows


Pattern = Annotated[str, AfterValidator(_tried)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_listed)]
Words = Annotated[tuple[str, ...], BeforeValidator(_parted)]
Rows = Annotated[tuple[tuple[str, tuple[str, ...]], ...], BeforeValidator(_rows_of_lines)]
Numbers = Annotated[Rows, AfterValidator(_numbered)]
"""Rows that begin with a number."""
Template = Annotated[str, AfterValidator(_naming())]
OfTopics = Annotated[str, AfterValidator(_naming("topics"))]
OfText = Annotated[str, AfterValidator(_naming("text"))]
OfSpeaker = Annotated[str, AfterValidator(_naming("speaker", "text"))]
OfDay = Annotated[str, AfterValidator(_naming("day", "month", "year", "weekday"))]


class Section(BaseModel):
    """A part of a file; an unknown key in it is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
