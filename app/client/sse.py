"""Streams of events that survive broken connections: what to request again, and what of it is new.

It does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from httpx_sse import ServerSentEvent

from .calls import EVENT_STREAM, Call
from .errors import ApiError, ConnectionFailedError, error_of
from .events import chat_event_of, event_of
from .resources import ChatEvent, Event
from .retrying import Retrying

Item = TypeVar("Item", covariant=True)  # noqa: PLC0105 - read in one sentence with the class

CREATED: Final = "message.created"
FAILED: Final = "reply.failed"
ENDINGS: Final = frozenset({"reply.completed", "reply.interrupted", FAILED})
DELTA: Final = "reply.delta"
REASONING: Final = "reasoning.delta"
CALLED: Final = "tool.called"


class Stream(Protocol[Item]):
    """A stream over any number of connections, as the code that opens them sees it."""

    is_over: bool
    """Whether nothing more will come, over any connection."""
    has_ended: bool
    """Whether nothing more will come over this connection."""

    def call(self) -> Call[Any]:
        """The request of the next connection: from the beginning, or from where the last one broke off."""

    def feed(self, received: ServerSentEvent) -> Iterator[Item]:
        """What the reader gets of an event; nothing for a comment or a hint, which has no data."""

    def ended(self, error: ApiError | ConnectionFailedError | None) -> float:
        """Call it when a connection is over. Returns the seconds to wait before the next one; raises to give up."""


@dataclass(slots=True)
class _Patience:
    """Counts failures in a row, and decides how long to wait after each."""

    retrying: Retrying
    failures: int = 0

    def after(self, error: ApiError | ConnectionFailedError) -> float:
        self.failures += 1
        if self.retrying.gives_up(error, self.failures):
            raise error
        return self.retrying.pause(self.failures, getattr(error, "retry_after", None))


class EventStream:
    """The events of a conversation: each once and in order, whatever happens to the connection."""

    def __init__(self, call: Call[Any], retrying: Retrying, *, after: int | str | None = None) -> None:
        self._call = call.with_headers(Accept=EVENT_STREAM)
        self._last = None if after is None else str(after)
        self._patience = _Patience(retrying)
        self.is_over = self.has_ended = False

    def call(self) -> Call[Any]:
        """The call that continues after the last event that was given."""
        return self._call if self._last is None else self._call.with_headers(Last_Event_ID=self._last)

    def feed(self, received: ServerSentEvent) -> Iterator[Event]:
        """The event; the next connection continues after its id.

        The hint that begins each stream ends a row of failures too, since a conversation may be silent for days.
        """
        self._patience.failures = 0
        if received.data:
            self._last = received.id or self._last
            yield event_of(received.data)

    def ended(self, error: ApiError | ConnectionFailedError | None) -> float:
        """Waits after a clean end as after an error, since a service that is restarted ends its streams cleanly."""
        return self._patience.after(error or ConnectionFailedError("the stream of events ended"))


class ReplyStream:
    """A turn's events.

    After a break the same request is sent again under its key, so it has one effect and no word comes twice.

    If the turn had to be answered again, the new reply does not begin with the words that were given already. Then the
    reader gets no further pieces, and the last event has the whole reply.
    """

    def __init__(self, call: Call[Any], retrying: Retrying) -> None:
        self._call = call.with_headers(Accept=EVENT_STREAM)
        self._patience = _Patience(retrying)
        self._id = ""
        """The last id on this connection; by the standard it also applies to later events without an id."""
        self._delivered = {DELTA: "", REASONING: ""}
        """The reply and the model's reasoning, as far as the reader has them."""
        self._received = dict(self._delivered)
        """The parts of both that came over this connection."""
        self._failure: ApiError | None = None
        self._seen: set[str] = set()
        self.is_over = self.has_ended = False

    def call(self) -> Call[Any]:
        """The request once more, under the same idempotency key."""
        self._id, self._received, self._failure, self.has_ended = "", {DELTA: "", REASONING: ""}, None, False
        return self._call

    def feed(self, received: ServerSentEvent) -> Iterator[ChatEvent]:
        """The part of the event that the reader does not have yet."""
        if not received.data:
            return
        type_, data = received.event, received.json()
        number = int(received.id) if received.id not in {"", self._id} else None
        self._id = received.id
        if type_ in self._delivered:
            yield from self._events_of_new_text(type_, str(data.get("text", "")))
        elif type_ == FAILED:
            self._failure, self.has_ended = error_of(int(data.get("status") or 0), data), True
        elif type_ in ENDINGS:
            self.is_over = self.has_ended = True
            yield chat_event_of(type_, number, data)
        elif (name := _event_name(type_, number, data)) not in self._seen:
            self._seen.add(name)
            yield chat_event_of(type_, number, data)

    def ended(self, error: ApiError | ConnectionFailedError | None) -> float:
        """Without the whole reply the turn goes on in the service, and is requested again."""
        if self.is_over:
            return 0.0
        if self._failure is not None and self._delivered[DELTA]:
            raise self._failure
        return self._patience.after(self._failure or error or ConnectionFailedError("the reply broke off"))

    def _events_of_new_text(self, type_: str, text: str) -> Iterator[ChatEvent]:
        came, given = self._received[type_] + text, self._delivered[type_]
        self._received[type_] = came
        if len(came) > len(given) and came.startswith(given):
            self._delivered[type_] = came
            yield chat_event_of(type_, None, {"text": came[len(given) :]})


class FollowedReply(ReplyStream):
    """The events of a turn that another client began. The stream ends with the turn, and at once if none runs."""

    _has_events = False

    def call(self) -> Call[Any]:
        """The request once more."""
        self._has_events = False
        return super().call()

    def feed(self, received: ServerSentEvent) -> Iterator[ChatEvent]:
        """The part of the event that the reader does not have yet."""
        self._has_events = True
        yield from super().feed(received)

    def ended(self, error: ApiError | ConnectionFailedError | None) -> float:
        """A clean end without any event means that no turn runs. Raises the error of a turn that failed."""
        if self._failure is not None:
            raise self._failure
        if error is None and not self._has_events:
            self.is_over = True
        return super().ended(error)


def _event_name(type_: str, number: int | None, data: Mapping[str, Any]) -> str:
    # The same event has the same name on every connection.
    if type_ == CREATED:  # repeated after the turn's end, it has no number
        return f"{type_} {data.get('message_id')}"
    if type_ == CALLED:
        return f"{type_} {data.get('id')}"
    return f"{type_} {data}" if number is None else str(number)
