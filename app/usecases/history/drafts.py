"""Messages that are to be stored, as a client gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from app.core.model.conversation import MessageStatus, Role
from app.core.model.errors import TooLargeError
from app.core.reading.labels import with_name_for_model
from app.core.text.parts import Part, joined_from
from app.core.text.token_counts import Weight, byte_length, weigh

MESSAGE_BYTES: Final = 4_000_000  # the most bytes of a message's text and call arguments: about a million tokens
COUNTED_STATUSES: frozenset[MessageStatus] = frozenset({"complete", "interrupted"})
"""The statuses of messages that are counted and read. Erased messages and superseded replies are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message before it is stored, as a client gives it."""

    id: UUID | None = None
    """The id, if it was chosen before; otherwise one is made."""
    role: Role
    content: str
    parts: tuple[Part, ...] = ()
    event_type: str = "casual"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    utc_offset: int | None = None
    """The offset of the speaker's clock from UTC in minutes. It is not needed with ``created_at``, which has an offset.
    """
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    reasoning: str = ""
    """The reasoning that its model showed."""
    status: MessageStatus = "complete"
    is_command: bool = False
    is_pinned: bool = False
    """Whether it is held word for word from the beginning, as the copy of a pinned message."""
    weight: Weight | None = None
    """The weight, if it was already computed."""

    @property
    def seq(self) -> None:
        """A draft has no position yet."""

    def creation_time(self, now: datetime) -> datetime:
        """The time of the message with its offset; ``now`` if no time was given."""
        if self.created_at is not None or self.utc_offset is None:
            return self.created_at or now
        return now.astimezone(timezone(timedelta(minutes=self.utc_offset)))

    def computed_weight(self) -> Weight:
        """The weight of the draft in tokens and bytes."""
        return self.weight or weigh(self.role, with_name_for_model(self.role, self.content, self.metadata), self.parts)


def bytes_of(draft: MessageDraft) -> int:
    """The size in bytes, as JSON, of the draft's text and parts, data of media included.

    Call it off the event loop for a large draft.
    """
    return len(to_json([draft.content, *draft.parts]))


def message_name(index: int, count: int) -> str:
    """The name by which an error refers to one of the messages of a request."""
    return "the message" if count == 1 else f"message {index + 1} of {count}"


def refuse_long(draft: MessageDraft, name: str = "the message") -> None:
    """Refuse too much text, or too large arguments, whatever the window: all work on them takes memory and time.

    If the weight is known, the text is not read again.

    Raises:
        TooLargeError: The message has more than ``MESSAGE_BYTES``.
    """
    if draft.weight is not None and draft.weight.bytes <= MESSAGE_BYTES:
        return
    parts = () if joined_from(draft.content, draft.parts) else draft.parts  # the content has their texts already
    texts = (part["text"] for part in parts if part.get("type") == "text")
    arguments = (part["arguments"] for part in draft.parts if part.get("type") == "tool_call" and "arguments" in part)
    size = byte_length(draft.content) + sum(map(byte_length, texts))
    of_calls = sum(len(to_json(one)) for one in arguments)
    if size + of_calls > MESSAGE_BYTES:
        what = "texts and arguments" if of_calls else "texts"
        raise TooLargeError(
            f"the {what} of {name} have {size + of_calls} bytes, at most {MESSAGE_BYTES} are taken: split it",
            extra={"limit": MESSAGE_BYTES, "size": size + of_calls},
        )
