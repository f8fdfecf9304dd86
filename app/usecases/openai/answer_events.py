"""A turn's events in the form that the routes of OpenAI's API use."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.model.conversation import Conversation
from app.usecases.chat.turn_handle import CALLED, ChatEvent, ChatResult, TurnHandle
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
    for step in handle.steps:
        if step.role != "assistant":
            continue
        yield ReasoningDelta(step.reasoning)
        yield TextDelta(step.content)
        yield ToolsCalled()
    async for event in handle.events():
        if event.result is not None:
            for call in _open_calls(event.result):
                yield call
            yield ended(event.result)
        elif event.type != CALLED:  # the calls are in the result too, with their places
            yield _answer_event(event)


def _open_calls(result: ChatResult) -> Iterator[OpenCall]:
    numbers = {part.get("id"): number for number, part in enumerate(result.reply.parts)}
    return (OpenCall(call, numbers[call.id]) for call in result.open_calls)


def _answer_event(event: ChatEvent) -> AnswerEvent:
    if event.error is not None:
        return Failed(event.error)
    match event.type:
        case "reply.delta" | "reasoning.delta" as kind:
            piece_type = TextDelta if kind == "reply.delta" else ReasoningDelta
            return piece_type(str(event.data["text"]))
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
