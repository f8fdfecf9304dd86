"""Makes a reply again. The first reply stays stored, but nothing that is made from messages includes it any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from app.core.model.conversation import Conversation, Message
from app.core.model.errors import NotRegenerableError
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.history.holding import renew_layout
from app.usecases.shared.exchange import exchange_of, is_inside_answer
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

SUPERSEDED: Final = "message.superseded"


async def supersede_reply(uow: UnitOfWork, shell: Shell, conversation: Conversation, *, compute: Compute) -> Message:
    """Mark the last reply of a *locked* conversation as superseded, and return the message to be answered again.

    A compaction that has already read the reply becomes stale. Results of tools stay, for the next reply. ``compute``
    runs the layout, which changes if anchors become active again that the reply had superseded.

    Raises:
        NotRegenerableError: The last message is not a reply, or the state covers it.
    """
    reply = await uow.messages.last(conversation.id)
    if reply is None or reply.role != "assistant" or reply.status == "erased" or is_inside_answer(reply):
        raise NotRegenerableError("the last message is not a reply, so there is nothing to regenerate")
    if reply.seq <= conversation.boundary_seq:
        raise NotRegenerableError("the reply is part of the state by now: go back with restore, or say what was wrong")
    total = await uow.messages.supersede(reply)
    exchange = await exchange_of(uow, conversation.id)
    answered = exchange.question if exchange.awaits_reply else None
    if answered is None:
        raise NotRegenerableError("the last message answers no user message: it cannot be regenerated")
    _, restored = await uow.anchors.withdraw_of(conversation.id, reply.seq)
    changes: dict[str, Any] = {"total": total, "content_epoch": conversation.content_epoch + 1, "live": None}
    after = shell.resolver(replace(conversation, **changes))
    if restored:
        after = await renew_layout(uow, shell, after, compute=compute)
    await refresh_sizes(uow, after, **changes)
    data = {"message_id": str(reply.id), "seq": reply.seq, "in_reply_to": str(answered.id)}
    await uow.events.add(conversation.id, SUPERSEDED, data, shell.clock.now())
    return answered
