"""Turns the exports of ChatGPT and of Claude into conversations that the service can import, with their times.

ChatGPT stores a tree of messages: only the branch that it shows is read. What neither program shows (reasoning, hidden
messages) is counted and left out. Tool calls and their results become parts; files are named in the text, since
exports do not contain them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from app.cli.complaints import ComplaintError
from app.cli.import_formats import Imported, checked_message
from app.cli.terminal_language import text_of
from app.http.fields import is_within_reach

Kind = Literal["chatgpt", "claude"]

_MAX_TITLE_LENGTH: Final = 500  # characters
_MAX_NAME_LENGTH: Final = 200
_KNOWN_ROLES: Final = frozenset({"user", "assistant", "system"})
_HIDDEN_TYPES: Final = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "app_pairing_content"}
)
_KNOWN_KEYS: Final = frozenset({"content_type", "language", "response_format_name", "parts", "text", "result"})
"""Keys of a message's content that are read here, or that hold no text of the conversation."""
_SURROGATE_CODES: Final = range(0xD800, 0xE000)


def export_kind(value: Any) -> Kind | None:
    """Which program exported a conversation; ``None`` if it was neither."""
    if isinstance(value, Mapping):
        if "mapping" in value:
            return "chatgpt"
        if "chat_messages" in value:
            return "claude"
    return None


def read_exported(value: Any, kind: Kind, name: str, place: str) -> Imported:
    """One conversation of an export; ``name`` is the file's name, ``place`` the position of the conversation in it.

    Raises:
        ComplaintError: The conversation has another form, or a message that the service would refuse; the error names
            file and place.
    """
    where = f"{name}: {place}"
    if export_kind(value) != kind:
        raise ComplaintError(text_of("import.no_exported", where=where))
    transcript = _Transcript()
    try:
        _READERS[kind](value, transcript, where)
    except RecursionError:
        raise ComplaintError(text_of("import.no_json", where=where, why="nested too deeply")) from None
    messages = tuple(
        checked_message(one, f"{where}, {text_of('import.message', number=str(number))}")
        for number, one in enumerate(transcript.messages, start=1)
    )
    id_ = _storable_text(value.get("uuid") or value.get("conversation_id") or value.get("id"))[:_MAX_NAME_LENGTH]
    digest = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:32]
    title = _storable_text(value.get("name") if kind == "claude" else value.get("title")).strip()[:_MAX_TITLE_LENGTH]
    origin = {"imported_from": kind, "imported_id": id_, "imported_digest": digest, "imported_messages": len(messages)}
    about: dict[str, Any] = {"metadata": origin}
    return Imported(
        place=place,
        about=about | ({"title": title} if title else {}),
        messages=messages,
        identity=f"{kind}:{id_}:{digest}",
        hidden=transcript.hidden,
        other_branches=transcript.other_branches,
    )


