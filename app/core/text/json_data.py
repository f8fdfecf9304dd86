"""Data that texts from outside spell in JSON: answers of models, dumps, arguments of calls."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from app.core.text.patterns import compiled

_DEEPEST: Final = 64  # levels, as many as a request may have
_SURROGATE: Final = compiled("[\ud800-\udfff]")
_STRUCTURE: Final = compiled(r'\\.|["\[\]{}]', re.DOTALL)


def data_in(text: str, *, deepest: int = _DEEPEST, strict: bool = True) -> Any:
    """What a text from outside says in JSON.

    Args:
        text: Of any length.
        deepest: Levels that it may have: readers that call themselves would fail at more.
        strict: Whether strings may hold no control characters.

    Raises:
        ValueError: It is no JSON, or nested deeper.
    """
    if text.count("[") + text.count("{") > deepest and _depth(text) > deepest:
        raise ValueError("nested too deep")
    return json.loads(text, strict=strict)


def arguments_in(arguments: Any) -> Any:
    """The arguments of a call as data. Clients may store them as JSON text; text that is no JSON stays as it is.

    So is text whose escapes spell what nobody can store or write as JSON: NUL, half of a surrogate pair, infinity.
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
    """How deep brackets nest, strings left out; linear, before any recursive reader sees the text."""
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
