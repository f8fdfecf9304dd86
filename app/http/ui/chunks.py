"""Chunks of the UI message stream, version 1: only those that version 6 of the AI SDK knows.

Its reader stops at the first chunk of an unknown type, so nothing else may be sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic_core import to_json

from app.core.model.model_io import FinishReason

Json = dict[str, Any]
PartKind = Literal["text", "reasoning"]
"""The kinds of parts that are sent in pieces."""

HEADERS: Final[Mapping[str, str]] = {"x-vercel-ai-ui-message-stream": "v1", "cache-control": "no-cache"}
DONE: Final = b"data: [DONE]\n\n"
GAUGE: Final = "gauge"
RECALLED: Final = "recalled"
FINISH: Final[Mapping[FinishReason, str]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool-calls",
    "blocked": "content-filter",
}
"""The AI SDK's finish reasons by this service's; any other is ``other``."""


def sse(chunk: Json) -> bytes:
    """A chunk as bytes, without ``event`` and ``id``."""
    return b"data: " + to_json(chunk) + b"\n\n"


def data(name: str, value: Any, id_: str, *, transient: bool = False) -> Json:
    """A part of this service; a later one with the same name and id replaces it."""
    chunk: Json = {"type": f"data-{name}", "id": id_, "data": value}
    return {**chunk, "transient": True} if transient else chunk


def piece_of(kind: PartKind, id_: str, piece: str) -> Json:
    """A piece of an open part."""
    return {"type": f"{kind}-delta", "id": id_, "delta": piece}


def tool_called(call_id: str, name: str, arguments: Any, *, is_ours: bool) -> Json:
    """A call. With ``is_ours`` the service runs it, and the frontend does not."""
    chunk = {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": arguments}
    return {**chunk, "dynamic": True, **({"providerExecuted": True} if is_ours else {})}


def finish(reason: FinishReason, metadata: Json) -> Json:
    """The end of a message."""
    return {"type": "finish", "finishReason": FINISH.get(reason, "other"), "messageMetadata": metadata}


def chunks_before(parts: Sequence[Json]) -> Iterator[Json]:
    """The chunks of what a message contained before the turn. The ids of its texts differ from those in the turn."""
    is_in_step = False
    for number, part in enumerate(parts):
        match part["type"]:
            case "step-start":
                if is_in_step:
                    yield {"type": "finish-step"}
                is_in_step = True
                yield {"type": "start-step"}
            case "text" | "reasoning" as kind:
                id_ = f"before-{number}"
                yield {"type": f"{kind}-start", "id": id_}
                yield piece_of(kind, id_, part["text"])
                yield {"type": f"{kind}-end", "id": id_}
            case "dynamic-tool":
                yield from _tool_chunks(part)
            case "file":
                yield {"type": "file", "url": part["url"], "mediaType": part["mediaType"]}
            case _:
                yield part
    if is_in_step:
        yield {"type": "finish-step"}


def tool_returned(part: Json) -> Json:
    """The result of a call."""
    call: Json = {"toolCallId": part["toolCallId"], "dynamic": True}
    if part.get("providerExecuted"):
        call["providerExecuted"] = True
    if part["state"] == "output-error":
        return {"type": "tool-output-error", "errorText": part["errorText"], **call}
    return {"type": "tool-output-available", "output": part["output"], **call}


def _tool_chunks(part: Json) -> Iterator[Json]:
    call_id, name, is_ours = part["toolCallId"], part["toolName"], bool(part.get("providerExecuted"))
    if is_ours or part["state"] == "input-available":
        yield tool_called(call_id, name, part["input"], is_ours=is_ours)
    else:
        # A frontend runs calls that arrive as one chunk, so a call that has already run is sent as a delta.
        yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": name, "dynamic": True}
        arguments = to_json(part["input"]).decode()
        yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": arguments}
    if part["state"] != "input-available":
        yield tool_returned(part)
