"""The schemas of streamed events: those of a conversation, and those of a chat.

Streams are written from the services' values; the acceptance tests check each event against these models.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import Field, TypeAdapter

from app.core.model.conversation import Role
from app.core.model.gauge import GaugeStatus
from app.core.model.records import CompactionStatus, RanIn, VerificationStatus, WorkKind
from app.http.errors import Problem
from app.http.schemas import ChatResult, Moment, Notification, Output, ToolCall


class MessageCreatedData(Output):
    """A message that was stored."""

    message_id: UUID
    seq: int
    role: Role
    turn_id: UUID | None = Field(default=None, description="Only of the first event of a chat's stream.")
    reply_id: UUID | None = Field(default=None, description="Likewise: the id that the reply is going to have.")


class MessageErasedData(Output):
    """A message that was erased."""

    message_id: UUID
    seq: int


class ReplyData(Output):
    """A reply, and the message that it answers."""

    message_id: UUID
    seq: int
    in_reply_to: UUID


class ReplyFailedData(Output):
    """A message that got no reply."""

    message_id: UUID
    turn_id: UUID
    code: str = Field(description="Of the problem.")


class ContextThresholdData(Output):
    """A context that passed a step, or a message that could not be protected because there is no room."""

    status: GaugeStatus
    tokens: int
    budget: int
    utilization: float
    reason: Literal["over_allotment"] | None = Field(default=None, description="With the fields below; else absent.")
    message_id: UUID | None = None
    seq: int | None = None
    size: int | None = Field(default=None, description="Tokens of the message.")
    protected_tokens: int | None = None
    limit: int | None = Field(default=None, description="Tokens that may be protected.")


class CompactionData(Output):
    """A compaction, as it was at the time of the event."""

    compaction_id: UUID
    trigger: str
    ran_in: RanIn
    status: CompactionStatus
    reason: str | None
    messages_covered: int
    from_seq: int | None
    to_seq: int | None
    tokens_before: int | None
    tokens_after: int | None
    duration_ms: int | None = None
    state_version: int | None


class VerificationData(Output):
    """A verification that has ended."""

    verification_id: UUID
    state_version: int = Field(description="The version that was judged.")
    status: VerificationStatus
    reason: str | None
    claims: int | None = Field(description="How many claims were judged; null unless it is `done`.")
    changed: bool = Field(description="Whether its verdicts led to a new version of the state.")


class RestoredData(Output):
    """The new version, and the version whose content it has."""

    state_version: int
    restored_from: int


class SetAsideData(Output):
    """What was done with a conversation's texts when processes ended during that work, and how many processes ended."""

    reason: WorkKind
    crashes: int


CompactionType = Literal[
    "compaction.queued", "compaction.started", "compaction.applied", "compaction.skipped", "compaction.failed"
]


class EventFields(Output):
    """The fields of every event of a conversation besides `type` and `data`; `id` is a decimal number."""

    id: str
    conversation_id: UUID
    occurred_at: Moment
    notification: Notification | None


class MessageCreatedEvent(EventFields):
    """A message was stored."""

    type: Literal["message.created"]
    data: MessageCreatedData


class MessageErasedEvent(EventFields):
    """A message was erased."""

    type: Literal["message.erased"]
    data: MessageErasedData


class ReplyEvent(EventFields):
    """A reply was stored, or was replaced by another try."""

    type: Literal["reply.completed", "reply.interrupted", "message.superseded"]
    data: ReplyData


class ReplyFailedEvent(EventFields):
    """A turn ended without a reply."""

    type: Literal["reply.failed"]
    data: ReplyFailedData


class ContextThresholdEvent(EventFields):
    """The context grew over a step."""

    type: Literal["context.threshold"]
    data: ContextThresholdData


class CompactionEvent(EventFields):
    """A compaction progressed or ended; `compaction.failed` is also sent for a refused summary."""

    type: CompactionType
    data: CompactionData


