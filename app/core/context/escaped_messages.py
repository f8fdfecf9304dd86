"""Escapes messages for a context, so that nothing in them reads like an element or marker of the service.

Every message of a context passes through here (called by ``recalled_messages``). Results of the service's own tools
have elements that the service wrote, with everything inside escaped when they were stored: these elements are kept. A
call of ``expand_context`` names a marker, which is kept as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from app.core.context.tools import EXPAND_TOOL, OWN_TOOL_NAMES
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import RECALLED_TAG
from app.core.segments.markers import find_markers, render_marker
from app.core.text.escaping import escape_block, without_unseen
from app.core.text.message_escaping import LOOK_AHEAD, as_data, value_as_data
from app.core.text.parts import Part
from app.core.text.patterns import compiled

_Following = tuple[str, str]
"""The beginning of what follows a text: for providers that are sent system messages in their place, and for those that
are sent them separately."""
_OPENING: Final = compiled(rf'<{RECALLED_TAG} of="[^"<>\n]{{0,400}}">')
_CLOSING: Final = f"</{RECALLED_TAG}>"
_LONG_OPENING: Final = compiled(r'<message of="[^"<>\n]{1,200}">')
_LONG_END: Final = "</message>"


def escaped_messages(messages: Sequence[ContextMessage]) -> list[ContextMessage]:
    """The messages without anything that reads like our elements; unchanged messages are the same objects.

    A name may be spread over neighbours of one side, which a provider is sent as one text. So each text is checked
    together with the beginning of the next text, both in the order with system messages and in the order without them.
    """
    escaped: list[ContextMessage] = []
    in_place, separate = _Side(), {True: _Side(), False: _Side()}
    for message in reversed(messages):
        is_from_model, same_kind = message.role == "assistant", separate[message.role == "system"]
        following = (in_place.before(is_from_model=is_from_model), same_kind.before(is_from_model=is_from_model))
        shown_message, (in_place.following, same_kind.following) = _escaped_message(message, following)
        escaped.append(shown_message)
    return escaped[::-1]


class _Side:
    """The beginning of the next messages of one side; it ends at a message of the other side."""

    def __init__(self) -> None:
        self.following = ""
        self._is_from_model = False

    def before(self, *, is_from_model: bool) -> str:
        """The beginning of what follows a message of this side."""
        if is_from_model != self._is_from_model:
            self._is_from_model, self.following = is_from_model, ""
        return self.following


def _escaped_message(message: ContextMessage, following: _Following) -> tuple[ContextMessage, _Following]:
    """The served message, and the beginning of its text."""
    parts: list[Part] = []
    for part in reversed(message.parts):
        parts.append(_escaped_part(part, following))
        words = _own_words(part)
        if words not in message.content:  # words that the content has too are only sent once
            following = _following_from(words, following)
    content = _as_data_before_both(message.content, following)
    following = _following_from(message.content, following)
    name = _as_data_before_both(message.name, (f":{following[0]}", f":{following[1]}"))
    if name:
        following = _following_from(f"{message.name}:", following)
    if (name, content) == (message.name, message.content) and all(
        new is old for new, old in zip(parts[::-1], message.parts, strict=True)
    ):
        return message, following
    return replace(message, name=name, content=content, parts=tuple(parts[::-1])), following


def _as_data_before_both(text: str, following: _Following) -> str:
    escaped = as_data(text, following[0])
    return escaped if following[0] == following[1] else as_data(escaped, following[1])


def _following_from(text: str, following: _Following) -> _Following:
    return _beginning_with(text, following[0]), _beginning_with(text, following[1])


def _beginning_with(text: str, following: str) -> str:
    # A name may continue after a line break, or end at one.
    return f"\n{without_unseen(text)[:LOOK_AHEAD]}{following}"[:LOOK_AHEAD] if text else following


def _escaped_part(part: Part, following: _Following) -> Part:
    if _is_own_result(part):
        return part
    escaped: Part = value_as_data(part)
    key = _KEYS.get(str(part.get("type")))
    if (
        key
        and (words := _own_words(part))
        and (escaped_words := _as_data_before_both(words, following)) != escaped[key]
    ):
        escaped = {**escaped, key: escaped_words}
    return _with_marker(escaped, part) if _is_marker_call(part) else escaped


_KEYS: Final = {"text": "text", "tool_result": "content"}
"""The key of a part that holds its text, by the part's type."""


def _own_words(part: Part) -> str:
    words = part.get(_KEYS.get(str(part.get("type")), ""))
    return words if isinstance(words, str) else ""


def _is_own_result(part: Part) -> bool:
    content = part.get("content")
    is_ours = part.get("type") == "tool_result" and part.get("name") in OWN_TOOL_NAMES and bool(part.get("quotes"))
    return is_ours and isinstance(content, str) and _is_element(content)


def _is_element(text: str) -> bool:
    """Whether a text is one element of recalled messages, made of lines and message elements, with a note after it."""
    first, *lines = text.split("\n")
    if not _OPENING.fullmatch(first) or lines.count(_CLOSING) != 1:
        return False
    end = lines.index(_CLOSING)
    plain, is_open = [], False
    for line in lines[:end]:
        if not is_open and _LONG_OPENING.fullmatch(line):
            is_open = True
        elif is_open and line == _LONG_END:
            is_open = False
        else:
            plain.append(line)
    inside, note = "\n".join(plain), "\n".join(lines[end + 1 :])
    return not is_open and escape_block(inside) == inside and as_data(note) == note


def _is_marker_call(part: Part) -> bool:
    arguments = part.get("arguments")
    if part.get("type") != "tool_call" or part.get("name") != EXPAND_TOOL.name or not isinstance(arguments, Mapping):
        return False
    marker = arguments.get("marker")
    return isinstance(marker, str) and [render_marker(one) for one in find_markers(marker)] == [marker]


def _with_marker(escaped: Part, part: Part) -> Part:
    arguments = {**escaped["arguments"], "marker": part["arguments"]["marker"]}
    return part if {**escaped, "arguments": arguments} == part else {**escaped, "arguments": arguments}
