"""Turns a stored response into OpenAI's form."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.model.model_io import FinishReason
from app.core.text.parts import as_text
from app.http.openai.answers import INCOMPLETE_REASONS
from app.http.openai.ids import call_item_id, conversation_id, message_id, reasoning_id, response_id
from app.http.openai.resources import OWNER, Json, response_object, unix_seconds
from app.http.openai.response_events import ResponseEvents
from app.usecases.chat.reply import finish_of
from app.usecases.openai.stored_responses import StoredResponse


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


def _output_items(found: StoredResponse, status: str) -> Sequence[Json]:
    """The output as it was sent: reasoning, text, and the calls that wait for the client.

    The service's own calls are not shown, but what the model said before them is.
    """
    reply = found.reply
    if reply is None:
        return []
    events = ResponseEvents(
        resource=lambda _, output: {"output": output},
        message=message_id(reply.id),
        call_id=lambda number: call_item_id(reply.id, number),
        reasoning_id=lambda number: reasoning_id(reply.id, number),
        tools=(found.turn.request or {}).get("tools", ()),
    )
    made = list(events.begin())
    for message in (*found.steps, reply):
        made += [*events.reasoning(message.reasoning), *events.text(message.content)]
        if message is not reply:
            events.boundary()
    waiting = {call.id for call in found.open_calls}
    for number, part in enumerate(reply.parts):
        if part.get("type") == "tool_call" and part["id"] in waiting:
            made += events.call(number, part["id"], part["name"], as_text(part["arguments"]))
    made += events.complete(status)
    output: Sequence[Json] = made[-1]["response"]["output"]
    return output
