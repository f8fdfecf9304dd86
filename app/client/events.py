"""The events of streams as typed values. An event of an unknown type or form stays an `Event` or a `ChatEvent`.

``data`` is the JSON object as it came: a plain ``dict`` whose keys are defined here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypeVar, get_args

from pydantic import ConfigDict, ValidationError, with_config
from typing_extensions import TypedDict

from .resources import ChatEvent, ChatResult, Event, Resource

Kind = TypeVar("Kind", Event, ChatEvent)

KEEPS_NEW_FIELDS: Final = ConfigDict(extra="allow")
"""The configuration of the data: fields that a newer service adds are kept."""


@with_config(KEEPS_NEW_FIELDS)
class MessageCreatedData(TypedDict):
    """A message that was stored; the first event of a chat's stream also has the ids of its turn and reply."""

    message_id: str
    seq: int
    role: str
    turn_id: NotRequired[str]
    reply_id: NotRequired[str]


@with_config(KEEPS_NEW_FIELDS)
class MessageErasedData(TypedDict):
    """A message that was erased."""

    message_id: str
    seq: int


@with_config(KEEPS_NEW_FIELDS)
class ReplyData(TypedDict):
    """A reply, and the message that it answers."""

    message_id: str
    seq: int
    in_reply_to: str


@with_config(KEEPS_NEW_FIELDS)
class ReplyFailedData(TypedDict):
    """A message that got no reply, and the code of the problem."""

    message_id: str
    turn_id: str
    code: str


@with_config(KEEPS_NEW_FIELDS)
class ContextThresholdData(TypedDict):
    """A context that passed a step, or (with a ``reason``) a message that there was no room to protect."""

    status: str
    tokens: int
    budget: int
    utilization: float
    reason: NotRequired[str]
    message_id: NotRequired[str]
    seq: NotRequired[int]
    size: NotRequired[int]
    protected_tokens: NotRequired[int]
    limit: NotRequired[int]


@with_config(KEEPS_NEW_FIELDS)
class CompactionData(TypedDict):
    """A compaction as it was at the time; inside a turn with a notification for the user, if there is one."""

    compaction_id: str
    trigger: str
    ran_in: str
    status: str
    reason: str | None
    messages_covered: int
    from_seq: int | None
    to_seq: int | None
    tokens_before: int | None
    tokens_after: int | None
    duration_ms: NotRequired[int | None]
    state_version: int | None
    notification: NotRequired[dict[str, Any] | None]


@with_config(KEEPS_NEW_FIELDS)
class VerificationData(TypedDict):
    """A verification that has ended."""

    verification_id: str
    state_version: int
    status: str
    reason: str | None
    claims: int | None
    changed: bool


@with_config(KEEPS_NEW_FIELDS)
class RestoredData(TypedDict):
    """The new version, and the version whose content it has."""

    state_version: int
    restored_from: int


@with_config(KEEPS_NEW_FIELDS)
class SetAsideData(TypedDict):
    """What was done with a conversation's texts when processes ended during that work, and how many processes ended."""

    reason: str
    crashes: int


@with_config(KEEPS_NEW_FIELDS)
class ReasoningDeltaData(TypedDict):
    """A piece of the model's reasoning."""

    text: str


@with_config(KEEPS_NEW_FIELDS)
class ContextRecalledData(TypedDict):
    """What was recalled for the turn so far: positions of messages, in order."""

    seqs: list[int]


@with_config(KEEPS_NEW_FIELDS)
class ReplyDeltaData(TypedDict):
    """A piece of the reply."""

    text: str


@with_config(KEEPS_NEW_FIELDS)
class ToolCalledData(TypedDict):
    """A call of one of your tools, which waits for its result."""

    id: str
    name: str
    arguments: dict[str, Any]


CompactionType = Literal[
    "compaction.queued", "compaction.started", "compaction.applied", "compaction.skipped", "compaction.failed"
]


class MessageCreatedEvent(Event):
    """A message was stored."""

    type: Literal["message.created"]
    data: MessageCreatedData


class MessageErasedEvent(Event):
    """A message was erased."""

    type: Literal["message.erased"]
    data: MessageErasedData


