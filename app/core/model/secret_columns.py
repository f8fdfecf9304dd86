"""Secrets in a table below the name of their column: ``| user | password |``, ``login;password;role``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.core.model.secret_names import is_secret_by_itself, kind_named, may_be_named
from app.core.model.secret_shapes import FoundSecret
from app.core.text.patterns import compiled

_ENDS: Final = tuple(map(compiled, (r"\|", r"\t", r";", r",", r"[ ]{2,}")))
"""Possible separators of cells. The first that fits a head is the one of its table."""
_LINE: Final = compiled(r"[^\r\n]+")
_RULE: Final = compiled(r"[-+|:= \t]+")
# A column's name has no sign that ends or opens a sentence; most other lines have one and so cannot be heads.
_NAME: Final = compiled(r"[\w #/-]{0,40}")
_HEAD: Final = compiled(r"[\w #/\-|\t;,\"'`*]{3,400}")
_ROUND_A_CELL: Final = " \t\"'`*"

_Cell = tuple[int, int]
"""The place of a cell in its line."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first row of a table that has columns of secrets."""

    end: re.Pattern[str]
    width: int
    kinds: Mapping[int, str]
    """The kinds of secrets, by column."""


def in_columns(text: str) -> Iterator[FoundSecret]:
    """Values that look like secrets, in rows with as many cells as the head right above them."""
    if "\n" not in text or not may_be_named(text):
        return
    head, done = None, 0
    for line in _LINE.finditer(text):
        is_next = text.count("\n", done, line.start()) < 2  # noqa: PLR2004 - an empty line ends a table
        done = line.end()
        if head is not None and is_next and _RULE.fullmatch(line.group()):
            continue
        cells = _cells(line.group(), head.end) if head is not None and is_next else ()
        if head is None or len(cells) != head.width:
            head = _head(line.group())
            continue
        for place, kind in head.kinds.items():
            start, end = cells[place]
            value = line.group()[start:end]
            if not any(map(str.isspace, value)) and is_secret_by_itself(kind, value):
                yield line.start() + start, line.start() + end, kind


def _head(line: str) -> _Head | None:
    if not _HEAD.fullmatch(line) or not may_be_named(line):
        return None
    for end in _ENDS:
        cells = _cells(line, end)
        names = [line[start:stop] for start, stop in cells]
        if sum(map(bool, names)) > 1 and all(map(_NAME.fullmatch, names)):
            kinds = {place: kind for place, name in enumerate(names) if (kind := kind_named(name))}
            if kinds:
                return _Head(end, len(cells), kinds)
    return None


def _cells(line: str, end: re.Pattern[str]) -> Sequence[_Cell]:
    bounds = [(-1, 0), *(found.span() for found in end.finditer(line)), (len(line), -1)]
    return [_trimmed_cell(line, before[1], after[0]) for before, after in pairwise(bounds)]


def _trimmed_cell(line: str, start: int, stop: int) -> _Cell:
    cell = line[start:stop]
    start += len(cell) - len(cell.lstrip(_ROUND_A_CELL))
    return start, start + len(cell.strip(_ROUND_A_CELL))
