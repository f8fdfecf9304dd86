"""A turn's events in the form that the routes of OpenAI's API use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.model_io import ToolCall
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.openai.answering import (
    AnswerEvent,
    Ended,
    Failed,
    OpenCall,
    ReasoningDelta,
    ServiceEvent,
    TextDelta,
    ToolsCalled,
)

MADE_BY_MODEL = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAnswer:
    """A turn that was begun now, or by an earlier try."""

    turn_id: UUID
    reply_id: UUID
    """The id that the reply will have."""
    started_at: datetime
    conversation: Conversation
    """The conversation, including the request's messages."""
    served: int
    """Estimated tokens of the context that the model is sent."""
    forked_from: UUID | None
    """The conversation from which this one was forked for this request."""
    handle: TurnHandle

    @property
    def full(self) -> int:
        """Estimated tokens of the whole history."""
        return self.conversation.total.tokens


async def answer_events(handle: TurnHandle) -> AsyncGenerator[AnswerEvent, None]:
    """The events of a turn, its end last."""
    async for event in handle.events():
        yield _answer_event(event)


def _answer_event(event: ChatEvent) -> AnswerEvent:
    if event.result is not None:
        return ended(event.result)
    if event.error is not None:
        return Failed(event.error)
    match event.type:
        case "reply.delta" | "reasoning.delta" as kind:
            piece_type = TextDelta if kind == "reply.delta" else ReasoningDelta
            return piece_type(str(event.data["text"]))
        case "tool.called":
            data = event.data
            return OpenCall(ToolCall(id=data["id"], name=data["name"], arguments=data["arguments"]))
        case "message.created" if event.data.get("role") == MADE_BY_MODEL:
            return ToolsCalled()
        case kind:
            return ServiceEvent(kind, event.data)


def ended(result: ChatResult) -> Ended:
    """The end of a turn that has a reply."""
    reply = result.reply
    return Ended(
        text=reply.content,
        finish=result.finish,
        interrupted=reply.status == "interrupted",
        usage=reply.usage or {},
        at=reply.created_at,
    )
