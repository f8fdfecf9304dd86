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
from app.core.reading.labels import named_by
from app.core.text.parts import Part
from app.core.text.token_counts import Weight, byte_length, weigh

MESSAGE_BYTES: Final = 4_000_000  # of a message's own texts and the arguments of its calls: about a million tokens
SAID: frozenset[MessageStatus] = frozenset({"complete", "interrupted"})
"""What is counted and read: nothing of a message that was erased or gave way to another reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message to be: what a client gives of it."""

    id: UUID | None = None
    """Where it was decided before; else it gets one."""
    role: Role
    content: str
    parts: tuple[Part, ...] = ()
    event_type: str = "casual"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    utc_offset: int | None = None
    """In minutes, of the clock on which it is said; ``created_at`` has one of its own."""
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    reasoning: str = ""
    """What its model showed of its thoughts."""
    status: MessageStatus = "complete"
    is_command: bool = False
    is_pinned: bool = False
    """Held word for word from the beginning: the copy of a message that is pinned."""
    weight: Weight | None = None
    """Where it was weighed before."""

    def said_at(self, now: datetime) -> datetime:
        """Its time, at its offset; ``now`` where none was given."""
        if self.created_at is not None or self.utc_offset is None:
            return self.created_at or now
        return now.astimezone(timezone(timedelta(minutes=self.utc_offset)))

    def weighed(self) -> Weight:
        """What the draft weighs."""
        return self.weight or weigh(self.role, named_by(self.role, self.content, self.metadata), self.parts)


def bytes_of(draft: MessageDraft) -> int:
    """Bytes of what a draft says and carries, data of media too, as JSON; for a large one off the event loop."""
    return len(to_json([draft.content, *draft.parts]))


def named_among(index: int, count: int) -> str:
    """How an error names one of the messages of a request."""
    return "the message" if count == 1 else f"message {index + 1} of {count}"


def refuse_long(draft: MessageDraft, name: str = "the message") -> None:
    """Refuse too much text, or too large arguments, whatever the window: every look at them takes memory and time.

    One that was weighed need not be read again for that.

    Raises:
        TooLargeError: It is more than ``MESSAGE_BYTES``.
    """
    if draft.weight is not None and draft.weight.bytes <= MESSAGE_BYTES:
        return
    texts = (part["text"] for part in draft.parts if part.get("type") == "text")
    arguments = (part["arguments"] for part in draft.parts if part.get("type") == "tool_call" and "arguments" in part)
    size = byte_length(draft.content) + sum(map(byte_length, texts))
    of_calls = sum(len(to_json(one)) for one in arguments)
    if size + of_calls > MESSAGE_BYTES:
        what = "texts and arguments" if of_calls else "texts"
        raise TooLargeError(
            f"the {what} of {name} have {size + of_calls} bytes, at most {MESSAGE_BYTES} are taken: split it",
            extra={"limit": MESSAGE_BYTES, "size": size + of_calls},
        )
