"""One Redis pub/sub connection per process, shared by all that wait for conversations."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from app.usecases.shared.pauses import pause_after

# A connection that is silent for this long is sent a ping; if it stays silent as long again, it is dropped.
_QUIET_SECONDS = 5.0
_CONNECT_SECONDS = 2.0
# A cancellation that a library swallowed is repeated.
_CANCEL_SECONDS = 0.5
_BACKOFF_SECONDS = (0.1, 5.0)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Signal:
    """A ``WakeUp``: one bit, however much was published, so that a slow reader needs no memory."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the waiter, now or at its next ``wait``."""
        self._event.set()

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the caller's own poll interval
        """Return true if something was published since the last call, false after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class WakeUpHub:
    """Keeps the wanted channels subscribed, across reconnections, in a task that the first subscriber starts.

    ``redis`` is a client of its own, without retries; ``channels`` returns the channels of a conversation.
    """

    def __init__(self, redis: Redis, channels: Callable[[UUID], Sequence[str]]) -> None:
        self._redis = redis
        self._channels = channels
        self._signals: defaultdict[bytes, set[Signal]] = defaultdict(set)
        self._subscribed: set[bytes] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    @asynccontextmanager
    async def subscribe(self, conversation_id: UUID) -> AsyncIterator[Signal]:
        """Wake-ups until the end of the block; never waits for Redis.

        The signal is also set when the subscription takes effect, and again after every reconnection: a reader that
        reads the database on each wake-up misses nothing that was published before.
        """
        signal = Signal()
        names = [name.encode() for name in self._channels(conversation_id)]
        for name in names:
            self._signals[name].add(signal)
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="wake-ups", context=Context())
        try:
            yield signal
        finally:
            for name in names:
                self._drop(name, signal)
            self._changed.set()

    async def close(self) -> None:
        """Stop listening; waiters time out from now on."""
        while self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CANCEL_SECONDS)
        await self._redis.aclose()

    def _drop(self, name: bytes, signal: Signal) -> None:
        self._signals[name].discard(signal)
        if not self._signals[name]:
            del self._signals[name]

    async def _run(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await self._read_and_subscribe(pubsub)
            except Exception as error:  # noqa: BLE001 - a listener that dies of anything would leave all deaf
                self._note_failure(error)
            await asyncio.sleep(self._backoff_seconds())

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        # Only the first, second, fourth, eighth … failure in a row is logged, so that a long absence does not fill the
        # log.
        if self._failures.bit_count() == 1:
            _log.warning("event_bus.listen_failed", failures=self._failures, error=_kind_of_error(error))

    def _backoff_seconds(self) -> float:
        first, last = _BACKOFF_SECONDS
        return pause_after(self._failures + 1, first, last) * random.uniform(0.5, 1.0)

    async def _read_and_subscribe(self, pubsub: PubSub) -> None:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await pubsub.connect()  # type: ignore[no-untyped-call]
        self._subscribed.clear()
        self._changed.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read_hints(pubsub))
            group.create_task(self._keep_subscribed(pubsub))

    async def _read_hints(self, pubsub: PubSub) -> None:
        asked = False
        while not _is_cancelled():
            message: dict[str, Any] | None = await pubsub.get_message(timeout=_QUIET_SECONDS)
            if message is not None:
                asked = False
                self._failures = 0
                self._wake(message)
            elif asked:
                raise TimeoutError
            else:
                asked = True
                await pubsub.ping()

    def _wake(self, message: dict[str, Any]) -> None:
        if message["type"] in {"message", "subscribe"}:
            for signal in self._signals.get(message["channel"], ()):
                signal.set()

    async def _keep_subscribed(self, pubsub: PubSub) -> None:
        while not _is_cancelled():
            await self._changed.wait()
            self._changed.clear()
            wanted = set(self._signals)
            if missing := wanted - self._subscribed:
                await pubsub.subscribe(*missing)
            if surplus := self._subscribed - wanted:
                await pubsub.unsubscribe(*surplus)
            self._subscribed = wanted


def _is_cancelled() -> bool:
    # ``wait_for`` of Python 3.11, under the client's writes, may swallow the cancellation.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _kind_of_error(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__
