"""Writes a context as Anthropic's messages: separate system text, alternating roles, blocks for calls and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from app.core.context.formats.thread import system_and_thread
from app.core.context.formats.values import AssistantEntry, Media, Piece, Text, UserEntry
from app.core.model.model_io import ContextMessage
from app.core.text.localization.catalogue import Catalogue
from app.core.text.parts import as_text

_BLOCK_TYPES: Final = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/webp": "image",
    "image/gif": "image",
    "application/pdf": "document",
}


def anthropic_messages(
    messages: Sequence[ContextMessage], catalogue: Catalogue
) -> tuple[str | None, list[dict[str, Any]]]:
    """The fields ``system`` and ``messages`` of a request."""
    system, thread = system_and_thread(messages, catalogue)
    rendered = [_rendered(entry) for entry in thread]
    if rendered and rendered[-1]["role"] == "assistant":
        _trim_end(rendered[-1]["content"][-1])
    return system, rendered


def _rendered(entry: UserEntry | AssistantEntry) -> dict[str, Any]:
    if isinstance(entry, UserEntry):
        results = [
            {"type": "tool_result", "tool_use_id": result.call_id, "content": as_text(result.content)}
            for result in entry.results
        ]
        return {"role": "user", "content": [*results, *map(_block, entry.pieces)]}
    texts = [{"type": "text", "text": text} for text in entry.texts]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in entry.calls
    ]
    return {"role": "assistant", "content": [*texts, *calls]}


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case Media(media_type=media_type, data=data) if media_type in _BLOCK_TYPES:
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": _BLOCK_TYPES[media_type], "source": source}
        case Media(words=words):
            return {"type": "text", "text": words}
        case Text(text=text):
            return {"type": "text", "text": text}


def _trim_end(block: dict[str, Any]) -> None:
    # Anthropic refuses a request that ends with words of the assistant and spaces after them.
    if block["type"] == "text":
        block["text"] = block["text"].rstrip()