class ReplyEvent(Event):
    """A reply was stored, or was replaced by another try."""

    type: Literal["reply.completed", "reply.interrupted", "message.superseded"]
    data: ReplyData


class ReplyFailedEvent(Event):
    """A turn ended without a reply."""

    type: Literal["reply.failed"]
    data: ReplyFailedData


class ContextThresholdEvent(Event):
    """The context passed a step."""

    type: Literal["context.threshold"]
    data: ContextThresholdData


class CompactionEvent(Event):
    """A compaction progressed or ended."""

    type: CompactionType
    data: CompactionData


class VerificationEvent(Event):
    """A verification of the state ended."""

    type: Literal["verification.finished"]
    data: VerificationData


class ConversationRestoredEvent(Event):
    """An earlier state was restored as a new version."""

    type: Literal["conversation.restored"]
    data: RestoredData


class ConversationSetAsideEvent(Event):
    """A conversation was set aside because processes ended during work on it, or was released again."""

    type: Literal["conversation.set_aside", "conversation.released"]
    data: SetAsideData


class ChatMessageCreated(ChatEvent):
    """A message of the turn was stored; the first of them begins the stream."""

    type: Literal["message.created"]
    data: MessageCreatedData


class ChatReplySuperseded(ChatEvent):
    """The earlier reply was superseded, since it is made again."""

    type: Literal["message.superseded"]
    data: ReplyData


class ChatCompaction(ChatEvent):
    """A compaction inside the turn progressed or ended."""

    type: CompactionType
    data: CompactionData


class ReplyDelta(ChatEvent):
    """The reply goes on."""

    type: Literal["reply.delta"]
    data: ReplyDeltaData


class ReasoningDelta(ChatEvent):
    """The model shows its reasoning, which is not part of the reply."""

    type: Literal["reasoning.delta"]
    data: ReasoningDeltaData


class ContextRecalled(ChatEvent):
    """Earlier messages were recalled; the model is asked next."""

    type: Literal["context.recalled"]
    data: ContextRecalledData


class ToolCalled(ChatEvent):
    """An open call of one of your tools."""

    type: Literal["tool.called"]
    data: ToolCalledData


class ReplyEnded(ChatEvent):
    """The turn is over; nothing comes after it."""

    type: Literal["reply.completed", "reply.interrupted"]
    result: ChatResult


def event_of(body: str) -> Event:
    """An event of a conversation, as an instance of the class for its type."""
    found: dict[str, Any] = json.loads(body)
    return _read_event(_EVENTS.get(str(found.get("type")), Event), Event, found)


def chat_event_of(type_: str, number: int | None, data: Mapping[str, Any]) -> ChatEvent:
    """An event of a chat's stream, as an instance of the class for its type."""
    if type_ in types_of(ReplyEnded):
        return ReplyEnded.model_validate({"type": type_, "id": number, "result": data})
    return _read_event(_CHAT_EVENTS.get(type_, ChatEvent), ChatEvent, {"type": type_, "id": number, "data": data})


def _read_event(kind: type[Kind], plain: type[Kind], found: Mapping[str, Any]) -> Kind:
    try:
        return kind.model_validate(found)
    except ValidationError:  # an event of another version of the service
        return plain.model_validate(found)


def types_of(kind: type[Resource]) -> tuple[str, ...]:
    """The types of event that a class represents."""
    return get_args(kind.model_fields["type"].annotation)


_EVENTS: Final[Mapping[str, type[Event]]] = {
    name: kind
    for kind in (
        *(MessageCreatedEvent, MessageErasedEvent, ReplyEvent, ReplyFailedEvent, ContextThresholdEvent),
        *(CompactionEvent, VerificationEvent, ConversationRestoredEvent, ConversationSetAsideEvent),
    )
    for name in types_of(kind)
}
_CHAT_EVENTS: Final[Mapping[str, type[ChatEvent]]] = {
    name: kind
    for kind in (
        *(ChatMessageCreated, ChatReplySuperseded, ChatCompaction),
        *(ContextRecalled, ReasoningDelta, ReplyDelta, ToolCalled),
    )
    for name in types_of(kind)
}
