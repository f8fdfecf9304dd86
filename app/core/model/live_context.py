"""Decides whether a stateful model's response becomes the live context: only if it holds what the conversation has."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.model.conversation import Conversation, LiveContext
from app.core.model.fieldwise import from_same_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SentConversation:
    """The conversation as it was when a request to a stateful model was made."""

    through_seq: int
    """The last message at that time."""
    content_epoch: int
    boundary_seq: int
    live: LiveContext | None
    """The live context at that time."""
    file_bytes: int = 0
    """The bytes of all attached files."""


def sent_conversation(conversation: Conversation) -> SentConversation:
    """The conversation as it is now, for a request that is made of it."""
    return from_same_fields(SentConversation, conversation, through_seq=conversation.last_seq)


def live_context_after(present: Conversation, sent: SentConversation, response: LiveContext) -> LiveContext | None:
    """The live context after the model's reply is stored as message ``response.through_seq``.

    The response becomes the live context only if it holds the same as the history up to that message: since the request
    nothing was appended, erased or attached, and no earlier state was restored. Otherwise the earlier live context
    stays, and what it lacks is sent with the next request.

    """
    is_stale = (
        present.content_epoch != sent.content_epoch
        or present.boundary_seq < sent.boundary_seq
        or present.live != sent.live
        or present.file_bytes != sent.file_bytes
    )
    has_gap = response.through_seq != sent.through_seq + 1
    return present.live if is_stale or has_gap else response
