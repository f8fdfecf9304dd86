"""Fair shares of the database's connections: no tenant can take them all, and waiting callers are served in order.

One ``ConnectionShares`` belongs to one engine and its event loop. The system scope (``None``) never waits, since key
look-ups, heartbeats and the sweeper hold a connection only for one or two statements.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from app.core.model.errors import BusyError

WAIT_SECONDS: Final = 8.0
"""How long a caller waits. It is shorter than the pool's own limit, so that the tenant that exceeds its share gets the
error.
"""
MAX_WAITING_REQUESTS: Final = 200
"""The most waiting requests of one tenant; more are refused at once."""
RETRY_AFTER: Final = 1.0


class ConnectionShares:
    """How many connections each tenant may hold at once.

    One tenant holds at most ``most``, waits at most ``seconds`` for its turn, and has at most ``waiting`` waiting
    callers.
    """

    def __init__(self, most: int, *, seconds: float = WAIT_SECONDS, waiting: int = MAX_WAITING_REQUESTS) -> None:
        self._most = most
        self._seconds = seconds
        self._most_waiting = waiting
        self._tenants: dict[UUID, _Share] = {}

    async def take(self, tenant_id: UUID) -> None:
        """Wait for a connection of the tenant's share. Raises ``BusyError``."""
        share = self._tenants.setdefault(tenant_id, _Share(self._most))
        if share.waiting >= self._most_waiting:
            raise _busy_error()
        if not share.free.locked():
            await share.free.acquire()  # does not wait
            share.held += 1
            return
        share.waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await share.free.acquire()
        except TimeoutError:
            raise _busy_error() from None
        else:
            share.held += 1
        finally:
            share.waiting -= 1
            self._forget_if_unused(tenant_id, share)

    def release(self, tenant_id: UUID) -> None:
        """Let the next caller of the tenant have the connection."""
        share = self._tenants[tenant_id]
        share.held -= 1
        share.free.release()
        self._forget_if_unused(tenant_id, share)

    def _forget_if_unused(self, tenant_id: UUID, share: _Share) -> None:
        if not share.held and not share.waiting:
            self._tenants.pop(tenant_id, None)


class _Share:
    """The share of one tenant; a semaphore serves waiting callers in order."""

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.held = 0
        self.waiting = 0


def _busy_error() -> BusyError:
    return BusyError(
        "too many requests of this tenant wait for the database: send fewer at once",
        retry_after=RETRY_AFTER,
        extra={"reason": "busy"},
    )
