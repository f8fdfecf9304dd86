"""Fair shares of the database's connections: no tenant can take them all, and waiting callers are served in order.

One ``ConnectionShares`` belongs to one engine and its event loop. The system scope (``None``) never waits, since key
look-ups, heartbeats and the sweeper hold a connection only for one or two statements.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from app.core.model.errors import BusyError
from app.tenant_shares import TenantShares

WAIT_SECONDS: Final = 8.0
"""How long a caller waits. It is shorter than the pool's own limit, so that the tenant that exceeds its share gets the
error.
"""
BESIDE_OTHERS: Final = 3
"""The most connections that one tenant may hold while others are active."""
MAX_WAITING_REQUESTS: Final = 200
"""The most waiting requests of one tenant; more are refused at once."""
RETRY_AFTER: Final = 1.0


class ConnectionShares(TenantShares):
    """How many connections each tenant may hold at once.

    One tenant holds at most ``most``, and at most ``few`` while others are active. It waits at most ``seconds`` for its
    turn, and has at most ``waiting`` waiting callers.
    """

    def __init__(
        self, most: int, few: int = BESIDE_OTHERS, *, seconds: float = WAIT_SECONDS, waiting: int = MAX_WAITING_REQUESTS
    ) -> None:
        super().__init__(most, min(few, most))
        self._seconds = seconds
        self._most_waiting = waiting

    async def take(self, tenant_id: UUID) -> None:
        """Wait for a connection of the tenant's share. Raises ``BusyError``."""
        if self.waiting(tenant_id) >= self._most_waiting:
            raise _busy_error()
        try:
            async with asyncio.timeout(self._seconds):
                await super().take(tenant_id)
        except TimeoutError:
            raise _busy_error() from None


def _busy_error() -> BusyError:
    return BusyError(
        "too many requests of this tenant wait for the database: send fewer at once",
        retry_after=RETRY_AFTER,
        extra={"reason": "busy"},
    )
