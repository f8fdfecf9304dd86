"""Escapes messages for a context, so that nothing in them reads like an element or marker of the service.

This is the only place where messages become part of a context. Results of the service's own tools have elements that
the service wrote, with everything inside escaped when they were stored: these elements are kept. A call of
``expand_context`` names a marker, which is kept as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from app.core.context.tools import EXPAND, OWN
from app.core.model.model_io import ContextMessage
from app.core.retrieval.serving import RECALLED_TAG
from app.core.segments.markers import find, render
from app.core.text.escaping import escape_block
from app.core.text.parts import Part
from app.core.text.patterns import compiled
from app.core.text.served_text import as_data, value_as_data

_AHEAD: Final = 200  # characters after a text that are looked at, since a name may begin at its end and continue there
_Ahead = tuple[str, str]
"""The beginning of what follows a text: for providers that are sent system messages in their place, and for those that
are sent them separately."""
_OPENING: Final = compiled(rf'<{RECALLED_TAG} of="[^"<>\n]{{0,400}}">')
_CLOSING: Final = f"</{RECALLED_TAG}>"
_LONG: Final = compiled(r'<message of="[^"<>\n]{1,200}">')
_LONG_END: Final = "</message>"


def served_messages(messages: Sequence[ContextMessage]) -> list[ContextMessage]:
    """The messages without anything that reads like our elements; unchanged messages are the same objects.

    A name may be spread over neighbours of one side, which a provider is sent as one text. So each text is checked
    together with the beginning of the next text, both in the order with system messages and in the order without them.
    """
    served: list[ContextMessage] = []
    together, apart = _Side(), {True: _Side(), False: _Side()}
    for message in reversed(messages):
        is_models, alike = message.role == "assistant", apart[message.role == "system"]
        ahead = (together.before(is_models=is_models), alike.before(is_models=is_models))
        shown, (together.following, alike.following) = _served_message(message, ahead)
        served.append(shown)
    return served[::-1]


class _Side:
    """The beginning of the next messages of one side; it ends at a message of the other side."""

    def __init__(self) -> None:
        self.following = ""
        self._is_models = False

    def before(self, *, is_models: bool) -> str:
        """The beginning of what follows a message of this side."""
        if is_models != self._is_models:
            self._is_models, self.following = is_models, ""
        return self.following


def _served_message(message: ContextMessage, ahead: _Ahead) -> tuple[ContextMessage, _Ahead]:
    """The served message, and the beginning of its text."""
    parts: list[Part] = []
    for part in reversed(message.parts):
        parts.append(_served_part(part, ahead))
        words = _own_words(part)
        if words not in message.content:  # words that the content has too are only sent once
            ahead = _ahead_of_text(words, ahead)
    content = _as_data_before_both(message.content, ahead)
    ahead = _ahead_of_text(message.content, ahead)
    name = _as_data_before_both(message.name, (f":{ahead[0]}", f":{ahead[1]}"))
    if name:
        ahead = _ahead_of_text(f"{message.name}:", ahead)
    if (name, content) == (message.name, message.content) and all(
        new is old for new, old in zip(parts[::-1], message.parts, strict=True)
    ):
        return message, ahead
    return replace(message, name=name, content=content, parts=tuple(parts[::-1])), ahead


def _as_data_before_both(text: str, ahead: _Ahead) -> str:
    shown = as_data(text, ahead[0])
    return shown if ahead[0] == ahead[1] else as_data(shown, ahead[1])


def _ahead_of_text(text: str, ahead: _Ahead) -> _Ahead:
    return _beginning_with(text, ahead[0]), _beginning_with(text, ahead[1])


def _beginning_with(text: str, following: str) -> str:
    # A name may continue after a line break, or end at one.
    return f"\n{text[:_AHEAD]}{following}"[:_AHEAD] if text else following


def _served_part(part: Part, ahead: _Ahead) -> Part:
    if _is_own_result(part):
        return part
    served: Part = value_as_data(part)
    key = _KEYS.get(str(part.get("type")))
    if key and (words := _own_words(part)) and (shown := _as_data_before_both(words, ahead)) != served[key]:
        served = {**served, key: shown}
    return _with_marker(served, part) if _calls_for_marker(part) else served


_KEYS: Final = {"text": "text", "tool_result": "content"}
"""The key of a part that holds its text, by the part's type."""


def _own_words(part: Part) -> str:
    words = part.get(_KEYS.get(str(part.get("type")), ""))
    return words if isinstance(words, str) else ""


def _is_own_result(part: Part) -> bool:
    content = part.get("content")
    is_ours = part.get("type") == "tool_result" and part.get("name") in OWN and bool(part.get("quotes"))
    return is_ours and isinstance(content, str) and _is_element(content)


def _is_element(text: str) -> bool:
    """Whether a text is one element of recalled messages, made of lines and message elements, with a note after it."""
    first, *lines = text.split("\n")
    if not _OPENING.fullmatch(first) or lines.count(_CLOSING) != 1:
        return False
    end = lines.index(_CLOSING)
    plain, is_open = [], False
    for line in lines[:end]:
        if not is_open and _LONG.fullmatch(line):
            is_open = True
        elif is_open and line == _LONG_END:
            is_open = False
        else:
            plain.append(line)
    inside, note = "\n".join(plain), "\n".join(lines[end + 1 :])
    return not is_open and escape_block(inside) == inside and as_data(note) == note


def _calls_for_marker(part: Part) -> bool:
    arguments = part.get("arguments")
    if part.get("type") != "tool_call" or part.get("name") != EXPAND.name or not isinstance(arguments, Mapping):
        return False
    marker = arguments.get("marker")
    return isinstance(marker, str) and [render(one) for one in find(marker)] == [marker]


def _with_marker(served: Part, part: Part) -> Part:
    arguments = {**served["arguments"], "marker": part["arguments"]["marker"]}
    return part if {**served, "arguments": arguments} == part else {**served, "arguments": arguments}
