"""An answer to a client of OpenAI's API: a stored turn or a stateless answer, sent in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from app.bootstrap import Container
from app.core.model.errors import DomainError, TooLargeError
from app.core.text.parts import as_text
from app.http.disconnects import cancel
from app.http.errors import status_of
from app.http.middleware import log_failure
from app.http.notifications import Notifier
from app.http.openai.chat_chunks import ChatChunks
from app.http.openai.errors import openai_error, openai_status
from app.http.openai.ids import call_item_id, conversation_id, message_id, reasoning_id, response_id
from app.http.openai.resources import Json, chat_completion, chat_tool_call, response_object, unix_seconds
from app.http.openai.response_events import ResponseEvents, event_after
from app.http.present import present_notification
from app.http.refusals import unexpected_error
from app.http.shutdown import Stopping
from app.usecases.openai.answer_events import BegunAnswer, answer_events
from app.usecases.openai.answering import (
    AnswerEvent,
    Ended,
    Failed,
    OpenCall,
    Prompt,
    ReasoningDelta,
    ServiceEvent,
    TextDelta,
    ToolsCalled,
)

DIVERGED: Final = "diverged"
"""Why an answer is not stored although its request names a conversation: their histories differ."""
_DIVERGED_TOO_LARGE_TEXT: Final = (
    "The messages of this request differ from those stored in its conversation, so they are not compacted with it. They"
    " have more than the {limit} tokens that the model takes: begin another conversation, or allow truncation."
)
COMPACTION_EVENT_PREFIX: Final = "compaction."
"""The prefix of the events that this service adds for clients that ask for them: how a conversation is compacted."""
_EVENTS_AT_ONCE: Final = 64
"""After so many events the loop does other work: a long text is many events."""
INCOMPLETE_REASONS: Final[Mapping[str, str]] = {"length": "max_output_tokens"}
FINISH_REASONS: Final[Mapping[str, str]] = {"stop": "stop", "length": "length", "tool_call": "tool_calls"}
"""The finish reasons. A reply that was stopped, or whose end the provider does not report, has none: that API has no
word for it, and its other words would be guesses.
"""


@dataclass(slots=True, kw_only=True)
class Answering:
    """One answer that is being sent."""

    id: UUID
    """The id of the response, which is the id of the turn."""
    reply_id: UUID
    created_at: int
    model: str
    """The model, as the request named it."""
    outcome: str
    """The value of the header that says what was done."""
    source: AsyncGenerator[AnswerEvent, None]
    now: Callable[[], datetime]
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that the response repeats."""
    conversation: str | None = None
    """The id of the conversation in the form of that API; ``None`` for an answer that is not stored."""
    on_disconnect: Callable[[], Awaitable[None]] | None = None
    notifier: Notifier | None = None
    """Writes the notifications of compactions; ``None`` if nobody asked for these events."""
    on_untold_failure: Callable[[], Awaitable[None]] | None = None
    """Called if the answer fails before its client was told any id."""
    end: Ended | None = None
    """How the answer ended; ``None`` until then, and if it failed."""
    error: DomainError | None = None
    """What the answer failed with."""
    _beginning: asyncio.Task[list[AnswerEvent]] | None = None
    """Reads the first events, if somebody waits for these."""
    _is_read: bool = False
    """Whether somebody reads the events, and closes them."""
    _events: AsyncGenerator[AnswerEvent, None] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the events."""
        self._events = self._reported_events()

    def resource(self, status: str, output: Sequence[Json]) -> Json:
        """The response as it is now."""
        reason = INCOMPLETE_REASONS.get(self.end.finish) if self.end and status == "incomplete" else None
        return response_object(
            response_id(self.id),
            created_at=self.created_at,
            status=status,
            echo=self.echo,
            output=output,
            completed_at=unix_seconds((self.end and self.end.at) or self.now()) if status == "completed" else None,
            usage=(self.end.usage or {}) if self.end else None,
            error=failure_of(self.error) if self.error else None,
            reason=reason,
            conversation=self.conversation,
        )

    async def wait_for_first_words(self, seconds: float, stopping: Stopping) -> None:
        """Wait until the answer begins or ends, or the process begins to end, at most so many seconds.

        Raises what the answer failed with until then.
        """
        self._beginning = asyncio.create_task(self._read_beginning())
        ending = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({self._beginning, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self._close()
            raise
        finally:
            await cancel(ending)
        if self.error is not None:
            await self._close()
            raise self.error

    async def answer_events(self) -> AsyncGenerator[AnswerEvent, None]:
        """The events of the answer, its end last. A failure is reported as an end."""
        self._is_read = True
        try:
            for answer_event in await self._beginning if self._beginning else ():
                yield answer_event
            async for answer_event in self._events:
                yield answer_event
        finally:
            await self._close()

    async def close(self) -> None:
        """End the answer if nobody has begun to read its events: the wait for its first words may have begun it."""
        if not self._is_read:
            await self._close()

    async def _close(self) -> None:
        if self._beginning is not None:
            await cancel(self._beginning)
        await self._events.aclose()

    async def _read_beginning(self) -> list[AnswerEvent]:
        first: list[AnswerEvent] = []
        async for answer_event in self._events:
            first.append(answer_event)
            if not isinstance(answer_event, ToolsCalled | ServiceEvent):  # these come before the model's words
                break
        return first

    async def _reported_events(self) -> AsyncGenerator[AnswerEvent, None]:
        try:
            async with aclosing(self.source) as source:
                async for answer_event in source:
                    if isinstance(answer_event, Ended):
                        self.end = answer_event
                    elif isinstance(answer_event, Failed):
                        self.error = answer_event.error
                    yield answer_event
        except Exception as error:  # noqa: BLE001 - a stream that has begun can only say it this way
            log_failure(error)
            self.error = error if isinstance(error, DomainError) else unexpected_error()
            yield Failed(self.error)


def stored_answer(services: Container, begun: BegunAnswer, model: str, echo: Mapping[str, Any]) -> Answering:
    """The answer of a stored turn."""
    conversation = conversation_id(begun.conversation.id)
    outcome = f"stored; conversation={conversation}; served={begun.served}; full={begun.full}"
    if begun.forked_from is not None:
        outcome += f"; forked-from={conversation_id(begun.forked_from)}"
    return Answering(
        id=begun.turn_id,
        reply_id=begun.reply_id,
        created_at=unix_seconds(begun.started_at) or 0,
        model=model,
        outcome=outcome,
        source=answer_events(begun.handle),
        now=services.parts.clock.now,
        echo=echo,
        conversation=conversation,
        on_disconnect=begun.handle.note_client_left,
    )


async def stateless_answer(
    services: Container, prompt: Prompt, model: str, echo: Mapping[str, Any], *, reason: str
) -> Answering:
    """Prepare an answer that is not stored. Raises the ``DomainError`` that refuses the request."""
    try:
        request = await services.openai.stateless.prepare(prompt)
    except TooLargeError as error:
        if reason != DIVERGED or "limit" not in error.extra:
            raise
        raise TooLargeError(_DIVERGED_TOO_LARGE_TEXT.format(**error.extra), extra=error.extra) from None
    return Answering(
        id=services.openai.new_id(),
        reply_id=services.openai.new_id(),
        created_at=unix_seconds(services.parts.clock.now()) or 0,
        model=model,
        outcome=f"stateless; reason={reason}",
        source=services.openai.stateless.answer(request, prompt.model),
        now=services.parts.clock.now,
        echo={**echo, "store": False},
    )


async def response_events(answering: Answering) -> AsyncGenerator[Json, None]:
    """The events of a response's stream."""
    events = ResponseEvents(
        resource=answering.resource,
        message=message_id(answering.reply_id),
        call_id=lambda number: call_item_id(answering.reply_id, number),
        reasoning_id=lambda number: reasoning_id(answering.reply_id, number),
        tools=answering.echo.get("tools", ()),
    )
    for event in events.begin():
        yield event
    async for answer_event in answering.answer_events():
        if isinstance(answer_event, ServiceEvent):
            if answering.notifier is not None and answer_event.kind.startswith(COMPACTION_EVENT_PREFIX):
                yield events.own(answer_event.kind, await _notified(answer_event, answering.notifier))
            continue
        for number, event in enumerate(_events_of(answer_event, events), 1):
            yield event
            if number % _EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)


