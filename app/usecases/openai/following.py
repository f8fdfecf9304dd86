"""A turn's events, as the routes of OpenAI's API take them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.model_io import ToolCall
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.openai.answering import Boundary, Called, Ended, Failed, Happening, Noted, Piece, Thought

MADE_BY_MODEL = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A turn that was begun, or one that an earlier try began."""

    turn_id: UUID
    reply_id: UUID
    """The id that the reply is going to have."""
    started_at: datetime
    conversation: Conversation
    """As it stands with the request's messages."""
    served: int
    """Tokens of the context that the model is sent, as estimated."""
    forked_from: UUID | None
    """The conversation that this one was copied from for this request."""
    handle: TurnHandle

    @property
    def full(self) -> int:
        """Tokens of the whole history, as estimated."""
        return self.conversation.total.tokens


async def happenings(handle: TurnHandle) -> AsyncGenerator[Happening, None]:
    """What happens in a turn, the end last."""
    async for event in handle.events():
        yield _happening(event)


def _happening(event: ChatEvent) -> Happening:
    if event.result is not None:
        return ended(event.result)
    if event.error is not None:
        return Failed(event.error)
    match event.type:
        case "reply.delta" | "reasoning.delta" as kind:
            told = Piece if kind == "reply.delta" else Thought
            return told(str(event.data["text"]))
        case "tool.called":
            data = event.data
            return Called(ToolCall(id=data["id"], name=data["name"], arguments=data["arguments"]))
        case "message.created" if event.data.get("role") == MADE_BY_MODEL:
            return Boundary()
        case kind:
            return Noted(kind, event.data)


def ended(result: ChatResult) -> Ended:
    """The end of a turn that has its reply."""
    reply = result.reply
    return Ended(
        text=reply.content,
        finish=result.finish,
        interrupted=reply.status == "interrupted",
        usage=reply.usage or {},
        at=reply.created_at,
    )
