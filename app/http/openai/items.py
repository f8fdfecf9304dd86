"""Turns stored messages into items, of which conversations and responses of OpenAI's API consist, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from app.core.model.conversation import Message
from app.core.text.contents import named_address, shown_address
from app.core.text.parts import Part, as_text, in_order, own_content
from app.http.fields import MAX_CONTENT_LENGTH, MAX_PARTS
from app.http.openai.content import (
    CallId,
    Content,
    Given,
    ToolName,
    call_part,
    calls_in,
    media_in,
    result_parts,
    results_in,
    stored_content,
)
from app.http.openai.ids import call_item_id, message_id, result_item_id
from app.http.openai.settings import offered_name
from app.usecases.history.drafts import MessageDraft


class MessageItem(Given):
    """A message of a user, the system or a model."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class CallItem(Given):
    """A call of a function by a model."""

    type: Literal["function_call"]
    call_id: CallId
    name: ToolName
    namespace: ToolName | None = None
    arguments: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] = "{}"


class ResultItem(Given):
    """The result of a function."""

    type: Literal["function_call_output"]
    call_id: CallId
    output: Content


class ReasoningItem(Given):
    """The reasoning of a model; no model of this service reads it."""

    type: Literal["reasoning"]


class ReferenceItem(Given):
    """A reference to a stored item, by its id."""

    type: Literal["item_reference"]
    id: Annotated[str, Field(min_length=1, max_length=100)]


class CompactionItem(Given):
    """Compacted input, as this service gave it out."""

    type: Literal["compaction", "compaction_summary"]
    encrypted_content: Annotated[str, Field(min_length=1)]


def _with_default_type(value: Any) -> Any:
    return {**value, "type": "message"} if isinstance(value, dict) and value.get("type") is None else value


InputItem = Annotated[
    Annotated[
        MessageItem | CallItem | ResultItem | ReasoningItem | ReferenceItem | CompactionItem,
        Field(discriminator="type"),
    ],
    BeforeValidator(_with_default_type),
]


def draft_of(item: MessageItem | CallItem | ResultItem) -> MessageDraft:
    """An item as a draft to be stored. Raises ``ValueError`` for content that cannot be stored."""
    match item:
        case MessageItem(role=role, content=content):
            words, parts = stored_content(content)
            if role == "user" and not words.strip() and not parts:
                raise ValueError("content cannot be empty")
            parts = parts if role == "user" else media_in(parts)
            return MessageDraft(role="system" if role == "developer" else role, content=words, parts=parts)
        case CallItem(call_id=call_id, name=name, namespace=namespace, arguments=arguments):
            part = call_part(call_id, offered_name(name, namespace), arguments)
            return MessageDraft(role="assistant", content="", parts=(part,))
        case ResultItem(call_id=call_id, output=output):
            return MessageDraft(role="tool", content="", parts=result_parts(call_id, output))


def without_empty(drafts: Iterable[MessageDraft]) -> list[MessageDraft]:
    """The messages without replies and system messages that say nothing.

    A model may write nothing but an empty line before it calls a tool, some frontends keep an empty reply in their
    history, and some send their system prompt even if it is empty.
    """
    kept = {"user", "tool"}
    return [draft for draft in drafts if draft.role in kept or draft.content.strip() or draft.parts]


def joined_steps(drafts: Iterable[MessageDraft]) -> Iterator[MessageDraft]:
    """The messages, with the text and calls of one step joined into one message, as the service stores them itself.

    Items separate the text of a step and each of its calls; text alone would be the end of an answer. If there are more
    calls than a message may have parts, they become several messages.
    """
    step: list[MessageDraft] = []
    parts, has_text, has_calls = 0, False, False
    for draft in drafts:
        draft_has_text, draft_has_calls = bool(draft.content), bool(calls_in(draft.parts))
        by_model = bool(step) and step[0].role == draft.role == "assistant"
        is_one_step = by_model and not (has_text and draft_has_text) and (has_calls or draft_has_calls)
        if not is_one_step or parts + len(draft.parts) > MAX_PARTS:
            if step:
                yield _one_message(step)
            step, parts, has_text, has_calls = [], 0, False, False
        step.append(draft)
        parts, has_text, has_calls = parts + len(draft.parts), has_text or draft_has_text, has_calls or draft_has_calls
    if step:
        yield _one_message(step)


