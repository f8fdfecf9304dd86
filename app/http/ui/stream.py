"""A turn as a stream for a frontend of the AI SDK, made from its events and from what is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fastapi import Request
from pydantic_core import to_json

from app.bootstrap import Container
from app.core.model.conversation import Message
from app.core.model.errors import DependencyUnavailableError, DomainError, NotFoundError
from app.core.model.notifications import APPLIED, STARTED
from app.core.model.records import ERASURE
from app.http.chat import STOPPING_GRACE
from app.http.errors import problem_of, request_id_of, wish_of
from app.http.middleware import log_failure
from app.http.notifications import Notifier
from app.http.refusals import unexpected
from app.http.shutdown import Stopping
from app.http.sse import EventStream, Steps
from app.http.ui.chunks import DONE, HEADERS, Json, sse
from app.http.ui.parts import answer_parts, compaction_part
from app.http.ui.writing import Writing
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.compaction.claiming import numbers_of
from app.usecases.compaction.ending import EVENTS
from app.usecases.ui.entries import ANSWER_ROLES
from app.usecases.ui.threads import Beginning, Passages

COMPACTIONS: Final = frozenset({STARTED, *EVENTS.values()})
INTERRUPTED: Final = "reply.interrupted"
NOTHING: Final = Passages()
AWAY: Final = (DependencyUnavailableError, NotFoundError)
"""Errors after which a stream goes on: the database is away for a moment, or something was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStream:
    """Streams turns of one conversation to one client."""

    services: Container
    tenant: UUID
    conversation: UUID
    request: Request

    def response(self, turn: TurnHandle, stopping: Stopping, *, tells_before: bool) -> EventStream[bytes]:
        """The stream.

        ``tells_before``: the client does not yet have the message that the turn continues, so it is sent too.
        """
        stream: EventStream[bytes] = EventStream(
            Steps(
                self._frames(turn, tells_before=tells_before),
                self.services.settings.timings.stream_heartbeat_seconds,
            ),
            bytes,
            stopping=stopping,
            grace=STOPPING_GRACE,
            on_disconnect=turn.note_client_left,
        )
        for name, value in HEADERS.items():
            stream.headers[name] = value
        return stream

    async def _frames(self, turn: TurnHandle, *, tells_before: bool) -> AsyncIterator[bytes]:
        async with aclosing(self._chunks(turn, tells_before=tells_before)) as chunks:
            async for chunk in chunks:
                yield sse(chunk)
        yield DONE

    async def _chunks(self, turn: TurnHandle, *, tells_before: bool) -> AsyncGenerator[Json, None]:
        """The chunks of a turn; the last one always says how the turn ended."""
        writing: Writing | None = None
        try:
            async with aclosing(turn.events()) as events:
                async for event in events:
                    if writing is None:
                        beginning = await self._beginning(event)
                        writing = Writing(id=str(beginning.id), own_tools=self._own_tools)
                        for chunk in await self._first_chunks(writing, beginning.before if tells_before else ()):
                            yield chunk
                    for chunk in await self._event_chunks(writing, event):
                        yield chunk
        except Exception as error:  # noqa: BLE001 - a stream that has begun can only say it this way
            log_failure(error)
            for chunk in self._problem_chunks(writing, error if isinstance(error, DomainError) else unexpected()):
                yield chunk

    async def _beginning(self, event: ChatEvent) -> Beginning:
        turn_id, reply_id = event.data.get("turn_id"), event.data.get("reply_id")
        if turn_id is not None:
            with suppress(*AWAY):
                return await self.services.ui_threads.beginning(self.tenant, self.conversation, UUID(turn_id))
        # If the database is away, the answer is sent from the beginning of the turn.
        return Beginning(id=UUID(reply_id) if reply_id else self.conversation, before=())

    async def _first_chunks(self, writing: Writing, before: Sequence[Message]) -> list[Json]:
        return [*writing.begin(answer_parts(before, self._own_tools)), *await self._gauge_chunks(writing)]

    async def _event_chunks(self, writing: Writing, event: ChatEvent) -> Iterable[Json]:
        """The chunks of one event."""
        if event.error is not None:
            return self._problem_chunks(writing, event.error)
        if event.result is not None:
            return await self._last_chunks(writing, event.result, interrupted=event.type == INTERRUPTED)
        made: Iterable[Json] = ()
        match event.type:
            case kind if kind in COMPACTIONS:
                made = await self._compaction_chunks(writing, event.data, kind)
            case "message.created":
                made = await self._stored_chunks(writing, event.data)
            case "reply.delta":
                made = writing.say(event.data["text"])
            case "reasoning.delta":
                made = writing.think(event.data["text"])
            case "context.recalled":
                seqs = event.data["seqs"]
                made = writing.recalled(seqs, await self._passages(seqs))
            case "tool.called":
                made = writing.left_open(event.data)
        return made

    async def _stored_chunks(self, writing: Writing, data: Mapping[str, Any]) -> list[Json]:
        # The client already has the messages that the turn began with.
        if "turn_id" in data or data["role"] not in ANSWER_ROLES:
            return []
        found = await self._passages([data["seq"]])
        message = found.messages.get(data["seq"])
        if message is None:
            return []
        return list(writing.called(message) if message.role == "assistant" else writing.returned(message))

    async def _last_chunks(self, writing: Writing, result: ChatResult, *, interrupted: bool) -> list[Json]:
        row = result.compaction.compaction if result.compaction else None
        chunks: list[Json] = []
        if row is not None and not writing.has_told(str(row.id)):
            chunks += await self._compaction_chunks(writing, numbers_of(row), EVENTS.get(row.status, STARTED))
        passages = await self._passages(result.recalled)
        return [*chunks, *writing.complete(result, passages, interrupted=interrupted)]

    async def _compaction_chunks(self, writing: Writing, numbers: Mapping[str, Any], type_: str) -> list[Json]:
        if numbers["trigger"] == ERASURE:
            return []
        part = writing.compaction(await told_compaction(self._notifier, numbers, type_))
        return [part, *(await self._gauge_chunks(writing) if type_ == APPLIED else [])]

    async def _passages(self, seqs: Sequence[int]) -> Passages:
        with suppress(*AWAY):
            return await self.services.ui_threads.passages(self.tenant, self.conversation, seqs)
        return NOTHING

    async def _gauge_chunks(self, writing: Writing) -> list[Json]:
        with suppress(*AWAY):
            return [writing.gauge(await self.services.conversations.usage(self.tenant, self.conversation))]
        return []

    def _problem_chunks(self, writing: Writing | None, error: DomainError) -> Iterable[Json]:
        problem = to_json(problem_of(error, request_id_of(self.request), wish_of(self.request))).decode()
        return (writing or Writing(id="", own_tools=())).fail(problem)

    @property
    def _own_tools(self) -> frozenset[str]:
        return self.services.ui_threads.own_tools

    @property
    def _notifier(self) -> Notifier:
        return Notifier(self.services, self.tenant, self.conversation, wish_of(self.request))


async def told_compaction(notifier: Notifier, numbers: Mapping[str, Any], type_: str) -> Json:
    """A compaction, with its notification; ``type_`` is the type of the event, which gives its status."""
    words = None
    with suppress(*AWAY):
        words = await notifier.notification(type_, numbers)
    return compaction_part(numbers, type_.partition(".")[2], words)