@dataclass(slots=True)
class _Transcript:
    """The messages of one conversation in the form of the API, added one after the other."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    hidden: int = 0
    """How many messages or blocks the program does not show."""
    other_branches: int = 0
    """How many messages are not on the branch that the program shows."""
    last_time: str | None = None
    """The time of the last message that has one; at first that of the conversation."""
    _open_call: tuple[str, str] | None = None
    """Id and name of a call that has no result yet."""

    def add_text(self, role: str, text: str, at: str | None, model: str = "") -> None:
        """Add a message of text."""
        self._add_message({"role": role, "content": text, **({"model": model[:_MAX_NAME_LENGTH]} if model else {})}, at)
        self._open_call = None

    def add_call(self, id_: str, name: str, arguments: Any, at: str | None) -> None:
        """Add a tool call: to the last message, if it is the assistant's and has no call yet."""
        id_, name = id_[:_MAX_NAME_LENGTH] or f"call-{len(self.messages)}", name[:_MAX_NAME_LENGTH] or "tool"
        part = {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == "assistant" and "parts" not in last:
            last["parts"] = [part]
        else:
            self._add_message({"role": "assistant", "content": "", "parts": [part]}, at)
        self._open_call = (id_, name)

    def add_result(self, name: str, text: str, at: str | None) -> None:
        """Add a tool's result. A further result of the same call is appended to the first."""
        last = self.messages[-1] if self.messages else {}
        if self._open_call is None and last.get("role") == "tool":
            last["parts"][0]["content"] += f"\n{text}"
            return
        if self._open_call is None:
            self.add_call("", name, {}, at)
        id_, called = self._open_call or ("", name)
        part = {"type": "tool_result", "tool_call_id": id_, "name": called, "content": text}
        self._add_message({"role": "tool", "content": "", "parts": [part]}, at)
        self._open_call = None

    def _add_message(self, message: dict[str, Any], at: str | None) -> None:
        # A message without a time gets the time of the message before it.
        self.last_time = at or self.last_time
        self.messages.append(message | ({"created_at": self.last_time} if self.last_time else {}))


def _read_chatgpt(value: Mapping[str, Any], transcript: _Transcript, where: str) -> None:
    nodes = value.get("mapping")
    if not isinstance(nodes, dict):
        raise ComplaintError(text_of("import.no_tree", where=where))
    transcript.last_time = _iso_time(value.get("create_time"))
    branch = _ids_of_shown_branch(nodes, value.get("current_node"), where)
    for id_ in branch:
        message = _message_with_text(nodes[id_])
        if message is not None:
            _add_chatgpt_message(message, id_, transcript)
        elif _has_unknown_content(nodes[id_]):
            transcript.hidden += 1
    shown = set(branch)
    others = (_message_with_text(node) for id_, node in nodes.items() if id_ not in shown)
    transcript.other_branches = sum(message is not None and not _is_hidden(message) for message in others)


def _ids_of_shown_branch(nodes: dict[str, Any], last: Any, where: str) -> list[str]:
    """Ids from the root of the tree to its shown end: the node ``last``, or if that is missing, the last with text."""
    node = last if isinstance(last, str) else None
    if node not in nodes:
        node = next((id_ for id_ in reversed(nodes) if _message_with_text(nodes[id_])), None)
    found: dict[str, None] = {}
    while isinstance(node, str) and node in nodes:
        if node in found:
            raise ComplaintError(text_of("import.no_tree", where=where))
        found[node] = None
        node = nodes[node].get("parent") if isinstance(nodes[node], Mapping) else None
    return list(reversed(found))


def _message_with_text(node: Any) -> Mapping[str, Any] | None:
    message = node.get("message") if isinstance(node, Mapping) else None
    return message if isinstance(message, Mapping) and _chatgpt_text(message) else None


def _has_unknown_content(node: Any) -> bool:
    message = node.get("message") if isinstance(node, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    return isinstance(content, Mapping) and any(value for key, value in content.items() if key not in _KNOWN_KEYS)


def _add_chatgpt_message(message: Mapping[str, Any], id_: str, transcript: _Transcript) -> None:
    role, at, text = _author_field(message, "role"), _iso_time(message.get("create_time")), _chatgpt_text(message)
    if _is_hidden(message) or (role != "tool" and role not in _KNOWN_ROLES):
        transcript.hidden += 1
    elif role == "tool":
        transcript.add_result(_author_field(message, "name"), text, at)
    elif role == "assistant" and message.get("recipient") not in (None, "all"):
        transcript.add_call(
            _storable_text(message.get("id")) or id_, _storable_text(message["recipient"]), {"input": text}, at
        )
    else:
        metadata = message.get("metadata")
        model = metadata.get("model_slug") if isinstance(metadata, Mapping) and role == "assistant" else None
        transcript.add_text(role, text, at, _storable_text(model))


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata, content = message.get("metadata"), message.get("content")
    hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation") is True
    kind = content.get("content_type") if isinstance(content, Mapping) else None
    return hidden or message.get("weight") == 0 or kind in _HIDDEN_TYPES


def _chatgpt_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if not isinstance(content, Mapping):
        return ""
    parts = content.get("parts")
    pieces = [_text_of_part(part) for part in parts] if isinstance(parts, list) else []
    pieces += [_storable_text(content.get(name)) for name in ("text", "result")]
    return "\n".join(piece for piece in pieces if piece.strip())


def _text_of_part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return _storable_text(part)
    kind = _storable_text(part.get("content_type"))
    return _storable_text(part.get("text")) or (f"[{kind.removesuffix('_asset_pointer') or 'file'}]" if kind else "")


def _author_field(message: Mapping[str, Any], name: str) -> str:
    author = message.get("author")
    return _storable_text(author.get(name)) if isinstance(author, Mapping) else ""


def _read_claude(value: Mapping[str, Any], transcript: _Transcript, where: str) -> None:
    messages = value.get("chat_messages")
    if not isinstance(messages, list):
        raise ComplaintError(text_of("import.no_list", where=where))
    transcript.last_time = _iso_time(value.get("created_at"))
    for message in messages:
        if isinstance(message, Mapping):
            _add_claude_message(message, transcript)


def _add_claude_message(message: Mapping[str, Any], transcript: _Transcript) -> None:
    role = "user" if message.get("sender") == "human" else "assistant"
    at = _iso_time(message.get("created_at"))
    blocks = [block for block in _list_or_empty(message.get("content")) if isinstance(block, Mapping)]
    if not any(_storable_text(block.get("text")).strip() or block.get("type") != "text" for block in blocks):
        text = message.get("text")
        blocks = [{"type": "text", "text": text}]
        transcript.hidden += not isinstance(text, str | None)
    texts: list[str] = []

    def end_text() -> None:
        if texts:
            transcript.add_text(role, "\n".join(texts), at)
            texts.clear()

    for number, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "text" and _storable_text(block.get("text")).strip():
            texts.append(_storable_text(block["text"]))
        elif kind == "tool_use":
            end_text()
            id_ = _storable_text(block.get("id")) or f"{_storable_text(message.get('uuid'))}-{number}"
            transcript.add_call(id_, _storable_text(block.get("name")), _storable_value(block.get("input") or {}), at)
        elif kind == "tool_result":
            end_text()
            transcript.add_result(_storable_text(block.get("name")), _result_text(block.get("content")), at)
        elif kind != "text":
            transcript.hidden += 1
    texts += _attached_texts(message)
    end_text()


def _attached_texts(message: Mapping[str, Any]) -> Iterator[str]:
    for one in (*_list_or_empty(message.get("attachments")), *_list_or_empty(message.get("files"))):
        if isinstance(one, Mapping):
            text = _storable_text(one.get("extracted_content"))
            yield f"[{_storable_text(one.get('file_name')) or 'file'}]" + (f"\n{text}" if text else "")


def _result_text(content: Any) -> str:
    if isinstance(content, list):
        texts = [
            _storable_text(one.get("text")) for one in content if isinstance(one, Mapping) and one.get("type") == "text"
        ]
        content = "\n".join(texts) if texts else content
    return (
        _storable_text(content)
        if isinstance(content, str)
        else json.dumps(_storable_value(content), ensure_ascii=False)
    )


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _storable_value(value: Any) -> Any:
    if isinstance(value, str):
        return _storable_text(value)
    if isinstance(value, list):
        return [_storable_value(one) for one in value]
    if isinstance(value, Mapping):
        return {_storable_text(key): _storable_value(one) for key, one in value.items()}
    return value


def _storable_text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    if value.isascii() and "\0" not in value:
        return value
    # A database can store neither NUL nor half of a surrogate pair.
    return "".join("\N{REPLACEMENT CHARACTER}" if one == "\0" or ord(one) in _SURROGATE_CODES else one for one in value)


def _iso_time(value: Any) -> str | None:
    """A time in ISO 8601, from seconds since 1970 or from text; ``None`` if it has no time zone or is invalid."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    if found.tzinfo is None or not is_within_reach(found):
        return None
    return found.isoformat()


_READERS: Final[Mapping[Kind, Callable[[Mapping[str, Any], _Transcript, str], None]]] = {
    "chatgpt": _read_chatgpt,
    "claude": _read_claude,
}
