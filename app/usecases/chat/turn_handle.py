"""A running turn as its client sees it: events to follow, a result to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.model.conversation import Message
from app.core.model.errors import DomainError
from app.core.model.gauge import Gauge
from app.core.model.model_io import FinishReason, ToolCall
from app.core.model.records import Event
from app.core.model.segments import Segment
from app.usecases.shared.compaction_views import CompactionView


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResult:
    """A turn that has its reply."""

    message: Message
    reply: Message
    gauge: Gauge
    compaction: CompactionView | None = None
    warnings: tuple[str, ...] = ()
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were brought back for it."""
    segments: tuple[Segment, ...] = ()
    """The current segments in which they lie."""
    open_calls: tuple[ToolCall, ...] = ()
    """Calls of the client's tools, which wait for their results: ``reply`` makes them."""
    finish: FinishReason = "stop"
    """Why the last step ended; what the turn used is ``reply.usage``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEvent:
    """One thing that happens in a turn; ``id`` is the conversation's event number where there is one.

    ``tool.called`` tells of each call that is left open, just before the end, with ``id``, ``name`` and ``arguments``.
    The terminal types ``reply.completed``, ``reply.interrupted`` and ``reply.failed`` carry ``result`` or ``error``.
    """

    type: str
    id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    result: ChatResult | None = None
    error: DomainError | None = None

    @property
    def terminal(self) -> bool:
        """Nothing comes after it."""
        return self.result is not None or self.error is not None


def created_event(message: Message, number: int | None = None) -> ChatEvent:
    """The stream's first event: the stored user message."""
    data = {"message_id": str(message.id), "seq": message.seq, "role": message.role}
    return ChatEvent(type="message.created", id=number, data=data)


class TurnHandle:
    """Follows one turn; the turn itself runs in a task of its own and does not depend on anybody listening."""

    def __init__(self, on_abandoned: Callable[[], Awaitable[None]] | None = None) -> None:
        self._queue: asyncio.Queue[ChatEvent] = asyncio.Queue()
        self._done: asyncio.Future[ChatResult] = asyncio.get_running_loop().create_future()
        self._done.add_done_callback(lambda future: future.exception())  # looked at, even if nobody waits
        self._on_abandoned = on_abandoned

    def emit(self, event: ChatEvent) -> None:
        """Called by the turn."""
        self._queue.put_nowait(event)
        if self._done.done():
            return
        if event.result is not None:
            self._done.set_result(event.result)
        elif event.error is not None:
            self._done.set_exception(event.error)

    def emit_all(self, events: Sequence[Event]) -> None:
        """Pass on committed events of the conversation."""
        for event in events:
            self.emit(ChatEvent(type=event.type, id=event.number, data=event.data))

    def emit_calls(self, calls: Sequence[ToolCall]) -> None:
        """Tell of the calls that a turn leaves open, just before its end."""
        for call in calls:
            data = {"id": call.id, "name": call.name, "arguments": call.arguments}
            self.emit(ChatEvent(type="tool.called", data=data))

    async def events(self) -> AsyncIterator[ChatEvent]:
        """Everything that happens, the terminal event last."""
        while True:
            event = await self._queue.get()
            yield event
            if event.terminal:
                return

    async def result(self) -> ChatResult:
        """Wait for the end. Raises the ``DomainError`` that it failed with."""
        return await asyncio.shield(self._done)

    async def abandoned(self) -> None:
        """The client went away: what happens is the policy's ``on_disconnect``."""
        if self._on_abandoned is not None and not self._done.done():
            await self._on_abandoned()
