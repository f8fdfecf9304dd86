"""Fair shares of the database's connections: no tenant can take them all, and waiting callers are served in order.

One ``ConnectionShares`` belongs to one engine and its event loop. The system scope (``None``) never waits, since key
look-ups, heartbeats and the sweeper hold a connection only for one or two statements.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from app.core.model.errors import BusyError

WAIT_SECONDS: Final = 8.0
"""How long a caller waits. It is shorter than the pool's own limit, so that the tenant that exceeds its share gets the
error.
"""
BESIDE_OTHERS: Final = 3
"""The most connections of a tenant while another is active. Three keep the process busy; each more only lengthens what
every step of a small request waits for (``python -m bench.loop_tenants``).
"""
ACTIVE_SECONDS: Final = 2.0
"""For so long after its last transaction began a tenant counts as active."""
MAX_WAITING_REQUESTS: Final = 200
"""The most waiting requests of one tenant; more are refused at once."""
RETRY_AFTER: Final = 1.0


class ConnectionShares:
    """How many connections each tenant may hold at once.

    One tenant holds at most ``most``, and while another is active no further ones beyond ``few``. It waits at most
    ``seconds`` for its turn, and has at most ``waiting`` waiting callers.
    """

    def __init__(
        self,
        most: int,
        few: int = BESIDE_OTHERS,
        *,
        seconds: float = WAIT_SECONDS,
        waiting: int = MAX_WAITING_REQUESTS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._few = min(few, most)
        self._seconds = seconds
        self._most_waiting = waiting
        self._monotonic = monotonic
        self._tenants: dict[UUID, _Share] = {}
        """The tenants that hold connections; one that waits holds at least one."""
        self._came: list[tuple[UUID, float]] = []
        """The two tenants that came last, with the seconds of that."""

    async def take(self, tenant_id: UUID) -> None:
        """Wait for a connection of the tenant's share. Raises ``BusyError``."""
        now = self._monotonic()
        self._came = [(tenant_id, now), *(one for one in self._came if one[0] != tenant_id)][:2]
        share = self._tenants.setdefault(tenant_id, _Share())
        if not share.waiting and share.held < self._limit(tenant_id):
            share.held += 1
            return
        if len(share.waiting) >= self._most_waiting:
            raise _busy_error()
        place = asyncio.get_running_loop().create_future()
        share.waiting[place] = None
        if not share.is_watched:
            self._watch(tenant_id, share)
        try:
            async with asyncio.timeout(self._seconds):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():  # it was given at the same moment
                self.release(tenant_id)
            share.waiting.pop(place, None)
            if isinstance(error, TimeoutError):
                raise _busy_error() from None
            raise

    def release(self, tenant_id: UUID) -> None:
        """Let the next caller of the tenant have the connection, or several if the tenant is alone now."""
        share = self._tenants[tenant_id]
        share.held -= 1
        self._let_in(tenant_id, share)
        if not share.held:
            del self._tenants[tenant_id]

    def _watch(self, tenant_id: UUID, share: _Share) -> None:
        """Let in those that wait once the others are no longer active: nobody says so."""
        self._let_in(tenant_id, share)
        share.is_watched = bool(share.waiting)
        if share.is_watched:
            asyncio.get_running_loop().call_later(ACTIVE_SECONDS, self._watch, tenant_id, share)

    def _let_in(self, tenant_id: UUID, share: _Share) -> None:
        limit = self._limit(tenant_id)
        while share.waiting and share.held < limit:
            place = next(iter(share.waiting))
            del share.waiting[place]
            if not place.done():
                place.set_result(None)
                share.held += 1

    def _limit(self, tenant_id: UUID) -> int:
        return self._few if self._has_company(tenant_id) else self._most

    def _has_company(self, tenant_id: UUID) -> bool:
        since = self._monotonic() - ACTIVE_SECONDS
        others_hold = len(self._tenants) > (tenant_id in self._tenants)
        return others_hold or any(one != tenant_id and at > since for one, at in self._came)


@dataclass(slots=True)
class _Share:
    held: int = 0
    waiting: dict[asyncio.Future[None], None] = field(default_factory=dict)
    """Those that wait, in order."""
    is_watched: bool = False
    """Whether a timer runs while some wait."""


def _busy_error() -> BusyError:
    return BusyError(
        "too many requests of this tenant wait for the database: send fewer at once",
        retry_after=RETRY_AFTER,
        extra={"reason": "busy"},
    )