class VerificationEvent(EventFields):
    """A verification of the state ended: its verdicts were applied, or it came to nothing."""

    type: Literal["verification.finished"]
    data: VerificationData


class ConversationRestoredEvent(EventFields):
    """An earlier state was restored as a new version."""

    type: Literal["conversation.restored"]
    data: RestoredData


class ConversationSetAsideEvent(EventFields):
    """A conversation was set aside because processes ended during work on it, or was released again."""

    type: Literal["conversation.set_aside", "conversation.released"]
    data: SetAsideData


class StreamEvent(Output):
    """`type`, `id` and `data` are the values after `event:`, `id:` and `data:`."""

    type: str
    id: int | None = Field(default=None, description="The conversation's own event number; absent: it has none.")
    data: Any


class ChatMessageCreated(StreamEvent):
    """A message of the turn was stored; the first of them begins the stream."""

    type: Literal["message.created"]
    data: MessageCreatedData


class ChatReplySuperseded(StreamEvent):
    """The earlier reply was superseded, since it is made again."""

    type: Literal["message.superseded"]
    data: ReplyData


class ChatCompactionData(CompactionData):
    """A compaction inside the turn."""

    notification: Notification | None = Field(default=None, description="Words for the user, where there are some.")


class ChatCompaction(StreamEvent):
    """A compaction inside the turn progressed or ended."""

    type: CompactionType
    data: ChatCompactionData


class ReplyDeltaData(Output):
    """A piece of the reply."""

    text: str


class ReplyDelta(StreamEvent):
    """The reply goes on."""

    type: Literal["reply.delta"]
    data: ReplyDeltaData


class ReasoningDeltaData(Output):
    """A piece of the model's reasoning."""

    text: str


class ReasoningDelta(StreamEvent):
    """The model shows its reasoning, which is not part of the reply."""

    type: Literal["reasoning.delta"]
    data: ReasoningDeltaData


class ContextRecalledData(Output):
    """What was recalled for the turn so far."""

    seqs: list[int] = Field(description="Positions of the messages, in order.")


class ContextRecalled(StreamEvent):
    """Earlier messages were recalled; the model is asked next."""

    type: Literal["context.recalled"]
    data: ContextRecalledData


class ToolCalled(StreamEvent):
    """An open call of one of the client's tools. One event for each such call, just before the end."""

    type: Literal["tool.called"]
    data: ToolCall


class ReplyEnded(StreamEvent):
    """The turn is over."""

    type: Literal["reply.completed", "reply.interrupted"]
    data: ChatResult


class ReplyFailed(StreamEvent):
    """The turn failed; nothing comes after it."""

    type: Literal["reply.failed"]
    data: Problem


ConversationEvent = Annotated[
    MessageCreatedEvent
    | MessageErasedEvent
    | ReplyEvent
    | ReplyFailedEvent
    | ContextThresholdEvent
    | CompactionEvent
    | VerificationEvent
    | ConversationRestoredEvent
    | ConversationSetAsideEvent,
    Field(discriminator="type", description="One event of a conversation."),
]
ChatStreamEvent = Annotated[
    ChatMessageCreated
    | ChatReplySuperseded
    | ChatCompaction
    | ContextRecalled
    | ReasoningDelta
    | ReplyDelta
    | ToolCalled
    | ReplyEnded
    | ReplyFailed,
    Field(discriminator="type", description="One event of a turn: what stands after `event:`, `id:` and `data:`."),
]

UNIONS: Final[dict[str, TypeAdapter[Any]]] = {
    "ChatStreamEvent": TypeAdapter(ChatStreamEvent),
    "ConversationEvent": TypeAdapter(ConversationEvent),
}
"""The unions of events, by their names in the OpenAPI document."""


def stream_of(name: str, description: str) -> dict[str, Any]:
    """The description of a route's stream: each of its events belongs to that union."""
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"description": description, "content": {"text/event-stream": {"schema": schema}}}
