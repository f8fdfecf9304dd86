"""Finds text that is both in a message's content and in its parts, so that it is counted and shown only once.

Clients often give the result of a tool, or a text, both as the content of its message and as a part. The stored
original keeps both, and shows both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

Part = Mapping[str, Any]
"""A part of a message: a text, a call of a tool, its result, media."""
TOOL_PART_TYPES: Final = frozenset({"tool_call", "tool_result"})
BETWEEN_TEXTS: Final = "\n\n"
"""What stands between the texts of a message that are joined as its content."""
_MAX_PLACES: Final = 100
"""At how many places of a content a text is looked for: a content has room for many thousand, a message for hundreds of
texts. If it is a part of a word at all of them, it counts as repeated only if it is one of the texts that were joined.
"""


def has_tool_parts(role: str, parts: Sequence[Part]) -> bool:
    """Whether a message holds calls of tools or their results."""
    return role == "tool" or any(part.get("type") in TOOL_PART_TYPES for part in parts)


def as_text(value: Any) -> str:
    """A value as text: itself, or its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def as_short_text(value: Any) -> str:
    """A value as text: itself, or its JSON without spaces."""
    return value if isinstance(value, str) else compact_json(value)


def compact_json(value: Any) -> str:
    """A value's JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_as_json_value)


def own_content(role: str, content: str, parts: Sequence[Part]) -> str:
    """The content of a message as it is shown with its parts; empty if it only repeats the result of a tool.

    It is empty only for messages of role ``tool``: what anybody else says is shown, even if a result says the same.
    """
    if role != "tool":
        return content
    whole = _Content(content)
    return "" if any(part.get("type") == "tool_result" and whole.holds(part) for part in parts) else content


def own_parts(content: str, parts: Sequence[Part]) -> list[Part]:
    """The parts that the content does not repeat."""
    whole = _Content(content)
    return [part for part in parts if not whole.holds(part)]


def in_order(content: str, own_text: str, parts: Sequence[Part]) -> list[Part]:
    """A user's content and parts, all as parts in the order in which they were given.

    The content comes first, unless its texts stand among the parts: labels stay with their pictures. Texts without
    words are left out, since some providers refuse them.

    Args:
        content: The content, perhaps with words before it that the speaker did not say.
        own_text: The speaker's own text in the content.
        parts: The parts.
    """
    return [part for part in _all_in_order(content, own_text, parts) if not is_blank(part)]


def _all_in_order(content: str, own_text: str, parts: Sequence[Part]) -> list[Part]:
    joined = joined_from(own_text, parts)
    if not joined:
        return [_text_part(content), *own_parts(own_text, parts)]
    before = content[: len(content) - len(joined)]
    first, *others = parts
    if first.get("type") != "text":
        return [_text_part(before.rstrip()), *parts]
    return [{**first, "text": f"{before}{first['text']}"}, *others]


def joined_from(content: str, parts: Sequence[Part]) -> str:
    """The joined texts of the parts if the content ends with them and one stands behind media; else nothing."""
    texts = [number for number, part in enumerate(parts) if part.get("type") == "text"]
    if not texts or texts[-1] < len(texts):
        return ""
    joined = BETWEEN_TEXTS.join(str(parts[number].get("text", "")) for number in texts)
    return joined if content.endswith(joined) else ""


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def is_blank(part: Part) -> bool:
    """Whether a part is a text without words."""
    return part.get("type") == "text" and not str(part.get("text", "")).strip()


def without_repeats(content: str, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts without those that are only a text that is in the content."""
    return tuple(part for part in parts if len(part) > len(("type", "text")) or not is_repeated_text(content, part))


def is_repeated_text(content: str, part: Part) -> bool:
    """Whether a part is a text that the content holds already, so that it is not sent twice."""
    return part.get("type") == "text" and _Content(content).holds(part)


class _Content:
    """The content of a message, in which its parts are looked for. Its JSON is read once for all of them."""

    def __init__(self, content: str) -> None:
        self._content = content

    def holds(self, part: Part) -> bool:
        """Whether the content holds a text, or is a tool's result."""
        match part.get("type"):
            case "text":
                text = part.get("text")
                return isinstance(text, str) and (_has_whole_words(text, self._content) or self._joins(text))
            case "tool_result":
                return self._is(part.get("content"))
            case _:
                return False

    def _is(self, value: Any) -> bool:
        """Whether the content is the value or its JSON, with any spaces and any order of keys."""
        text = self._text
        if not text:
            return False
        written = value.strip() if isinstance(value, str) else ""
        if text == written:
            return True
        if (isinstance(value, Mapping | Sequence) and text[0] not in "{[") or (written and written[0] not in "{["):
            return False
        if self._json is None:
            return False
        try:
            return self._json == _ordered_json(json.loads(written) if written else value)
        except (ValueError, RecursionError):
            return False

    def _joins(self, text: str) -> bool:
        return f"{BETWEEN_TEXTS}{text}{BETWEEN_TEXTS}" in self._enclosed

    @cached_property
    def _enclosed(self) -> str:
        return f"{BETWEEN_TEXTS}{self._content}{BETWEEN_TEXTS}"

    @cached_property
    def _text(self) -> str:
        return self._content.strip()

    @cached_property
    def _json(self) -> str | None:
        try:
            return _ordered_json(json.loads(self._text))
        except (ValueError, RecursionError):
            return None


def _has_whole_words(text: str, content: str) -> bool:
    # "blue" is not a whole word in "blueberries".
    start = content.find(text)
    for _ in range(_MAX_PLACES):
        if start < 0 or not text:
            break
        end = start + len(text)
        before, after = content[start - 1 : start] + text[0], text[-1] + content[end : end + 1]
        if not (len(before) > 1 and before.isalnum()) and not (len(after) > 1 and after.isalnum()):
            return True
        start = content.find(text, end)
    return not text


def _ordered_json(value: Any) -> str:
    # The values are compared as JSON, because Python itself takes True for 1.
    return json.dumps(value, sort_keys=True, default=_as_json_value)


def _as_json_value(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
