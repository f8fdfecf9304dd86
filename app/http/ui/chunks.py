"""Chunks of the UI message stream, version 1: only those that version 6 of the AI SDK knows.

Its reader ends at the first chunk of an unknown type, so that nothing else may ever be sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic_core import to_json

from app.core.model.model_io import FinishReason

Json = dict[str, Any]
Words = Literal["text", "reasoning"]

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
"""Reasons by ours; any other is ``other``."""


def sse(chunk: Json) -> bytes:
    """A chunk on the wire: no ``event`` and no ``id``."""
    return b"data: " + to_json(chunk) + b"\n\n"


def data(name: str, value: Any, id_: str, *, transient: bool = False) -> Json:
    """A part of our own; one with the same name and id takes its place."""
    chunk: Json = {"type": f"data-{name}", "id": id_, "data": value}
    return {**chunk, "transient": True} if transient else chunk


def piece_of(kind: Words, id_: str, piece: str) -> Json:
    """A piece of an open part."""
    return {"type": f"{kind}-delta", "id": id_, "delta": piece}


def tool_called(call_id: str, name: str, arguments: Any, *, is_ours: bool) -> Json:
    """A call; ``is_ours``: the service runs it, and the frontend does not."""
    chunk = {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": arguments}
    return {**chunk, "dynamic": True, **({"providerExecuted": True} if is_ours else {})}


def finish(reason: FinishReason, metadata: Json) -> Json:
    """The end of a message."""
    return {"type": "finish", "finishReason": FINISH.get(reason, "other"), "messageMetadata": metadata}


def chunks_before(parts: Sequence[Json]) -> Iterator[Json]:
    """The chunks that tell what a message held before the turn; their ids tell its texts from those of the turn."""
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
    told: Json = {"toolCallId": part["toolCallId"], "dynamic": True}
    if part.get("providerExecuted"):
        told["providerExecuted"] = True
    if part["state"] == "output-error":
        return {"type": "tool-output-error", "errorText": part["errorText"], **told}
    return {"type": "tool-output-available", "output": part["output"], **told}


def _tool_chunks(part: Json) -> Iterator[Json]:
    call_id, name, is_ours = part["toolCallId"], part["toolName"], bool(part.get("providerExecuted"))
    if is_ours or part["state"] == "input-available":
        yield tool_called(call_id, name, part["input"], is_ours=is_ours)
    else:
        # A frontend runs the calls that come whole: one that has run comes as a delta.
        yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": name, "dynamic": True}
        arguments = to_json(part["input"]).decode()
        yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": arguments}
    if part["state"] != "input-available":
        yield tool_returned(part)
