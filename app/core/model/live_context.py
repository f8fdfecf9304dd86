"""Decides when a response of a stateful model becomes the live context: only if the two hold the same."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.model.conversation import Conversation, LiveContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a request to a stateful model was made of."""

    through_seq: int
    """The last message that there was."""
    content_epoch: int
    boundary_seq: int
    live: LiveContext | None
    """What the conversation had at that time."""
    file_bytes: int = 0
    """The bytes of all attached files."""


def sent_of(conversation: Conversation) -> Sent:
    """What a request holds that is made of the conversation as it is now."""
    return Sent(
        through_seq=conversation.last_seq,
        content_epoch=conversation.content_epoch,
        boundary_seq=conversation.boundary_seq,
        live=conversation.live,
        file_bytes=conversation.file_bytes,
    )


def live_after(present: Conversation, sent: Sent, said: LiveContext) -> LiveContext | None:
    """The live context once what the model said is stored as message ``said.through_seq``.

    The response is one only if it and the history say the same up to that message: nothing was appended between the
    request and it, nothing was erased or attached, no older state was gone back to. Else the earlier one stays, and
    what it lacks is sent with the next request.
    """
    is_stale = (
        present.content_epoch != sent.content_epoch
        or present.boundary_seq < sent.boundary_seq
        or present.live != sent.live
        or present.file_bytes != sent.file_bytes
    )
    has_gap = said.through_seq != sent.through_seq + 1
    return present.live if is_stale or has_gap else said
