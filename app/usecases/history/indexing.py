"""Rebuilds the word index of stored messages as new messages get it today: in steps, while the service runs.

Until then a message is found by the stems with which it was stored. Each message is read again under a lock before it
is changed, so that an erased one stays without keys. A step can be interrupted at any moment and repeated.
"""

from __future__ import annotations

from typing import Final

from app.storage.repositories.contents import MessagePlace
from app.storage.unit_of_work import UnitOfWorkFactory

STEP: Final = 200
"""How many messages one step reads."""


async def index_step(
    begin: UnitOfWorkFactory, after: MessagePlace | None, *, limit: int = STEP
) -> tuple[int, MessagePlace | None]:
    """Read the next messages, and rebuild the keys of those that would get other keys today.

    Returns:
        How many messages got new keys, and the place that was reached; ``None`` at the end.
    """
    async with begin(None) as uow:
        found, reached = await uow.term_keys.outdated(after, limit=limit)
    renewed = 0
    for tenant_id, message_id in found:
        async with begin(tenant_id) as uow:
            renewed += await uow.term_keys.renew(message_id)
            await uow.commit()
    return renewed, reached
