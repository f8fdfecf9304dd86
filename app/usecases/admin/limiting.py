"""Limits what a tenant and a key may ask for: counts requests, refuses those beyond a limit, and shows the limits.

Requests, running turns and open streams are counted over all processes by ``Counters``. Calls, tokens and money are
counted in the database. A caller that needs no key has no limits.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID

from app.core.model.errors import DependencyUnavailableError, RateLimitedError
from app.core.model.usage_limits import (
    TENANT_ONLY,
    LimitOwner,
    Limits,
    LimitUsage,
    SpendingPurpose,
    has_hourly_limit,
    hourly_usages,
    tightest,
)
from app.storage.unit_of_work import UnitOfWork
from app.usecases.ports import Counters, Place
from app.usecases.shared.caller import Principal, current_principal, current_request
from app.usecases.shared.shell import Shell

PURPOSES: Final[tuple[SpendingPurpose, ...]] = ("chat", "compaction", "verification", "embedding")
REQUESTS: Final = "requests_per_minute"
Kind = Literal["running_turns", "open_streams"]
PLACES: Final[tuple[Kind, ...]] = ("running_turns", "open_streams")
TRY_AGAIN: Final = 2.0
"""After how many seconds a client that found no free place is told to try again."""
WORDS: Final = {
    REQUESTS: "requests a minute",
    "running_turns": "replies that are being made at once",
    "open_streams": "streams that are open at once",
}


@dataclass(frozen=True, slots=True)
class _Bound:
    """The limits of one tenant or one key."""

    whose: LimitOwner
    id: UUID
    limits: Limits

    def name(self, limit: str) -> str:
        """The name under which the counters count this limit."""
        return f"{limit}:{self.whose}:{self.id}"


@dataclass(slots=True)
class _Followed:
    """The open streams, by key. Each stream is told when its key can no longer be used."""

    ended: defaultdict[UUID, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))
    looking: asyncio.Task[None] | None = None


class LimitService:
    """Enforces the limits on the requests of one process.

    ``tenant`` are the limits of every tenant, ``key`` those of each key that has none of its own.
    """

    def __init__(self, shell: Shell, counters: Counters, *, tenant: Limits, key: Limits) -> None:
        self._shell = shell
        self._counters = counters
        self._tenant = tenant
        self._key = key
        self._followed = _Followed()

    async def admit(self, principal: Principal) -> LimitUsage | None:
        """Count a request, and return how the tightest of its limits stands. Raises ``RateLimitedError``."""
        bounds = [bound for bound in self._bounds(principal) if bound.limits.requests_per_minute is not None]
        if not bounds:
            return None
        found = await self._request_standings(bounds, counts=True)
        if any(standing.wait for standing in found[1]) and not found[0]:
            raise _limit_reached_error(max(found[1], key=lambda one: one.wait))
        return tightest(found[1])

    async def take(self, kind: Kind) -> Place | None:
        """Take a place for a turn or a stream of the caller; ``None`` without limits. Raises ``RateLimitedError``."""
        principal = current_principal()
        bounds = [] if principal is None else self._bounds(principal)
        limited = [(bound, most) for bound in bounds if (most := getattr(bound.limits, kind)) is not None]
        if not limited:
            return None
        taken = await self._counters.take([(bound.name(kind), most) for bound, most in limited])
        if isinstance(taken, Place):
            return taken
        bound, most = limited[taken]
        raise _limit_reached_error(
            LimitUsage(name=kind, whose=bound.whose, limit=most, used=most, resets_in=TRY_AGAIN, wait=TRY_AGAIN)
        )

    async def hold(self, kind: Kind) -> None:
        """Take one place of this kind until the present request ends; a second call takes no further one.

        Raises ``RateLimitedError``.
        """
        present = current_request()
        if present is None or kind in present.held:
            return
        place = await self.take(kind)
        present.held.add(kind)
        present.at_end.append(lambda: self.release(place))

    def release(self, place: Place | None) -> None:
        """Give a place back, so that others can have it."""
        if place is not None:
            self._counters.release(place)

    async def check_chat(self, uow: UnitOfWork) -> None:
        """Check spending before a turn that costs money. Raises ``RateLimitedError`` at a limit for chats."""
        principal = current_principal()
        if principal is not None:
            over = [one for one in await self._spent(uow, principal, ("chat",)) if one.wait]
            if over:
                raise _limit_reached_error(max(over, key=lambda one: one.wait))

    async def standings(self, principal: Principal) -> list[LimitUsage]:
        """Every limit of the key and its tenant, with how much of it is used."""
        bounds = self._bounds(principal)
        counted = [bound for bound in bounds if bound.limits.requests_per_minute is not None]
        requests = (await self._request_standings(counted, counts=False))[1] if counted else []
        async with self._shell.uow(principal.tenant_id) as uow:
            spent = await self._spent(uow, principal, PURPOSES)
        return [*requests, *await self._place_standings(bounds), *spent]

    def stream_seconds(self, principal: Principal) -> float | None:
        """The longest time that a stream may last, in seconds."""
        lives = [bound.limits.stream_seconds for bound in self._bounds(principal)]
        return min((life for life in lives if life is not None), default=None)

    async def stream_over(self, principal: Principal) -> None:
        """Return when a stream of the key has to end: it is too old, or the key is revoked or expired."""
        key_id = principal.key_id
        if key_id is None:
            await asyncio.Event().wait()
            return
        ended = asyncio.Event()
        self._followed.ended[key_id].add(ended)
        if self._followed.looking is None or self._followed.looking.done():
            self._followed.looking = asyncio.create_task(
                self._watch_keys_of_streams(), name="keys-of-streams", context=Context()
            )
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.stream_seconds(principal)):
                    await ended.wait()
        finally:
            self._followed.ended[key_id].discard(ended)
            if not self._followed.ended[key_id]:
                del self._followed.ended[key_id]

    async def close(self) -> None:
        """Stop checking whether keys of open streams are still valid."""
        if self._followed.looking is not None:
            self._followed.looking.cancel()
            await asyncio.gather(self._followed.looking, return_exceptions=True)

    def _bounds(self, principal: Principal) -> list[_Bound]:
        if principal.key_id is None:
            return []
        own = self._key.overridden(dict(principal.limits)) if principal.limits else self._key
        return [_Bound("tenant", principal.tenant_id, self._tenant), _Bound("key", principal.key_id, own)]

    async def _request_standings(self, bounds: Sequence[_Bound], *, counts: bool) -> tuple[bool, list[LimitUsage]]:
        limits = [bound.limits.requests_per_minute or 0 for bound in bounds]
        names = [bound.name(REQUESTS) for bound in bounds]
        hit = await self._counters.hit(list(zip(names, limits, strict=True)), counts=counts)
        each = zip(bounds, limits, hit.counts, strict=True)
        return hit.is_allowed, [count.limit_usage(hit.now, limit, bound.whose) for bound, limit, count in each]

    async def _place_standings(self, bounds: Sequence[_Bound]) -> list[LimitUsage]:
        limited = [
            (kind, bound, most)
            for kind in PLACES
            for bound in bounds
            if (most := getattr(bound.limits, kind)) is not None
        ]
        taken = await self._counters.taken([bound.name(kind) for kind, bound, _ in limited]) if limited else []
        return [
            LimitUsage(
                name=kind,
                whose=bound.whose,
                limit=most,
                used=used,
                resets_in=TRY_AGAIN if used else 0.0,
                wait=TRY_AGAIN if used >= most else 0.0,
            )
            for (kind, bound, most), used in zip(limited, taken, strict=True)
        ]

    async def _spent(
        self, uow: UnitOfWork, principal: Principal, purposes: Iterable[SpendingPurpose]
    ) -> list[LimitUsage]:
        now = self._shell.clock.now()
        found: list[LimitUsage] = []
        for purpose in purposes:
            for bound in self._bounds(principal):
                is_out = bound.whose == "key" and f"{purpose}_usd_per_hour" in TENANT_ONLY
                if not is_out and has_hourly_limit(bound.limits, purpose):
                    spent = await uow.spending.by_minute(purpose, key_id=bound.id if bound.whose == "key" else None)
                    found += hourly_usages(purpose, spent, bound.limits, bound.whose, now)
        return found

    async def _watch_keys_of_streams(self) -> None:
        while self._followed.ended:
            keys = list(self._followed.ended)
            with suppress(DependencyUnavailableError):
                async with self._shell.uow(None) as uow:
                    usable = await uow.keys.usable(keys)
                for key_id in set(keys) - usable:
                    for ended in self._followed.ended.get(key_id, ()):
                        ended.set()
            await self._shell.clock.sleep(self._shell.timings.event_poll_seconds)


def _limit_reached_error(standing: LimitUsage) -> RateLimitedError:
    words = WORDS.get(standing.name) or standing.name.replace("_", " ")
    limit = f"{standing.limit:.15g}"  # there may be millions of tokens an hour
    return RateLimitedError(
        f"the limit of this {standing.whose} is reached ({words}: {limit}); try again in {math.ceil(standing.wait)} s",
        retry_after=standing.wait,
        extra={
            "reason": standing.name,
            "whose": standing.whose,
            "limit": standing.limit,
            "remaining": 0,
            "reset_seconds": math.ceil(max(standing.wait, standing.resets_in)),
        },
    )
