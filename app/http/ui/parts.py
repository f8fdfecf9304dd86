"""Makes the parts of UI messages from stored messages; nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any, Final

from app.core.model.conversation import Message
from app.core.model.notifications import Notification
from app.core.reading.passages import clip
from app.core.text.contents import shown_address
from app.core.text.parts import Part, own_content, own_parts
from app.http.present import present_notification, present_recalled
from app.http.ui.chunks import RECALLED, Json, data
from app.usecases.ui.threads import Passages

TITLE_LENGTH: Final = 80
"""The most characters of a passage that its title quotes."""
COMPACTION_FIELDS: Final = (
    *("trigger", "ran_in", "reason", "from_seq", "to_seq", "messages_covered"),
    *("tokens_before", "tokens_after", "duration_ms", "state_version"),
)


def metadata_of(message: Message) -> Json:
    """The metadata of a message; for an answer, those of its last message."""
    return {
        "message_id": str(message.id),
        "seq": message.seq,
        "created_at": message.created_at.astimezone(UTC),
        "status": message.status,
        "event_type": message.event_type,
        "protected_reason": message.protected_reason,
        "model": message.model,
        "usage": dict(message.usage) if message.usage is not None else None,
    }


def answer_parts(messages: Iterable[Message], own_tools: Collection[str]) -> list[Json]:
    """The parts of an answer: a step for each message of the model, and each call with its result."""
    parts: list[Json] = []
    calls: dict[str, Json] = {}
    for message in messages:
        if message.role == "tool":
            _put_results(message, parts, calls, own_tools)
            continue
        parts.append({"type": "step-start"})
        parts += content_parts(message)
        for part in message.parts:
            if part.get("type") == "tool_call":
                calls[str(part["id"])] = called = call_part(part, own_tools)
                parts.append(called)
    return parts


def content_parts(message: Message) -> Iterator[Json]:
    """The reasoning, the text and the media of a message."""
    if message.reasoning:
        yield {"type": "reasoning", "text": message.reasoning}
    own_text = own_content(message.role, message.content, message.parts)
    texts = [
        own_text,
        *(part.get("text", "") for part in own_parts(own_text, message.parts) if part.get("type") == "text"),
    ]
    yield from ({"type": "text", "text": text} for text in texts if text)
    yield from (_file_part(part) for part in message.parts if part.get("type") == "media")


def call_part(part: Part, own_tools: Collection[str]) -> Json:
    """A call that has no result yet."""
    name = str(part.get("name") or "tool")
    called: Json = {"type": "dynamic-tool", "toolName": name, "toolCallId": str(part["id"])}
    if name in own_tools:
        called["providerExecuted"] = True
    return {**called, "state": "input-available", "input": part.get("arguments")}


def result_of(part: Part) -> Json:
    """The fields that a result sets in the part of its call."""
    match part.get("content"):
        case {"error": str(error), **others} if not others:
            return {"state": "output-error", "errorText": error}
        case content:
            return {"state": "output-available", "output": content}


def recalled_parts(seqs: Sequence[int], passages: Passages) -> Iterator[Json]:
    """What was recalled for an answer, and each passage as a source."""
    runs = [run.model_dump(mode="json") for run in present_recalled(seqs, passages.segments)]
    yield data(RECALLED, runs, RECALLED)
    for seq in seqs:
        message = passages.messages.get(seq)
        if message is not None:
            yield {
                "type": "source-document",
                "sourceId": f"seq:{seq}",
                "mediaType": "text/plain",
                "title": title_of(message),
            }


def title_of(message: Message) -> str:
    """A title for a passage: a date and the first words."""
    words = " ".join(message.content[: TITLE_LENGTH * 4].split())
    return f"{message.created_at:%Y-%m-%d} · {clip(words, TITLE_LENGTH)}".rstrip(" ·")


def notice_parts(warnings: Iterable[str]) -> Iterator[Json]:
    """The warnings for a client; the text after the colon of a warning is its subject."""
    for warning in warnings:
        words = warning.replace("_", " ").replace(":", ": ", 1)
        yield data("notice", {"level": "warning", "code": warning, "message": words}, f"notice:{warning}")


def compaction_part(numbers: Mapping[str, Any], status: str, notification: Notification | None) -> Json:
    """A compaction as it is now. The part with its next status has the same id and replaces this one."""
    words = present_notification(notification)
    value = {"status": status} | {name: numbers.get(name) for name in COMPACTION_FIELDS}
    value["notification"] = words.model_dump(mode="json") if words else None
    return data("compaction", value, str(numbers["compaction_id"]))


def _put_results(message: Message, parts: list[Json], calls: dict[str, Json], own_tools: Collection[str]) -> None:
    for part in message.parts:
        if part.get("type") != "tool_result":
            continue
        id_ = str(part["tool_call_id"])
        if id_ not in calls:
            calls[id_] = call_part({"id": id_, "name": part.get("name"), "arguments": None}, own_tools)
            parts.append(calls[id_])
        calls[id_].update(result_of(part))
    parts += content_parts(message)


def _file_part(part: Part) -> Json:
    media_type = str(part.get("media_type") or "application/octet-stream")
    name = {"filename": part["name"]} if part.get("name") else {}
    return {"type": "file", "mediaType": media_type, "url": shown_address(part), **name}
