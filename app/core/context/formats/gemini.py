"""Writes a context as Gemini's contents: separate system instruction, ``functionCall`` and ``functionResponse``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.core.context.formats.thread import system_and_thread
from app.core.context.formats.values import AssistantEntry, Call, Media, Piece, Result, Text, UserEntry
from app.core.context.formats.words import NAME_LENGTH
from app.core.model.model_io import ContextMessage
from app.core.text.localization.catalogue import Catalogue
from app.core.text.patterns import compiled

_SUPPORTED_MEDIA: Final = compiled(r"(?:image|audio|video)/[a-z0-9.+-]+|application/pdf")
_NAME_START: Final = compiled(r"[A-Za-z_]")


def gemini_contents(
    messages: Sequence[ContextMessage], catalogue: Catalogue
) -> tuple[str | None, list[dict[str, Any]]]:
    """The text of ``system_instruction`` and the ``contents`` of a request."""
    system, thread = system_and_thread(messages, catalogue)
    return system, [_rendered(entry) for entry in thread]


def _rendered(entry: UserEntry | AssistantEntry) -> dict[str, Any]:
    if isinstance(entry, UserEntry):
        return {"role": "user", "parts": [*map(_function_response, entry.results), *map(_part, entry.pieces)]}
    return {"role": "model", "parts": [*({"text": text} for text in entry.texts), *map(_call, entry.calls)]}


def _part(piece: Piece) -> dict[str, Any]:
    match piece:
        case Media(media_type=media_type, data=data) if _SUPPORTED_MEDIA.fullmatch(media_type):
            return {"inlineData": {"mimeType": media_type, "data": data}}
        case Media(words=words):
            return {"text": words}
        case Text(text=text):
            return {"text": text}


def _call(call: Call) -> dict[str, Any]:
    part: dict[str, Any] = {
        "functionCall": {"id": call.id, "name": _function_name(call.name), "args": dict(call.arguments)},
    }
    return part | ({"thoughtSignature": call.signature} if call.signature else {})


def _function_response(result: Result) -> dict[str, Any]:
    # Gemini requires an object, and knows the key ``output``.
    content = result.content
    response = dict(content) if isinstance(content, Mapping) else {"output": content}
    return {"functionResponse": {"id": result.call_id, "name": _function_name(result.name), "response": response}}


def _function_name(name: str) -> str:
    # Gemini's names begin with a letter or an underscore.
    return name if _NAME_START.match(name) else f"_{name}"[:NAME_LENGTH]