async def _notified(event: ServiceEvent, notifier: Notifier) -> Json:
    notification = present_notification(await notifier.notification_if_available(event.kind, event.data))
    return {**event.data, "notification": notification.model_dump(mode="json") if notification else None}


def _events_of(answer_event: AnswerEvent, events: ResponseEvents) -> Iterator[Json]:
    match answer_event:
        case TextDelta(text=text):
            yield from events.text(text)
        case ReasoningDelta(text=text):
            yield from events.reasoning(text)
        case ToolsCalled():
            events.boundary()
        case OpenCall(call=call, part=part):
            yield from events.call(part, call.id, call.name, as_text(call.arguments))
        case Ended() as end:
            yield from events.text("" if events.reply_text else end.text)
            yield from events.complete(status_of_end(end))
        case Failed():
            yield from events.fail()


async def events_after(events: AsyncGenerator[Json, None], number: int | None) -> AsyncGenerator[Json, None]:
    """What comes after that ``sequence_number``, the last event in any case; all events for ``None``."""
    async with aclosing(events):
        async for event in events:
            further = event if number is None else event_after(event, number)
            if further is not None:
                yield further


async def whole_response(answering: Answering) -> Json:
    """Wait for the whole response. Raises the ``DomainError`` that it failed with."""
    last: Json = {}
    answering.notifier = None  # nobody is sent events
    async for event in response_events(answering):
        last = event
    if answering.error is not None:
        raise answering.error
    found: Json = last["response"]
    return found


