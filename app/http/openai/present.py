"""Turns a stored response into OpenAI's form."""

from __future__ import annotations

from app.core.model.model_io import FinishReason
from app.core.text.parts import as_text
from app.http.openai.answers import INCOMPLETE_REASONS
from app.http.openai.ids import call_item_id, conversation_id, message_id, reasoning_id, response_id
from app.http.openai.items import call_item, content_of, message_item, reasoning_item
from app.http.openai.resources import OWNER, Json, response_object, unix_seconds
from app.usecases.chat.reply import finish_of
from app.usecases.openai.responses import StoredResponse


def present_response(response: StoredResponse) -> Json:
    """A response as it is stored now, whatever came after it."""
    turn, reply = response.turn, response.reply
    failed = turn.status == "failed"
    error = {"code": turn.error_code or "server_error", "message": "the response failed"} if failed else None
    finish: FinishReason = finish_of(reply, turn.warnings, response.open_calls) if reply else "other"
    status = _status(response, finish)
    return response_object(
        response_id(turn.id),
        created_at=unix_seconds(turn.started_at) or 0,
        status=status,
        echo={"model": reply.model or OWNER} if turn.request is None and reply else turn.request or {},
        output=_output_items(response, status),
        completed_at=unix_seconds(reply.created_at) if reply and status == "completed" else None,
        usage=reply.usage or {} if reply else None,
        error=error,
        reason=INCOMPLETE_REASONS.get(finish) if status == "incomplete" else None,
        conversation=conversation_id(turn.conversation_id),
    )


def _status(found: StoredResponse, finish: FinishReason) -> str:
    match found.turn.status:
        case "running":
            return "in_progress"
        case "failed":
            return "failed"
        case "interrupted":
            return "cancelled"
        case _:
            return "incomplete" if finish in INCOMPLETE_REASONS else "completed"


def _output_items(found: StoredResponse, status: str) -> list[Json]:
    """The reply's reasoning and text, and the calls that wait for the client; the service's own calls are not shown."""
    reply = found.reply
    if reply is None:
        return []
    content = content_of("assistant", reply.content, ())
    state = "completed" if status == "completed" else "incomplete"
    messages = [message_item(message_id(reply.id), "assistant", content, state)] if content else []
    thoughts = [reasoning_item(reasoning_id(reply.id, 0), (reply.reasoning,), state)] if reply.reasoning else []
    waiting = {call.id for call in found.open_calls}
    calls = [
        call_item(call_item_id(reply.id, number), part["id"], part["name"], as_text(part["arguments"]))
        for number, part in enumerate(reply.parts)
        if part.get("type") == "tool_call" and part["id"] in waiting
    ]
    return [*thoughts, *messages, *calls]
