"""Events of running turns, as streams in Redis (or within one process): never the truth, and soon gone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from uuid import UUID

import structlog
from redis.exceptions import ResponseError

from app.circuit import Circuit
from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.redis_client import CALL_SECONDS, redis_client

KEPT_SECONDS: Final = 600
"""A stream whose process died goes after so long."""
ENDED_SECONDS: Final = 5
"""That of a turn that ended: followers have read it, and the reply is stored."""
MOST_ENTRIES: Final = 12_000
"""Ten minutes of them; of a longer turn those who come late get the reply at its end."""
_AT_ONCE: Final = 100  # entries of one stream in one answer
_BLOCK_SECONDS: Final = 0.1  # so late at most a new follower's stream is read
_FIELD: Final = b"events"
_THERE: Final = "equal or smaller"

_Found = Sequence[tuple[bytes, Sequence[tuple[bytes, dict[bytes, bytes]]]]]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def stream_key(turn_id: UUID) -> str:
    """Name the stream of a turn."""
    return f"throughline:turn:{turn_id}"


class _Reader:
    """One follower: what was read for it, and up to which number."""

    def __init__(self) -> None:
        self.entries: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.through = 0

    def give(self, number: int, entry: bytes) -> None:
        if number > self.through:
            self.through = number
            self.entries.put_nowait((number, entry))


class RedisTurnStreams:
    """``TurnStreams`` of one process and one event loop; one connection reads for all who follow.

    After a failure Redis is left alone for ``pause_seconds``.
    """

    def __init__(self, url: str, *, pause_seconds: float = DEFAULT_TIMINGS.broker_pause_seconds) -> None:
        self._redis = redis_client(url, retries=0)
        self._circuit = Circuit(pause_seconds)
        self._pause = pause_seconds
        self._readers: defaultdict[UUID, set[_Reader]] = defaultdict(set)
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        """Add an entry in one round trip of at most a second; one that is there already stays as it is."""
        if not self._circuit.allows():
            return False
        key = stream_key(turn_id)
        try:
            async with asyncio.timeout(CALL_SECONDS), self._redis.pipeline(transaction=False) as pipeline:
                pipeline.xadd(key, {_FIELD: entry}, id=f"{number}-0", maxlen=MOST_ENTRIES, approximate=True)
                pipeline.expire(key, ENDED_SECONDS if is_last else KEPT_SECONDS)
                _raise_refusal(await pipeline.execute(raise_on_error=False))
        except Exception as error:  # noqa: BLE001 - a turn goes on whatever becomes of its stream
            self._circuit.failed()
            _log.warning("turn_streams.add_failed", turn_id=str(turn_id), error=type(error).__name__)
            return False
        self._circuit.succeeded()
        return True

    @asynccontextmanager
    async def follow(self, turn_id: UUID) -> AsyncIterator[asyncio.Queue[tuple[int, bytes]]]:
        """The entries within the block; never waits for Redis."""
        reader = _Reader()
        self._readers[turn_id].add(reader)
        self._wanted.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="turn-streams")
        try:
            yield reader.entries
        finally:
            self._readers[turn_id].discard(reader)
            if not self._readers[turn_id]:
                del self._readers[turn_id]

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        """Remove streams, in one call of at most a second."""
        if not turn_ids or not self._circuit.allows():
            return
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._redis.delete(*map(stream_key, turn_ids))
        except Exception as error:  # noqa: BLE001 - they go by themselves in some minutes
            self._circuit.failed()
            _log.warning("turn_streams.forget_failed", turns=len(turn_ids), error=type(error).__name__)
        else:
            self._circuit.succeeded()

    async def close(self) -> None:
        """Stop reading, and let go of the connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CALL_SECONDS)
        await self._redis.aclose()

    async def _run(self) -> None:
        failures = 0
        while True:
            self._wanted.clear()
            if not self._readers:
                await self._wanted.wait()
            try:
                await self._read()
                failures = 0
            except Exception as error:  # noqa: BLE001 - a reader that dies of anything would leave all deaf
                failures += 1
                if failures.bit_count() == 1:  # a long absence fills no log
                    _log.warning("turn_streams.read_failed", failures=failures, error=type(error).__name__)
                await asyncio.sleep(self._pause)

    async def _read(self) -> None:
        """One answer of Redis: what is new in all the streams that are followed."""
        readers = {stream_key(turn_id).encode(): set(those) for turn_id, those in self._readers.items()}
        places: dict[Any, Any] = {key: f"{min(reader.through for reader in those)}-0" for key, those in readers.items()}
        if not places:
            return
        async with asyncio.timeout(CALL_SECONDS):
            found = await self._redis.xread(places, count=_AT_ONCE, block=round(_BLOCK_SECONDS * 1_000))
        for key, entries in cast("_Found", found or ()):
            for id_, fields in entries:
                for reader in readers[key]:
                    reader.give(int(id_.partition(b"-")[0]), fields[_FIELD])


class LocalTurnStreams:
    """``TurnStreams`` for followers within one process."""

    def __init__(self) -> None:
        self._entries: defaultdict[UUID, list[tuple[int, bytes]]] = defaultdict(list)
        self._readers: defaultdict[UUID, set[_Reader]] = defaultdict(set)

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        """Add an entry; the last one ends the stream after some seconds."""
        self._entries[turn_id].append((number, entry))
        for reader in self._readers[turn_id]:
            reader.give(number, entry)
        if is_last:
            asyncio.get_running_loop().call_later(ENDED_SECONDS, self._drop, turn_id)
        return True

    @asynccontextmanager
    async def follow(self, turn_id: UUID) -> AsyncIterator[asyncio.Queue[tuple[int, bytes]]]:
        """The entries within the block."""
        reader = _Reader()
        for number, entry in self._entries[turn_id]:
            reader.give(number, entry)
        self._readers[turn_id].add(reader)
        try:
            yield reader.entries
        finally:
            self._readers[turn_id].discard(reader)

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        """Remove everything of these turns."""
        for turn_id in turn_ids:
            self._drop(turn_id)

    async def close(self) -> None:
        """Close: there is nothing to let go of."""

    def _drop(self, turn_id: UUID) -> None:
        self._entries.pop(turn_id, None)
        if not self._readers[turn_id]:
            del self._readers[turn_id]


def _raise_refusal(answers: Sequence[object]) -> None:
    # An entry with this number is there already where an earlier answer was lost: that is no refusal.
    for answer in answers:
        if isinstance(answer, Exception) and not (isinstance(answer, ResponseError) and _THERE in str(answer)):
            raise answer
