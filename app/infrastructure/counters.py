"""Counting over all processes, in Valkey or Redis; without it, each process counts for itself.

A count never fails its caller, and occasionally makes it wait, for at most a quarter of a second. Everything is also
counted within the process, so that a process that loses Valkey goes on with its own counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from redis.asyncio import Redis

from app.circuit import Circuit
from app.core.model.timings import DEFAULT_TIMINGS
from app.core.model.usage_limits import STEP_SECONDS, STEPS_PER_MINUTE, SlidingCount
from app.infrastructure.attempts import attempt
from app.infrastructure.redis_client import redis_client
from app.usecases.ports import Hit, Place

Result = TypeVar("Result")

PREFIX: Final = "throughline:limit:"
CALL_SECONDS: Final = 0.25
PLACE_SECONDS: Final = 60.0
"""How long the place of a process that was killed stays taken."""
MAX_NAMES: Final = 20_000
"""Above this many names, those whose counts have run out are forgotten."""

# The server's time is used, since the clocks of processes may disagree. Nothing is counted if one limit is reached. A
# count in the future was made before the server's clock was set back; it would hold until that time comes again.
_HIT_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local step, first = math.floor(now / ARGV[1]), math.floor(now / ARGV[1]) - ARGV[2]
local found, room = {}, 1
for i, key in ipairs(KEYS) do
  local row, kept, sum = redis.call('HGETALL', key), {}, 0
  for j = 1, #row, 2 do
    if tonumber(row[j]) < first or tonumber(row[j]) > step then
      redis.call('HDEL', key, row[j])
    else
      kept[#kept + 1], kept[#kept + 2], sum = row[j], row[j + 1], sum + row[j + 1]
    end
  end
  if sum + 1 > tonumber(ARGV[i + 3]) then room = 0 end
  found[i] = table.concat(kept, ' ')
end
if room == 1 and ARGV[3] == '1' then
  for _, key in ipairs(KEYS) do
    redis.call('HINCRBY', key, step, 1)
    redis.call('EXPIRE', key, ARGV[1] * (ARGV[2] + 2))
  end
end
return room .. ' ' .. tostring(now) .. '\\n' .. table.concat(found, '\\n')
"""
"""The answer is one text with a line for each key after the first, since nested answers take the client longest to
read.
"""
_TAKE_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZREMRANGEBYSCORE', key, now + ARGV[2] + 1, '+inf')
  if redis.call('ZCARD', key) >= tonumber(ARGV[i + 2]) then return i end
end
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ARGV[2], ARGV[1])
  redis.call('EXPIRE', key, math.ceil(2 * ARGV[2]))
end
return 0
"""


class LocalCounters:
    """``Counters`` of one process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[str, SlidingCount] = {}
        self._places: dict[UUID, Place] = {}
        self._taken: dict[str, int] = {}

    async def hit(self, limits: Sequence[tuple[str, int]], *, counts: bool = True) -> Hit:
        """Count one under each name, if there is room under all."""
        now = self._clock()
        counts_now = [self._counts.get(name, SlidingCount()).at(now) for name, _ in limits]
        has_room = all(count.used < limit for count, (_, limit) in zip(counts_now, limits, strict=True))
        if has_room and counts:
            counts_now = [count.plus(now) for count in counts_now]
            self._counts.update(zip((name for name, _ in limits), counts_now, strict=True))
            self._forget_empty_counts(now)
        return Hit(is_allowed=has_room, now=now, counts=tuple(counts_now))

    async def take(self, limits: Sequence[tuple[str, int]]) -> Place | int:
        """Take a place under each name, if one is free under all; else return the index of the first full one."""
        for number, (name, limit) in enumerate(limits):
            if self._taken.get(name, 0) >= limit:
                return number
        return self.take_unlimited(tuple(name for name, _ in limits))

    def take_unlimited(self, names: tuple[str, ...]) -> Place:
        """Take a place even if there is no room."""
        place = Place(id=uuid4(), names=names)
        self._places[place.id] = place
        for name in names:
            self._taken[name] = self._taken.get(name, 0) + 1
        return place

    def release(self, place: Place) -> None:
        """Give the place back. A second call changes nothing."""
        if self._places.pop(place.id, None) is None:
            return
        for name in place.names:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

    async def taken(self, names: Sequence[str]) -> list[int]:
        """How many places are taken under each name."""
        return [self._taken.get(name, 0) for name in names]

    async def close(self) -> None:
        """Close; there is nothing to release."""

    @property
    def places(self) -> Sequence[Place]:
        """The places that are taken in this process."""
        return list(self._places.values())

    def _forget_empty_counts(self, now: float) -> None:
        if len(self._counts) > MAX_NAMES:
            self._counts = {name: count for name, count in self._counts.items() if count.at(now).steps}


