"""Reads JSON in texts from outside: answers of models, dumps, arguments of calls."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from app.core.text.patterns import compiled

_READER: Final = json.JSONDecoder(strict=False)
_DEEPEST: Final = 64  # the most levels, as in requests
_SURROGATE: Final = compiled("[\ud800-\udfff]")
_STRUCTURE: Final = compiled(r'\\.|["\[\]{}]', re.DOTALL)


def data_in(text: str, *, deepest: int = _DEEPEST, strict: bool = True) -> Any:
    """The value of a JSON text from outside.

    Args:
        text: A text of any length.
        deepest: The most levels that it may have: recursive readers would fail at more.
        strict: Whether strings may hold no control characters.

    Raises:
        ValueError: The text is not JSON, or is nested more deeply.
    """
    if text.count("[") + text.count("{") > deepest and _depth(text) > deepest:
        raise ValueError("nested too deep")
    return json.loads(text, strict=strict)


def data_at(text: str, start: int, *, deepest: int = _DEEPEST) -> Any:
    """The value of the JSON that begins at a place in a text, whatever follows it; strings may hold control characters.

    Raises:
        ValueError: There is none, it is not whole, or it is nested more deeply.
    """
    try:
        _, end = _READER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return data_in(text[start:end], deepest=deepest, strict=False)


def arguments_in(arguments: Any) -> Any:
    """The arguments of a call as data. Clients may store them as JSON text; a text that is not JSON stays as it is.

    So does a text with values that cannot be stored or written as JSON: NUL, half of a surrogate pair, infinity.
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        found = data_in(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments
    return found if _can_be_written(found) else arguments


def _can_be_written(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and (value.isascii() or not _SURROGATE.search(value))
    if isinstance(value, dict):
        return all(_can_be_written(key) and _can_be_written(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_can_be_written, value))
    return not isinstance(value, float) or math.isfinite(value)


def _depth(text: str) -> int:
    """How deeply brackets nest, outside of strings. It takes linear time, before a recursive reader sees the text."""
    depth = deepest = 0
    quoted = False
    for found in _STRUCTURE.finditer(text):
        mark = found.group()
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not quoted and mark in "]}":
            depth -= 1
    return deepest
