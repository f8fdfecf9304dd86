"""Builds the objects of OpenAI's API from given values, each with every field of that API. Decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from app.core.model.conversation import Conversation
from app.http.openai.ids import conversation_id

Json = dict[str, Any]

OWNER: Final = "throughline"
MODELS_CREATED_AT: Final = 1_795_132_800
"""The date shown for models, which have no date of their own: the day of the service's first version."""

DEFAULT_ECHO: Final[Mapping[str, Any]] = {
    "model": OWNER,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": {"effort": None, "summary": None},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
    "previous_response_id": None,
    "user": None,
}
"""The fields in which a response repeats its request, with the values for a request that does not set them."""


def unix_seconds(moment: datetime | None) -> int | None:
    """A moment in whole seconds since 1970, the format of times in that API."""
    return None if moment is None else math.floor(moment.timestamp())


def response_usage(usage: Mapping[str, Any] | None) -> Json:
    """The token counts that a model reported, in the form of a response."""
    read, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": _count(usage, "cached_tokens"), "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


def chat_usage(usage: Mapping[str, Any] | None) -> Json:
    """The token counts that a model reported, in the form of a chat completion."""
    read, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": _count(usage, "cached_tokens")},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _count(usage: Mapping[str, Any] | None, name: str) -> int:
    found = (usage or {}).get(name)
    return found if isinstance(found, int) else 0


def response_object(
    id_: str,
    *,
    created_at: int,
    status: str,
    echo: Mapping[str, Any],
    output: Sequence[Json] = (),
    completed_at: int | None = None,
    usage: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    reason: str | None = None,
    conversation: str | None = None,
) -> Json:
    """A response with all its fields.

    Args:
        id_: Its id.
        created_at: When it was asked for, in seconds.
        status: ``in_progress``, ``completed``, ``incomplete``, ``cancelled`` or ``failed``.
        echo: The fields of the request that the response repeats; those of ``DEFAULT_ECHO`` that are missing get their
            default.
        output: Its items.
        completed_at: When it was complete, in seconds.
        usage: The token counts that a model reported; ``None`` while it runs.
        error: ``code`` and ``message`` where it failed.
        reason: Why it is incomplete.
        conversation: The id of the conversation that it is stored in.
    """
    return {
        "id": id_,
        "object": "response",
        "created_at": created_at,
        "completed_at": completed_at,
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "error": dict(error) if error else None,
        **{name: echo.get(name, default) for name, default in DEFAULT_ECHO.items()},
        "output": list(output),
        "usage": None if usage is None else response_usage(usage),
        "conversation": {"id": conversation} if conversation else None,
    }


def conversation_object(conversation: Conversation) -> Json:
    """A conversation, without its items."""
    return {
        "id": conversation_id(conversation.id),
        "object": "conversation",
        "created_at": unix_seconds(conversation.created_at),
        "metadata": dict(conversation.metadata),
    }


def deletion_object(id_: str, kind: str) -> Json:
    """The answer to a deletion; ``kind`` is ``response`` or ``conversation.deleted``."""
    return {"id": id_, "object": kind, "deleted": True}


def list_object(data: Sequence[Json], *, has_more: bool) -> Json:
    """One page of a list."""
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def model_object(name: str) -> Json:
    """A model."""
    return {"id": name, "object": "model", "created": MODELS_CREATED_AT, "owned_by": OWNER}


def chat_completion(
    id_: str,
    *,
    created: int,
    model: str,
    text: str,
    calls: Sequence[Json],
    finish_reason: str | None,
    usage: Mapping[str, Any] | None,
    reasoning: str = "",
) -> Json:
    """A chat completion that is not streamed."""
    message: Json = {
        "role": "assistant",
        "content": text if text or not calls else None,
        "refusal": None,
        "annotations": [],
    }
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": id_,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": chat_usage(usage),
        "service_tier": "default",
        "system_fingerprint": None,
    }


def chat_tool_call(id_: str, name: str, arguments: str) -> Json:
    """A tool call within a chat completion."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