class RedisCounters:
    """``Counters`` over all processes.

    After a failure Redis is not asked for ``pause_seconds``; a caller waits for it at most ``call_seconds``.
    """

    def __init__(
        self,
        url: str,
        *,
        pause_seconds: float = DEFAULT_TIMINGS.broker_pause_seconds,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._redis: Redis = redis_client(url, retries=1, shares_connection=True)
        self._circuit = Circuit(pause_seconds)
        self._pause = pause_seconds
        self._local = LocalCounters()
        self._call_seconds = call_seconds
        self._hit = self._redis.register_script(_HIT_SCRIPT)
        self._take = self._redis.register_script(_TAKE_SCRIPT)
        self._to_release: list[tuple[float, Place]] = []
        """Places that the server still has to release, each with the moment when it was given back."""
        self._renewing: asyncio.Task[None] | None = None
        self._releasing: asyncio.Task[None] | None = None

    async def hit(self, limits: Sequence[tuple[str, int]], *, counts: bool = True) -> Hit:
        """Count one under each name, if there is room under all; ``counts=False`` only looks."""
        local = await self._local.hit(limits, counts=counts)
        keys, most = [PREFIX + name for name, _ in limits], [limit for _, limit in limits]
        answer = await self._call(
            lambda: self._hit(keys=keys, args=[STEP_SECONDS, STEPS_PER_MINUTE, int(counts), *most])
        )
        if answer is None:
            return local
        first, *rows = answer.decode().split("\n")
        (has_room, now), stored_counts = map(float, first.split()), [_sliding_count(row.split()) for row in rows]
        is_counted = has_room and counts
        return Hit(
            is_allowed=bool(has_room),
            now=now,
            counts=tuple(count.plus(now) if is_counted else count for count in stored_counts),
        )

    async def take(self, limits: Sequence[tuple[str, int]]) -> Place | int:
        """Take a place under each name, if one is free under all; else return the index of the first full one."""
        place = self._local.take_unlimited(tuple(name for name, _ in limits))
        keys, most = [PREFIX + name for name, _ in limits], [limit for _, limit in limits]
        try:
            full = await self._call(lambda: self._take(keys=keys, args=[str(place.id), PLACE_SECONDS, *most]))
        except BaseException:
            self.release(place)
            raise
        if full is None:  # the places of this process only
            taken = await self._local.taken(place.names)
            full = next((i for i, (one, limit) in enumerate(zip(taken, most, strict=True), 1) if one > limit), 0)
        if full:
            self._local.release(place)
            return int(full) - 1
        self._start_renewing()
        return place

    def release(self, place: Place) -> None:
        """Give the place back soon; if the server is away, once it is back."""
        self._local.release(place)
        self._to_release.append((time.monotonic(), place))
        if self._releasing is None or self._releasing.done():
            self._releasing = asyncio.create_task(self._release_until_done(), name="places-let-go", context=Context())

    async def taken(self, names: Sequence[str]) -> list[int]:
        """How many places are taken under each name."""

        async def ask() -> list[int]:
            now = (await self._redis.time())[0]
            async with self._redis.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.zcount(PREFIX + name, now, now + PLACE_SECONDS + 1)
                return [int(number) for number in await pipeline.execute()]

        return await self._call(ask) or await self._local.taken(names)

    async def close(self) -> None:
        """Give back every place, and close the connections."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        for place in self._local.places:
            self.release(place)
        if self._releasing is not None:
            self._releasing.cancel()
            await asyncio.gather(self._releasing, return_exceptions=True)
        await self._release_on_server()
        await self._redis.aclose()

    async def _call(self, ask: Callable[[], Awaitable[Result]]) -> Result | None:
        """The server's answer; ``None`` if it is away."""
        return await attempt(ask, self._circuit, self._call_seconds, "counters.failed")

    async def _release_until_done(self) -> None:
        while self._to_release:
            if not await self._release_on_server():
                await asyncio.sleep(self._pause)

    async def _release_on_server(self) -> bool:
        """Have the server release places; places that it has already released by itself are skipped."""
        last = time.monotonic() - PLACE_SECONDS
        self._to_release = [one for one in self._to_release if one[0] > last]
        gone = tuple(self._to_release)
        if not gone:
            return True

        async def ask() -> list[Any]:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for _, place in gone:
                    for name in place.names:
                        pipeline.zrem(PREFIX + name, str(place.id))
                return await pipeline.execute()

        answer = await self._call(ask)
        if answer is not None:
            self._to_release = self._to_release[len(gone) :]
        return answer is not None

    def _start_renewing(self) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(), name="places-kept", context=Context())

    async def _renew(self) -> None:
        """While there are places, prolong them; a server that lost its data gets them again."""
        while True:
            await asyncio.sleep(PLACE_SECONDS / 3)
            places = self._local.places
            if not places:
                return

            async def ask(places: Sequence[Place] = places) -> list[Any]:
                until = float((await self._redis.time())[0]) + PLACE_SECONDS
                async with self._redis.pipeline(transaction=False) as pipeline:
                    for place in places:
                        for name in place.names:
                            pipeline.zadd(PREFIX + name, {str(place.id): until})
                            pipeline.expire(PREFIX + name, int(2 * PLACE_SECONDS) + 1)
                    return await pipeline.execute()

            await self._call(ask)


def _sliding_count(row: Sequence[str]) -> SlidingCount:
    return SlidingCount(tuple(sorted((int(step), int(count)) for step, count in zip(row[::2], row[1::2], strict=True))))
