"""A turn as a stream for a frontend of the AI SDK, made from its events and from what is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
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
from app.core.model.records import ERASURE_TRIGGER
from app.http.chat import STOPPING_GRACE
from app.http.errors import accept_language_of, problem_of, request_id_of
from app.http.middleware import log_failure
from app.http.notifications import Notifier
from app.http.refusals import unexpected_error
from app.http.shutdown import Stopping
from app.http.sse import EventStream, Steps
from app.http.ui.chunks import DONE, HEADERS, Json, sse
from app.http.ui.message_chunks import MessageChunks
from app.http.ui.parts import answer_parts, compaction_part
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.compaction.claiming import numbers_of
from app.usecases.compaction.ending import EVENTS
from app.usecases.ui.entries import ANSWER_ROLES
from app.usecases.ui.threads import Beginning, Passages

COMPACTION_EVENTS: Final = frozenset({STARTED, *EVENTS.values()})
INTERRUPTED_EVENT: Final = "reply.interrupted"
NO_PASSAGES: Final = Passages()
TOLERATED_ERRORS: Final = (DependencyUnavailableError, NotFoundError)
"""Errors that do not end a stream: the database is away for a moment, or something was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStream:
    """Streams turns of one conversation to one client."""

    services: Container
    tenant: UUID
    conversation: UUID
    request: Request

    def response(self, turn: TurnHandle, stopping: Stopping, *, sends_earlier_parts: bool) -> EventStream[bytes]:
        """The stream.

        ``sends_earlier_parts``: the client does not yet have the message that the turn continues, so it is sent too.
        """
        stream: EventStream[bytes] = EventStream(
            Steps(
                self._frames(turn, sends_earlier_parts=sends_earlier_parts),
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

    async def _frames(self, turn: TurnHandle, *, sends_earlier_parts: bool) -> AsyncIterator[bytes]:
        async with aclosing(self._chunks(turn, sends_earlier_parts=sends_earlier_parts)) as chunks:
            async for chunk in chunks:
                yield sse(chunk)
        yield DONE

    async def _chunks(self, turn: TurnHandle, *, sends_earlier_parts: bool) -> AsyncGenerator[Json, None]:
        """The chunks of a turn; the last one always says how the turn ended."""
        message_chunks: MessageChunks | None = None
        stored = await _StoredSteps.of(turn)
        try:
            async with aclosing(turn.events()) as events:
                async for event in events:
                    if message_chunks is None:
                        beginning = await self._beginning(event)
                        message_chunks = MessageChunks(id=str(beginning.id), own_tools=self._own_tools)
                        for chunk in await self._first_chunks(
                            message_chunks, beginning.before if sends_earlier_parts else ()
                        ):
                            yield chunk
                    for chunk in stored.before(event, message_chunks):
                        yield chunk
                    for chunk in await self._event_chunks(message_chunks, event):
                        yield chunk
        except Exception as error:  # noqa: BLE001 - a stream that has begun can only say it this way
            log_failure(error)
            for chunk in self._problem_chunks(
                message_chunks, error if isinstance(error, DomainError) else unexpected_error()
            ):
                yield chunk

    async def _beginning(self, event: ChatEvent) -> Beginning:
        turn_id, reply_id = event.data.get("turn_id"), event.data.get("reply_id")
        if turn_id is not None:
            with suppress(*TOLERATED_ERRORS):
                return await self.services.ui_threads.beginning(self.tenant, self.conversation, UUID(turn_id))
        # If the database is away, the answer is sent from the beginning of the turn.
        return Beginning(id=UUID(reply_id) if reply_id else self.conversation, before=())

    async def _first_chunks(self, message_chunks: MessageChunks, before: Sequence[Message]) -> list[Json]:
        return [*message_chunks.begin(answer_parts(before, self._own_tools)), *await self._gauge_chunks(message_chunks)]

    async def _event_chunks(self, message_chunks: MessageChunks, event: ChatEvent) -> Iterable[Json]:
        """The chunks of one event."""
        if event.error is not None:
            return self._problem_chunks(message_chunks, event.error)
        if event.result is not None:
            return await self._last_chunks(message_chunks, event.result, interrupted=event.type == INTERRUPTED_EVENT)
        made: Iterable[Json] = ()
        match event.type:
            case kind if kind in COMPACTION_EVENTS:
                made = await self._compaction_chunks(message_chunks, event.data, kind)
            case "message.created":
                made = await self._tool_message_chunks(message_chunks, event.data)
            case "reply.delta":
                made = message_chunks.text(event.data["text"])
            case "reasoning.delta":
                made = message_chunks.reasoning(event.data["text"])
            case "context.recalled":
                seqs = event.data["seqs"]
                made = message_chunks.recalled(seqs, await self._passages(seqs))
            case "tool.called":
                made = message_chunks.open_call(event.data)
        return made

    async def _tool_message_chunks(self, message_chunks: MessageChunks, data: Mapping[str, Any]) -> list[Json]:
        """The chunks of tool calls or results that the turn stored as a message."""
        # The client already has the messages that the turn began with.
        if "turn_id" in data or data["role"] not in ANSWER_ROLES:
            return []
        found = await self._passages([data["seq"]])
        message = found.messages.get(data["seq"])
        if message is None:
            return []
        return list(
            message_chunks.own_calls(message) if message.role == "assistant" else message_chunks.own_results(message)
        )

    async def _last_chunks(self, message_chunks: MessageChunks, result: ChatResult, *, interrupted: bool) -> list[Json]:
        row = result.compaction.compaction if result.compaction else None
        chunks: list[Json] = []
        if row is not None and not message_chunks.has_compaction(str(row.id)):
            chunks += await self._compaction_chunks(message_chunks, numbers_of(row), EVENTS.get(row.status, STARTED))
        passages = await self._passages(result.recalled)
        return [*chunks, *message_chunks.complete(result, passages, interrupted=interrupted)]

    async def _compaction_chunks(
        self, message_chunks: MessageChunks, numbers: Mapping[str, Any], type_: str
    ) -> list[Json]:
        if numbers["trigger"] == ERASURE_TRIGGER:
            return []
        part = message_chunks.compaction(await compaction_with_notification(self._notifier, numbers, type_))
        return [part, *(await self._gauge_chunks(message_chunks) if type_ == APPLIED else [])]

    async def _passages(self, seqs: Sequence[int]) -> Passages:
        with suppress(*TOLERATED_ERRORS):
            return await self.services.ui_threads.passages(self.tenant, self.conversation, seqs)
        return NO_PASSAGES

    async def _gauge_chunks(self, message_chunks: MessageChunks) -> list[Json]:
        with suppress(*TOLERATED_ERRORS):
            return [message_chunks.gauge(await self.services.conversations.usage(self.tenant, self.conversation))]
        return []

    def _problem_chunks(self, message_chunks: MessageChunks | None, error: DomainError) -> Iterable[Json]:
        problem = to_json(problem_of(error, request_id_of(self.request), accept_language_of(self.request))).decode()
        return (message_chunks or MessageChunks(id="", own_tools=())).fail(problem)

    @property
    def _own_tools(self) -> frozenset[str]:
        return self.services.ui_threads.own_tools

    @property
    def _notifier(self) -> Notifier:
        return Notifier(self.services, self.tenant, self.conversation, accept_language_of(self.request))


@dataclass(slots=True)
class _StoredSteps:
    """What a turn that had ended before did besides its reply: calls of the service's tools, and their results."""

    earlier: Sequence[Message] = ()
    """The messages before the reply."""
    later: Sequence[Message] = ()
    """The results of the calls that the reply itself makes."""

    @classmethod
    async def of(cls, turn: TurnHandle) -> _StoredSteps:
        """The steps; none of a turn that runs, whose events contain them."""
        if not turn.steps:
            return cls()
        reply = (await turn.result()).reply
        return cls(
            *([one for one in turn.steps if (one.seq < reply.seq) is is_earlier] for is_earlier in (True, False))
        )

    def before(self, event: ChatEvent, message_chunks: MessageChunks) -> Iterator[Json]:
        """The chunks of the steps that come before an event."""
        if event.type in {"message.created", "context.recalled"}:
            return
        for message in self.earlier:
            yield from message_chunks.stored(message)
        self.earlier = ()
        if event.result is not None and self.later:
            yield from message_chunks.own_calls(event.result.reply)
            for message in self.later:
                yield from message_chunks.own_results(message)


async def compaction_with_notification(notifier: Notifier, numbers: Mapping[str, Any], type_: str) -> Json:
    """A compaction, with its notification; ``type_`` is the type of the event, which gives its status."""
    notification = None
    with suppress(*TOLERATED_ERRORS):
        notification = await notifier.notification(type_, numbers)
    return compaction_part(numbers, type_.partition(".")[2], notification)
