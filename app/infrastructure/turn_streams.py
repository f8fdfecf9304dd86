"""The events of running turns, in a Redis stream per turn.

The turn in the database is authoritative; a stream only brings it to followers sooner, and is removed soon after the
turn.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

import structlog
from redis.exceptions import ResponseError

from app.circuit import Circuit
from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.attempts import attempt
from app.infrastructure.redis_client import CALL_SECONDS, redis_client

KEPT_SECONDS: Final = 600
"""Redis removes a stream this long after its last entry, so that the stream of a dead process does not stay."""
ENDED_SECONDS: Final = 5
"""Redis removes a stream this long after its turn has ended: by then its followers have read it, and the reply is
stored."""
MAX_ENTRIES: Final = 12_000
"""Some ten minutes of a turn. A follower who comes later to a longer turn gets its reply at the end."""
_ENTRIES_PER_ANSWER: Final = 100  # entries of one stream in one answer
_BLOCK_SECONDS: Final = 0.1  # one call waits this long for entries; a new follower's stream is read by the next call
_FIELD: Final = b"events"
_ALREADY_ADDED: Final = "equal or smaller"

_StreamEntries = Sequence[tuple[bytes, Sequence[tuple[bytes, dict[bytes, bytes]]]]]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def stream_key(turn_id: UUID) -> str:
    """The Redis key of a turn's stream."""
    return f"throughline:turn:{turn_id}"


class Follower:
    """A follower of a turn: the entries to pass on, and the number of the last one."""

    def __init__(self) -> None:
        self.entries: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.last_number = 0

    def give(self, number: int, entry: bytes) -> None:
        """Pass on an entry that is newer than the last one."""
        if number > self.last_number:
            self.last_number = number
            self.entries.put_nowait((number, entry))


class RedisTurnStreams:
    """``TurnStreams`` in Redis, for one process and one event loop; one connection reads for all followers.

    After a failure nothing is sent to Redis for ``pause_seconds``.
    """

    def __init__(self, url: str, *, pause_seconds: float = DEFAULT_TIMINGS.broker_pause_seconds) -> None:
        self._redis = redis_client(url, retries=0)
        self._circuit = Circuit(pause_seconds)
        self._pause = pause_seconds
        self._followers: defaultdict[UUID, set[Follower]] = defaultdict(set)
        self._follower_came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        """Add an entry. Returns within a second whether Redis took it.

        If an entry with this number exists already, it stays unchanged.
        """
        key = stream_key(turn_id)

        async def write() -> bool:
            async with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.xadd(key, {_FIELD: entry}, id=f"{number}-0", maxlen=MAX_ENTRIES, approximate=True)
                pipeline.expire(key, ENDED_SECONDS if is_last else KEPT_SECONDS)
                _raise_refusal(await pipeline.execute(raise_on_error=False))
            return True

        taken = await attempt(write, self._circuit, CALL_SECONDS, "turn_streams.add_failed", turn_id=str(turn_id))
        return taken is True

    @asynccontextmanager
    async def follow(self, turn_id: UUID) -> AsyncIterator[asyncio.Queue[tuple[int, bytes]]]:
        """Yield a queue of numbers and entries, filled while the block runs; entering it never waits for Redis."""
        follower = Follower()
        self._followers[turn_id].add(follower)
        self._follower_came.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="turn-streams", context=Context())
        try:
            yield follower.entries
        finally:
            self._followers[turn_id].discard(follower)
            if not self._followers[turn_id]:
                del self._followers[turn_id]

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        """Remove the streams of these turns, within a second."""
        if turn_ids:
            delete = partial(self._redis.delete, *map(stream_key, turn_ids))
            await attempt(delete, self._circuit, CALL_SECONDS, "turn_streams.forget_failed", turns=len(turn_ids))

    async def close(self) -> None:
        """Stop reading, and close the connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CALL_SECONDS)
        await self._redis.aclose()

    async def _run(self) -> None:
        failures = 0
        while True:
            self._follower_came.clear()
            if not self._followers:
                await self._follower_came.wait()
            try:
                await self._read_new_entries()
                failures = 0
            except Exception as error:  # noqa: BLE001 - if reading ended, no follower would hear anything more
                failures += 1
                if failures.bit_count() == 1:  # a long absence must not fill the log
                    _log.warning("turn_streams.read_failed", failures=failures, error=type(error).__name__)
                await asyncio.sleep(self._pause)

    async def _read_new_entries(self) -> None:
        """Ask Redis once for new entries of all followed streams, and give them to their followers."""
        followers = {stream_key(turn_id).encode(): set(those) for turn_id, those in self._followers.items()}
        positions: dict[Any, Any] = {
            key: f"{min(follower.last_number for follower in those)}-0" for key, those in followers.items()
        }
        if not positions:
            return
        async with asyncio.timeout(CALL_SECONDS):
            answer = await self._redis.xread(positions, count=_ENTRIES_PER_ANSWER, block=round(_BLOCK_SECONDS * 1_000))
        for key, entries in cast("_StreamEntries", answer or ()):
            for id_, fields in entries:
                for follower in followers[key]:
                    follower.give(int(id_.partition(b"-")[0]), fields[_FIELD])


def _raise_refusal(answers: Sequence[object]) -> None:
    # If Redis's answer was lost, the entry may have been added; adding it again is not a failure.
    for answer in answers:
        if isinstance(answer, Exception) and not (isinstance(answer, ResponseError) and _ALREADY_ADDED in str(answer)):
            raise answer
