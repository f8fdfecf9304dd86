"""The event of a turn that ended without a reply."""

from __future__ import annotations

from datetime import datetime

from app.core.model.records import Event, Turn
from app.storage.unit_of_work import UnitOfWork


async def add_failed_event(uow: UnitOfWork, turn: Turn, at: datetime) -> Event:
    """Record ``reply.failed``, in the transaction that ended the turn's row."""
    data = {"message_id": str(turn.message_id), "turn_id": str(turn.id), "code": turn.error_code or "crashed"}
    return await uow.events.add(turn.conversation_id, "reply.failed", data, at)