async def chat_chunks(answering: Answering, *, with_usage: bool) -> AsyncGenerator[Json, None]:
    """The chunks of a chat completion. A failure is a chunk that contains an error."""
    chunks = ChatChunks(
        id=chat_id(answering), created=answering.created_at, model=answering.model, with_usage=with_usage
    )
    has_text = False
    yield chunks.begin()
    async for answer_event in answering.answer_events():
        match answer_event:
            case TextDelta(text=text):
                has_text = True
                made = list(chunks.text(text))
            case ReasoningDelta(text=text):
                made = list(chunks.reasoning(text))
            case ToolsCalled():
                chunks.boundary()
                made = []
            case OpenCall(call=call):
                made = list(chunks.call(call.id, call.name, as_text(call.arguments)))
            case Ended() as end:
                rest = "" if has_text else end.text
                made = [*chunks.text(rest), *chunks.end(FINISH_REASONS.get(end.finish), end.usage)]
            case Failed(error=error):
                made = [{"error": error_object(error)}]
            case ServiceEvent():
                made = []
        for chunk in made:
            yield chunk


async def whole_chat(answering: Answering) -> Json:
    """Wait for the whole chat completion. Raises the ``DomainError`` that it failed with."""
    pieces: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    async for chunk in chat_chunks(answering, with_usage=False):
        for choice in chunk.get("choices", ()):
            delta = choice["delta"]
            pieces.append(delta.get("content") or "")
            thoughts.append(delta.get("reasoning_content") or "")
            calls += [
                chat_tool_call(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in delta.get("tool_calls", ())
            ]
    if answering.error is not None:
        raise answering.error
    end = answering.end
    return chat_completion(
        chat_id(answering),
        created=answering.created_at,
        model=answering.model,
        text="".join(pieces),
        reasoning="".join(thoughts),
        calls=calls,
        finish_reason=FINISH_REASONS.get(end.finish) if end else None,
        usage=end.usage if end else None,
    )


def chat_id(answering: Answering) -> str:
    """The id of the completion."""
    return f"chatcmpl-{answering.id.hex}"


def status_of_end(end: Ended) -> str:
    """The status of a response that ends this way."""
    if end.interrupted:
        return "cancelled"
    return "incomplete" if end.finish in INCOMPLETE_REASONS else "completed"


def failure_of(error: DomainError) -> Json:
    """The error of a failed response."""
    found = error_object(error)
    return {"code": found["code"], "message": found["message"]}


def error_object(error: DomainError) -> Json:
    """An error in the form of that API."""
    return openai_error(error, openai_status(error, status_of(error)))


def sse(data: Json, event: str | None = None) -> bytes:
    """One event as bytes; it has no ``id``, as in that API."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {to_json(data).decode()}\n\n".encode()


DONE: Final = b"data: [DONE]\n\n"
