"""The spend guard: how many model calls that cost money compactions, L1s and verifications may make in an hour."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from app.core.model.errors import RateLimitedError
from app.core.model.usage_limits import Limits, SpendingPurpose, has_hourly_limit, hourly_usages
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.resolve import Resolved

WINDOW: Final = timedelta(hours=1)
STEP: Final = timedelta(minutes=1)
"""The precision of the time at which calls are possible again."""
RESERVE_DIVISOR: Final = 2
"""Work that can wait may spend each limit divided by this: one half."""
SPEND_LIMIT: Final = "spend_limit"
"""The reason of a compaction that was not begun, or not continued, because of a limit."""

Count = Callable[[timedelta], Awaitable[tuple[int, int]]]
"""Counts the metered calls in the given time up to now: those of the conversation, and those of the whole tenant."""


class SpendGuard:
    """Counts in the database, so that every process of the service guards the same limits.

    ``tenant_calls_per_hour`` counts all conversations of a tenant; the limit of one conversation is in its policy.
    """

    def __init__(self, tenant_calls_per_hour: int, limits: Limits | None = None) -> None:
        self._tenant_calls = tenant_calls_per_hour
        self._limits = limits or Limits()

    async def time_to_wait(
        self,
        uow: UnitOfWork,
        resolved: Resolved,
        *,
        metered: bool,
        keeps_reserve: bool = False,
        purpose: SpendingPurpose = "compaction",
    ) -> timedelta | None:
        """The whole minutes until a model may be called; ``None`` = now, always for a model that costs nothing.

        A chunk that has begun is finished, so a limit may be exceeded by the calls of one chunk. With
        ``keeps_reserve`` only half of each limit counts: the rest is kept for compactions, which cannot wait.
        """
        if not metered:
            return None
        part = RESERVE_DIVISOR if keeps_reserve else 1
        limits = resolved.policy.calls_per_hour / part, self._tenant_calls / part
        calls = await _least_wait(lambda span: uow.spending.metered_calls(span, resolved.conversation.id), limits)
        spent = await self.time_to_wait_for(uow, purpose, keeps_reserve=keeps_reserve)
        waits = [wait for wait in (calls, spent) if wait is not None]
        return max(waits, default=None)

    async def time_to_wait_for(
        self, uow: UnitOfWork, purpose: SpendingPurpose, *, keeps_reserve: bool = False
    ) -> timedelta | None:
        """The time until the tenant may spend on this purpose, whatever its conversations spend; ``None`` = now."""
        if not has_hourly_limit(self._limits, purpose):
            return None
        part = RESERVE_DIVISOR if keeps_reserve else 1
        spent, now = await uow.spending.by_minute(purpose), datetime.now(UTC)
        seconds = max(one.wait for one in hourly_usages(purpose, spent, self._limits, "tenant", now, part=part))
        return STEP * math.ceil(seconds / STEP.total_seconds()) if seconds else None

    async def allows_cache(self, uow: UnitOfWork) -> bool:
        """Whether a provider's cache may be paid for now: only while less than half of the limit for chats is spent."""
        return await self.time_to_wait_for(uow, "chat", keeps_reserve=True) is None

    async def check(self, uow: UnitOfWork, resolved: Resolved, *, metered: bool) -> None:
        """Refuse a manual call that may not spend now.

        Raises:
            RateLimitedError: The limit is reached; the error says when calls are possible again.
        """
        wait = await self.time_to_wait(uow, resolved, metered=metered)
        if wait is not None:
            raise limited(wait)


def limited(wait: timedelta) -> RateLimitedError:
    """The error of a manual call that has to wait."""
    return RateLimitedError(
        f"the model calls for compactions are used up for this hour; the next is possible in"
        f" {math.ceil(wait / STEP)} min; nothing was changed",
        retry_after=wait.total_seconds(),
        extra={"reason": SPEND_LIMIT},
    )


async def _least_wait(count: Count, limits: tuple[float, float]) -> timedelta | None:
    """The shortest time after which both counts are below their limits if nothing more is spent."""

    async def has_room(span: timedelta) -> bool:
        own, of_tenant = await count(span)
        return own < limits[0] and of_tenant < limits[1]

    if await has_room(WINDOW):
        return None
    low, high = 0, WINDOW // STEP
    while high - low > 1:
        middle = (low + high) // 2
        if await has_room(WINDOW - middle * STEP):
            high = middle
        else:
            low = middle
    return high * STEP
