"""Makes the word index of stored messages again, as new messages get it today: in steps, while the service runs.

Until its turn comes, a message is found by the stems that it was stored with. Each one is read again under its lock
before it is changed, so that an erased one stays without keys, and a step can end at any moment and be begun again.
"""

from __future__ import annotations

from typing import Final

from app.storage.repositories.contents import Place
from app.storage.unit_of_work import UnitOfWorkFactory

STEP: Final = 200
"""Messages that are read in one step."""


async def index_step(begin: UnitOfWorkFactory, after: Place | None, *, limit: int = STEP) -> tuple[int, Place | None]:
    """Look at the next messages, and make the keys again of those that would get others today.

    Returns:
        How many were made again, and the place that was reached; ``None`` at the end.
    """
    async with begin(None) as uow:
        found, reached = await uow.term_keys.outdated(after, limit=limit)
    renewed = 0
    for tenant_id, message_id in found:
        async with begin(tenant_id) as uow:
            renewed += await uow.term_keys.renew(message_id)
            await uow.commit()
    return renewed, reached
