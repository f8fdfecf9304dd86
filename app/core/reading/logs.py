"""Reads plain text of tools: listings, logs, search results, source code.

Prose stays as it is. Of all other lines only the exact values are kept, since these lines are not sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.core.reading.tool_data_lines import MAX_LINE_LENGTH, DataLine, is_code_like, line_from_fields, parse_line
from app.core.text.identifiers import find_identifiers
from app.core.text.patterns import compiled
from app.core.text.words import words as words_of

_MIN_LINES: Final = 3  # a shorter answer is a message to the caller
_MAX_LINES: Final = 400
_MAX_LINE_LENGTH: Final = 400  # the most characters of a line that are looked at
_PROSE: Final = 5  # so many plain words in a row make a line prose
_SENTENCE: Final = compiled(rf"\b(?:[^\W\d_]+(?:['’-][^\W\d_]+)? ){{{_PROSE - 1},}}[^\W\d_]+\b")
_TOKEN: Final = compiled(r"[\w@#./+~-]+(?:::?[\w.+-]+)*(?:://[^\s\"'<>`]+)?")
_PLACE: Final = compiled(r"(?::\d{1,7})+")
_FILE: Final = compiled(r"[./]")
_EDGES: Final = ".-/+~"
_ITEM: Final = compiled(r"(?:[-*+•]|\d{1,3}[.)])\s+")
_DEFINED: Final = compiled(
    r"(\d{1,6})[:|]?\s+(?:(?:export|default|public|private|static|async|pub|abstract) ){0,3}"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait) "
)
_CONSTANTS: Final = frozenset({"True", "False", "None", "Null"})
_FIELDS: Final = compiled(r"[\[\](){}|\t,;]|:\s|\s[-–—]\s")
_NAME: Final = compiled(r"[^\W\d][^\W_]*+_\w++|(?=\w++\Z)[^\W\d]+[a-z][A-Z]\w*+")


def is_log(text: str) -> bool:
    """Whether a text is not prose: it has several lines, most of which are not sentences."""
    lines = [line for line in text.splitlines()[:_MAX_LINES] if line.strip()]
    return len(lines) >= _MIN_LINES and sum(is_prose(line) for line in lines) * 2 <= len(lines)


def log_lines(text: str) -> Iterator[str | DataLine]:
    """A log's prose, line by line, with the exact values of all other lines in between, each once."""
    pending_values: list[str] = []
    seen_values: set[str] = set()
    for raw in text.splitlines()[:_MAX_LINES]:
        line = raw.strip()[:_MAX_LINE_LENGTH]
        if is_prose(line):
            yield from _flushed_line(pending_values)
            yield line
            continue
        if record := _record(line):
            yield from _flushed_line(pending_values)
            yield record
            continue
        new = [
            value
            for value in [*_values_with_line_number(line), *_names_in(line)]
            if value.casefold() not in seen_values
        ]
        seen_values.update(value.casefold() for value in new)
        for value in new:
            if pending_values and len(", ".join([*pending_values, value])) > MAX_LINE_LENGTH:
                yield from _flushed_line(pending_values)
            pending_values.append(value)
    yield from _flushed_line(pending_values)


def _record(line: str) -> DataLine | None:
    """An item of a list with an id, as its values and a few words; ``None`` for any other line."""
    item = _ITEM.match(line)
    if not item or not any(is_code_like(token) for token in _TOKEN.findall(line)):
        return None
    fields: list[str] = []
    for field in _FIELDS.split(line[item.end() :]):
        words: list[str] = []
        for word in field.split():
            if is_code_like(word.strip(_EDGES)):
                fields += [" ".join(words), word.strip(_EDGES)]
                words = []
            else:
                words.append(word)
        fields.append(" ".join(words))
    return line_from_fields(
        field for field in fields if field and (any(map(str.isdigit, field)) or _has_content(field))
    )


def _has_content(field: str) -> bool:
    return is_code_like(field) or bool(words_of(field))


def _names_in(line: str) -> Iterator[str]:
    for found in find_identifiers(line):
        # A capital at the beginning of a line does not make a name.
        is_opening = " " not in found.text and not words_of(_without_values(line[: found.start]))
        if found.kind == "name" and not is_opening and found.text not in _CONSTANTS:
            yield found.text


def _without_values(text: str) -> str:
    return " ".join(word for word in text.split() if not any(map(str.isdigit, word)))


def _values_with_line_number(line: str) -> Iterator[str]:
    defined = _DEFINED.match(line)
    values = list(values_in(line[defined.end() :] if defined else line))
    if defined and values:
        values[0] = f"{values[0]}:{defined[1]}"
    yield from values


def values_in(text: str) -> Iterator[str]:
    """The paths, ids, names in code and dates of a text; ``file:12`` gives its file and its line."""
    for match in _TOKEN.finditer(text):
        token = match.group().strip(_EDGES) if "://" not in match.group() else match.group()
        place = _PLACE.search(token)
        if place and "://" not in token:
            head = token[: place.start()]
            if is_code_like(head) and _FILE.search(head):
                yield f"{head}:{place.group()[1:].split(':')[0]}"
                token = token[place.end() :].strip(":")
        for part in token.split("::") if "://" not in token else [token]:
            if part and (is_code_like(part) or _NAME.fullmatch(part)):
                yield part


def is_prose(line: str) -> bool:
    """Whether a line has plain words in a row, like a sentence."""
    return _SENTENCE.search(line) is not None


def _flushed_line(pending_values: list[str]) -> Iterator[DataLine]:
    if pending_values:
        yield parse_line(", ".join(pending_values))
        pending_values.clear()
