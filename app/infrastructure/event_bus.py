"""The event bus on Redis pub/sub: it only wakes readers up. If Redis is away, only the log shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC
from functools import partial
from typing import Any, Final
from uuid import UUID

from app.circuit import Circuit
from app.core.model.records import Event
from app.core.model.timings import DEFAULT_TIMINGS
from app.infrastructure.attempts import attempt
from app.infrastructure.redis_client import CALL_SECONDS, redis_client
from app.infrastructure.wake_ups import WakeUpHub
from app.off_loop import in_slices
from app.usecases.ports import WakeUp

EVENTS_AT_ONCE: Final = 200
"""How many events are published in one round trip."""


def event_channel(conversation_id: UUID) -> str:
    """The name of the channel for a conversation's events, also for clients outside of this project."""
    return f"throughline:conversation:{conversation_id}"


def hint_channel(conversation_id: UUID) -> str:
    """The name of the channel for words between the service's own processes."""
    return f"throughline:hint:{conversation_id}"


def event_json(event: Event) -> dict[str, Any]:
    """The public form of an event; ``id`` is the event's number in decimal."""
    return {
        "id": str(event.number),
        "type": event.type,
        "conversation_id": str(event.conversation_id),
        "occurred_at": event.occurred_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "data": dict(event.data),
        "notification": None,
    }


def _channel_and_text(message: tuple[str, dict[str, Any]]) -> tuple[str, str]:
    return message[0], json.dumps(message[1], ensure_ascii=False, default=str)


class RedisEventBus:
    """``EventBus`` of one process and one event loop.

    After a failure Redis is not used for ``pause_seconds``, since readers look at the events table anyway.
    """

    def __init__(self, url: str, *, pause_seconds: float = DEFAULT_TIMINGS.broker_pause_seconds) -> None:
        self._redis = redis_client(url, retries=1, shares_connection=True)
        self._circuit = Circuit(pause_seconds)
        # After any error the hub begins again on a connection of its own, so the client must not retry.
        self._hub = WakeUpHub(redis_client(url, retries=0), lambda key: (event_channel(key), hint_channel(key)))

    async def publish(self, events: Sequence[Event]) -> None:
        """Publish in order, within a second; errors are logged and swallowed."""
        await self._send([(event_channel(event.conversation_id), event_json(event)) for event in events])

    async def hint(self, conversation_id: UUID, word: str) -> None:
        """Wake everybody who waits for this conversation, in any process. Clients never see the word."""
        await self._send([(hint_channel(conversation_id), {"word": word})])

    def subscribe(self, conversation_id: UUID) -> AbstractAsyncContextManager[WakeUp]:
        """Wake-ups by events and hints.

        There is also one when the subscription takes effect, so that no event is missed.
        """
        return self._hub.subscribe(conversation_id)

    async def ping(self) -> bool:
        """Whether Redis takes a write within a second, whatever happened before.

        A full server or a replica does not.
        """
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._redis.set("throughline:written", 1, ex=1)
        except Exception:  # noqa: BLE001 - any failure is the answer "no"
            return False
        self._circuit.succeeded()
        return True

    async def close(self) -> None:
        """End the subscriptions and close the connections."""
        await self._hub.close()
        await self._redis.aclose()

    async def _send(self, messages: Sequence[tuple[str, dict[str, Any]]]) -> None:
        if messages:
            send = partial(self._send_all, messages)
            await attempt(send, self._circuit, CALL_SECONDS, "event_bus.publish_failed", messages=len(messages))

    async def _send_all(self, messages: Sequence[tuple[str, dict[str, Any]]]) -> None:
        if len(messages) == 1:
            await self._redis.publish(*_channel_and_text(messages[0]))
            return
        texts = await in_slices(_channel_and_text, messages)
        async with self._redis.pipeline(transaction=False) as pipeline:
            for first in range(0, len(texts), EVENTS_AT_ONCE):
                for channel, text in texts[first : first + EVENTS_AT_ONCE]:
                    pipeline.publish(channel, text)
                await pipeline.execute()
