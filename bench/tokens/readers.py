"""Reads running text from the files of packages: each reader yields the passages of one file."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Reader = Callable[[str], Iterator[str]]

_WIDE: Final = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_STRING: Final = re.compile(r'^(?:msgstr(?:\[\d\])? )?("(?:[^"\\]|\\.)*")\s*$', re.MULTILINE)
_ENTRY: Final = re.compile(r'^msgstr(?:\[\d\])? "(?:[^"\\]|\\.)*"\n(?:"(?:[^"\\]|\\.)*"\n?)*', re.MULTILINE)
_UTTERANCE: Final = re.compile(r"^\s*-\s+(?:-\s+)?(?=\S)(.*)$", re.MULTILINE)
_STYLES: Final[tuple[dict[str, Any], ...]] = ({"separators": (",", ":")}, {}, {"indent": 2})
_MAX_ROWS: Final = 2_000
_MAX_ROW_LENGTH: Final = 1_600
_MIN_TEXT_LENGTH: Final = 40
_MIN_WIDE_LENGTH: Final = 14


def whole(text: str) -> Iterator[str]:
    """The file as it is."""
    yield text


def catalogue(text: str) -> Iterator[str]:
    """The longer translations of a gettext catalogue; labels of one or two words are left out."""
    for entry in _ENTRY.findall(text.partition("\n\n")[2]):
        translated = "".join(_unquoted(quoted) for quoted in _STRING.findall(entry)).strip()
        if len(translated) >= (_MIN_WIDE_LENGTH if _WIDE.search(translated) else _MIN_TEXT_LENGTH):
            yield translated


def _unquoted(quoted: str) -> str:
    try:
        return str(ast.literal_eval(quoted))
    except (SyntaxError, ValueError):
        return ""


def dialogue(text: str) -> Iterator[str]:
    """The utterances of a YAML list of conversations."""
    for utterance in _UTTERANCE.findall(text.partition("conversations:")[2]):
        yield utterance.strip().strip("'\"")


def markup(text: str) -> Iterator[str]:
    """The text of an HTML page without its tags."""
    body = text.partition("<body>")[2] or text
    bare = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", body)
    yield re.sub(r"[ \t]*\n\s*", "\n", re.sub(r"[ \t]+", " ", html.unescape(bare))).strip()


def sentences(text: str) -> Iterator[str]:
    """The strings of the list that a Python module assigns."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.List):
            for part in node.elts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.strip():
                    yield part.value


def answers(text: str) -> Iterator[str]:
    """Every longer string literal of a Python module that has words and is not a pattern."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            line = re.sub(r"%\d", "it", node.value).strip()
            if line.count(" ") >= 3 and not re.search(r"[\\(*\n]", line):
                yield line


def strings(*keys: str) -> Reader:
    """A reader of JSON that yields the strings under these keys, or every string if none is given."""

    def read(text: str) -> Iterator[str]:
        yield from _strings(json.loads(text), keys)

    return read


def _strings(value: Any, keys: tuple[str, ...], *, inside: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        if (inside or not keys) and value.strip():
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, keys, inside=inside)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, keys, inside=key in keys)


def paragraphs(text: str) -> Iterator[str]:
    """Prose paragraphs of plain or reStructured text, without code, lists and headings."""
    for block in re.split(r"\n\s*\n", text):
        line = " ".join(block.split())
        if not block.startswith((" ", "*", "-", ".", "=")) and len(line) > 160 and line.endswith("."):
            yield re.sub(r":\w+:`~?([^`<]*?)(?: <[^`]*>)?`", r"\1", line).replace("``", "")


def data(text: str) -> Iterator[str]:
    """JSON as it is sent: rows of the file's value, in turn compact, with blanks, and indented."""
    value = json.loads(text)
    rows = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    for number, row in enumerate(rows[:_MAX_ROWS]):
        style: dict[str, Any] = _STYLES[number % len(_STYLES)]
        yield json.dumps(row, ensure_ascii=False, **style)[:_MAX_ROW_LENGTH]
