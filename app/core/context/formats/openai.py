"""Writes a context as OpenAI's chat completions: system messages in place, ``tool_calls``, results of role ``tool``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from app.core.context.formats.thread import thread_entries
from app.core.context.formats.values import AssistantEntry, Call, Media, Piece, Text, UserEntry
from app.core.context.formats.words import NAME_LENGTH
from app.core.model.model_io import ContextMessage
from app.core.text.localization.catalogue import Catalogue
from app.core.text.parts import as_text
from app.core.text.patterns import compiled

_NOT_IN_SPEAKERS: Final = compiled(r"[\s<|\\/>]+")
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


def openai_messages(messages: Sequence[ContextMessage], catalogue: Catalogue) -> list[dict[str, Any]]:
    """The ``messages`` of a chat completions request."""
    allowed = [replace(message, name=_allowed_name(message.name)) if message.name else message for message in messages]
    return [rendered for entry in thread_entries(allowed, catalogue) for rendered in _rendered(entry)]


def _rendered(entry: Any) -> Iterator[dict[str, Any]]:
    match entry:
        case UserEntry(results=results, pieces=pieces):
            for result in results:
                yield {"role": "tool", "tool_call_id": result.call_id, "content": as_text(result.content)}
            if pieces:
                yield {"role": "user", **_name_field(entry.name), "content": _content(pieces)}
        case AssistantEntry(texts=texts, calls=calls):
            message: dict[str, Any] = {
                "role": "assistant",
                **_name_field(entry.name),
                "content": "\n\n".join(texts) or None,
            }
            yield message | ({"tool_calls": [_call(call) for call in calls]} if calls else {})
        case system_entry:
            yield {"role": "system", **_name_field(system_entry.name), "content": system_entry.text}


def _allowed_name(name: str) -> str:
    return _NOT_IN_SPEAKERS.sub("_", name)[:NAME_LENGTH].strip("_")


def _name_field(name: str) -> dict[str, str]:
    return {"name": name} if name else {}


def _content(pieces: Sequence[Piece]) -> str | list[dict[str, Any]]:
    parts = [_part(piece) for piece in pieces]
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _part(piece: Piece) -> dict[str, Any]:
    match piece:
        case Media(media_type=media_type, data=data) if media_type in _IMAGES:
            return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
        case Media(words=words):
            return {"type": "text", "text": words}
        case Text(text=text):
            return {"type": "text", "text": text}


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": as_text(call.arguments)}}