def _one_message(step: Sequence[MessageDraft]) -> MessageDraft:
    if len(step) == 1:
        return step[0]
    text = next((draft.content for draft in step if draft.content), "")
    return replace(step[0], content=text, parts=tuple(part for draft in step for part in draft.parts))


def items_of(message: Message) -> list[dict[str, Any]]:
    """The items that a stored message consists of; none for an erased message."""
    if message.status == "erased":
        return []
    items: list[dict[str, Any]] = []
    text = own_content(message.role, message.content, message.parts)
    calls, results = calls_in(message.parts), results_in(message.parts)
    # Media that a tool returned with its result are part of the result's item.
    media = [_media_item(part) for part in message.parts if part.get("type") == "media"] if results else []
    own_parts_of_message = [part for part in message.parts if part.get("type") != "media"] if results else message.parts
    content = content_of(message.role, text, own_parts_of_message)
    if content:
        role = message.role if message.role != "tool" else "user"
        status = "incomplete" if message.status == "interrupted" else "completed"
        items.append(message_item(message_id(message.id), role, content, status))
    items += [
        call_item(call_item_id(message.id, number), str(part["id"]), str(part["name"]), as_text(part.get("arguments")))
        for number, part in calls
    ]
    items += [
        result_item(
            result_item_id(message.id, number), str(part["tool_call_id"]), _output(part, () if index else media)
        )
        for index, (number, part) in enumerate(results)
    ]
    return items


def _output(part: Part, media: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    text = as_text(part.get("content", ""))
    return [{"type": "input_text", "text": text}, *media] if media else text


def message_item(
    id_: str, role: str, content: Sequence[Mapping[str, Any]], status: str = "completed"
) -> dict[str, Any]:
    """A message."""
    return {"id": id_, "type": "message", "status": status, "role": role, "content": [dict(part) for part in content]}


def call_item(id_: str, call_id: str, name: str, arguments: str, status: str = "completed") -> dict[str, Any]:
    """A call."""
    return {
        "id": id_,
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": status,
    }


def reasoning_item(id_: str, thoughts: Sequence[str], status: str = "completed") -> dict[str, Any]:
    """A reasoning item."""
    return {"id": id_, "type": "reasoning", "status": status, "summary": [summary_text(text) for text in thoughts]}


def summary_text(text: str) -> dict[str, Any]:
    """A text within a reasoning item."""
    return {"type": "summary_text", "text": text}


def result_item(id_: str, call_id: str, output: str | list[dict[str, Any]]) -> dict[str, Any]:
    """A result."""
    return {"id": id_, "type": "function_call_output", "call_id": call_id, "output": output, "status": "completed"}


def output_text(text: str) -> dict[str, Any]:
    """Text of a model."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def content_of(role: str, own_text: str, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The contents of a stored message, its text first; a user's texts that stand behind media stay there."""
    said = in_order(own_text, own_text, parts)
    if role == "assistant":
        return [output_text(str(part.get("text", ""))) for part in said if part.get("type") == "text"]
    return [
        _media_item(part) if part["type"] == "media" else {"type": "input_text", "text": str(part.get("text", ""))}
        for part in said
        if part.get("type") in {"text", "media"}
    ]


def _media_item(part: Part) -> dict[str, Any]:
    media_type = str(part.get("media_type") or "").lower()
    source = shown_address(part)
    if media_type.startswith("image/"):
        return {"type": "input_image", "image_url": source, "detail": part.get("detail") or "auto"}
    name = str(part.get("name") or "file")
    # An address is not given as data: if a client sent the item back, it would be taken for bare Base64, or refused.
    return {"type": "input_file", "filename": name, "file_url" if named_address(part) else "file_data": source}
