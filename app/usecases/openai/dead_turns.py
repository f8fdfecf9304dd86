"""Turns that died, and whether their messages still wait for a reply."""

from __future__ import annotations

from uuid import UUID

from app.core.model.errors import NotFoundError
from app.core.model.records import Turn
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.exchange import exchange_of


async def turn_with_its_answer(uow: UnitOfWork, turn_id: UUID) -> Turn | None:
    """The turn; ``None`` if it was deleted with its conversation, or its reply was erased."""
    try:
        turn = await uow.turns.get(turn_id)
        reply = await uow.messages.get(turn.conversation_id, turn.reply_id) if turn.reply_id else None
    except NotFoundError:
        return None
    return None if reply is not None and reply.status == "erased" else turn


def is_dead(turn: Turn) -> bool:
    """Whether the turn ended without a reply."""
    return turn.reply_id is None and turn.status != "running"


async def waits_after(uow: UnitOfWork, turn: Turn) -> bool:
    """Whether the turn died, none came after it, and its message still waits for a reply."""
    if not is_dead(turn) or await uow.turns.newest_ids(turn.conversation_id, limit=1) != [turn.id]:
        return False
    exchange = await exchange_of(uow, turn.conversation_id)
    waiting = {message.id for message in (exchange.question, *exchange.since) if message is not None}
    return exchange.awaits_reply and turn.message_id in waiting
