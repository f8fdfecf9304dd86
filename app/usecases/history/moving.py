"""Moves data that earlier versions stored within messages to where it is stored now: in steps, while the service runs.

Until it is moved, it is read from the message. Each message is moved in a transaction of its own under its
conversation's lock, so that a step can be interrupted at any moment and repeated.
"""

from __future__ import annotations

from typing import Final

from app.core.model.errors import NotFoundError
from app.storage.repositories.contents import InlineMessage, MessagePlace
from app.storage.unit_of_work import UnitOfWorkFactory

STEP: Final = 1_000
"""How many messages one step reads."""


async def move_step(
    begin: UnitOfWorkFactory, after: MessagePlace | None, *, limit: int = STEP
) -> tuple[int, MessagePlace | None]:
    """Read the next messages, and move the data of those that have any.

    Returns:
        How many messages had data, and the place that was reached; ``None`` at the end.
    """
    async with begin(None) as uow:
        found, reached = await uow.contents.with_inline_data(after, limit=limit)
    moved = [one for one in found if await _move(begin, one)]
    return len(moved), reached


async def _move(begin: UnitOfWorkFactory, one: InlineMessage) -> bool:
    async with begin(one.tenant_id) as uow:
        try:
            await uow.conversations.lock(one.conversation_id)
        except NotFoundError:  # it was deleted meanwhile
            return False
        moved = await uow.contents.move_inline_data(one.conversation_id, one.id)
        await uow.commit()
    return moved
