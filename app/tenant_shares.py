"""Shares places among tenants, so that none of them can be kept waiting by another's many requests.

A place is a right to use something that all requests of a process need: a connection of the database, or a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

ACTIVE_SECONDS: Final = 2.0
"""For so long after its last request a tenant counts as one that others have to leave room for."""


class TenantShares:
    """How many places each tenant may hold at once; its waiting callers are served in order.

    A tenant that is alone may hold ``most`` places. While another one is active too, it may hold only ``few``: every
    step of a small request waits for what the process does meanwhile for others, so what one tenant has under way
    has to be short.
    """

    def __init__(self, most: int, few: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._few = few
        self._monotonic = monotonic
        self._tenants: dict[UUID, _Share] = {}
        """The tenants that hold places; a tenant that waits holds at least one."""
        self._came: list[tuple[UUID, float]] = []
        """The two tenants that came last, with the seconds of that."""

    def waiting(self, tenant_id: UUID) -> int:
        """How many callers of the tenant wait."""
        share = self._tenants.get(tenant_id)
        return len(share.waiting) if share else 0

    async def take(self, tenant_id: UUID) -> None:
        """Wait for a place of the tenant's share."""
        now = self._monotonic()
        self._came = [(tenant_id, now), *(one for one in self._came if one[0] != tenant_id)][:2]
        share = self._tenants.setdefault(tenant_id, _Share())
        if not share.waiting and share.held < self._limit(tenant_id):
            share.held += 1
            return
        place = asyncio.get_running_loop().create_future()
        share.waiting[place] = None
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was given at the same moment
                self.release(tenant_id)
            share.waiting.pop(place, None)
            raise

    def release(self, tenant_id: UUID) -> None:
        """Let the next caller of the tenant have the place, or several if the tenant is alone now."""
        share = self._tenants[tenant_id]
        share.held -= 1
        limit = self._limit(tenant_id)
        while share.waiting and share.held < limit:
            place = next(iter(share.waiting))
            del share.waiting[place]
            if not place.done():
                place.set_result(None)
                share.held += 1
        if not share.held:
            del self._tenants[tenant_id]

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
