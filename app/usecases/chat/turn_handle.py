"""A running turn as its client sees it: events to follow, a result to wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final, cast

from app.core.model.conversation import Message
from app.core.model.errors import DomainError
from app.core.model.gauge import Gauge
from app.core.model.model_io import FinishReason, ToolCall
from app.core.model.records import Event, Turn
from app.usecases.shared.compaction_views import CompactionView

CREATED: Final = "message.created"
DELTA: Final = "reply.delta"
REASONING: Final = "reasoning.delta"
PIECES: Final = frozenset({DELTA, REASONING})
RECALLED: Final = "context.recalled"
CALLED: Final = "tool.called"
MAX_BYTES: Final = 4_000_000
"""The most bytes of a running reply that a process keeps: about seven times the longest reply that models write."""
PIECE_OVERHEAD_BYTES: Final = 64
"""The memory that a piece takes in addition to its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResult:
    """A turn that has a reply."""

    message: Message
    reply: Message
    gauge: Gauge
    compaction: CompactionView | None = None
    warnings: tuple[str, ...] = ()
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were recalled for it."""
    segments: Mapping[int, str] = field(default_factory=dict)
    """The id of the current segment of each recalled message."""
    open_calls: tuple[ToolCall, ...] = ()
    """The calls of the client's tools in ``reply``, whose results are awaited."""
    finish: FinishReason = "stop"
    """Why the model's last step ended. The turn's usage is in ``reply.usage``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEvent:
    """One thing that happens in a turn; ``id`` is the conversation's event number where there is one.

    ``tool.called`` announces each open call just before the end, with ``id``, ``name`` and ``arguments``. The terminal
    types ``reply.completed``, ``reply.interrupted`` and ``reply.failed`` carry ``result`` or ``error``.
    """

    type: str
    id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    result: ChatResult | None = None
    error: DomainError | None = None

    @property
    def terminal(self) -> bool:
        """Whether this is the last event of the turn."""
        return self.result is not None or self.error is not None


def created_event(message: Message, turn: Turn) -> ChatEvent:
    """The stream's first event: the stored user message, and the id that the reply will have."""
    data = {"message_id": str(message.id), "seq": message.seq, "role": message.role}
    return ChatEvent(type=CREATED, data=data | ids_of(turn))


def ids_of(turn: Turn) -> dict[str, str]:
    """The ids in the first event: that of the turn and, if known, that of its reply."""
    reply_id = turn.reply_id or turn.planned_reply_id
    return {"turn_id": str(turn.id)} | ({"reply_id": str(reply_id)} if reply_id else {})


def delta(text: str, type_: str = DELTA) -> ChatEvent:
    """An event with a piece of the reply or, with ``REASONING``, of the model's reasoning."""
    return ChatEvent(type=type_, data={"text": text})


class _ReasoningPiece(str):
    """A piece of the model's reasoning in the log; a piece of the reply is logged as a plain string."""

    __slots__ = ()


_PIECE_TYPES: Final[Mapping[str, type[str]]] = {DELTA: str, REASONING: _ReasoningPiece}


class TurnHandle:
    """The events of one running turn, for any number of followers. The turn runs in a task of its own without them.

    All events are kept until the last follower has left, so that each follower gets them from the beginning. A
    follower that is slow or late gets several pieces of the reply as one. If a reply is longer than ``most_bytes``, the
    rest comes as one piece at the end. The same holds for its reasoning, which has a limit of its own of the same size.
    """

    def __init__(self, *, most_bytes: int = MAX_BYTES, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log: list[ChatEvent | str] = []  # a piece of the reply is kept as its text only
        self._bytes_left = dict.fromkeys(PIECES, most_bytes)
        self._cut: set[str] = set()
        self._wake_ups: set[asyncio.Event] = set()
        self._done: asyncio.Future[ChatResult] = asyncio.get_running_loop().create_future()
        self._done.add_done_callback(lambda future: future.exception())  # retrieved, even if nobody waits
        self._monotonic = monotonic
        self._followers = 0
        self._followed_at = monotonic()
        self._elsewhere_at: datetime | None = None
        self._client_left = False
        self.steps: Sequence[Message] = ()
        """Of a turn that had ended before: its messages with calls of the service's tools, and their results.

        A running turn has sent the texts as pieces, and told the rest in events.
        """

    @property
    def ended(self) -> bool:
        """Whether the terminal event has happened."""
        return self._done.done()

    @property
    def begun(self) -> bool:
        """Whether the first event has happened."""
        return bool(self._log)

    @property
    def followers(self) -> int:
        """How many callers follow the turn or wait for its result."""
        return self._followers

    def emit(self, event: ChatEvent) -> None:
        """Add an event of the turn. Events after the end are ignored.

        If pieces of a long reply were held back, the rest is sent before the terminal event.
        """
        if self.ended:
            return
        if event.result is not None and self._cut:
            self.emit_rest(event.result.reply)
        if event.type in PIECES:
            self._keep_piece(event.type, event.data["text"])
        else:
            self._log.append(event)
        if event.result is not None:
            self._done.set_result(event.result)
        elif event.error is not None:
            self._done.set_exception(event.error)
        for wake_up in self._wake_ups:
            wake_up.set()

    def emit_all(self, events: Sequence[Event]) -> None:
        """Pass on committed events of the conversation."""
        for event in events:
            self.emit(ChatEvent(type=event.type, id=event.number or None, data=event.data))

    def emit_calls(self, calls: Sequence[ToolCall]) -> None:
        """Announce the calls that a turn leaves open, just before its end."""
        for call in calls:
            data = {"id": call.id, "name": call.name, "arguments": call.arguments}
            self.emit(ChatEvent(type=CALLED, data=data))

    def emit_recalled(self, seqs: Sequence[int]) -> None:
        """Announce which messages were recalled, before the model is asked."""
        self.emit(ChatEvent(type=RECALLED, data={"seqs": list(seqs)}))

    def emit_rest(self, reply: Message) -> None:
        """Before the terminal event, send the parts of the reply and its reasoning that were not sent yet."""
        for type_, whole in ((REASONING, reply.reasoning), (DELTA, reply.content)):
            rest = whole.removeprefix(self._emitted_text(type_))
            if rest:
                self._log.append(_PIECE_TYPES[type_](rest))

    async def events(self) -> AsyncGenerator[ChatEvent, None]:
        """All events from the beginning, the terminal event last. Close the generator if you leave early."""
        with self._following():
            async with aclosing(self.batches()) as batches:
                async for batch in batches:
                    for event in batch:
                        yield event

    async def batches(self) -> AsyncGenerator[list[ChatEvent], None]:
        """All events from the beginning; those that have come since the last batch are one batch.

        A reader of batches does not count as a follower.
        """
        wake_up, position = asyncio.Event(), 0
        self._wake_ups.add(wake_up)
        try:
            while not (self.ended and position == len(self._log)):
                wake_up.clear()
                fresh = self._log[position:]
                position += len(fresh)
                if fresh:
                    yield _as_joined_events(fresh)
                elif not self.ended:
                    await wake_up.wait()
        finally:
            self._wake_ups.discard(wake_up)

    async def result(self) -> ChatResult:
        """Wait for the end of the turn. Raises the ``DomainError`` with which it failed."""
        with self._following():
            return await asyncio.shield(self._done)

    async def note_client_left(self) -> None:
        """Note that the client left.

        Only a mark: ``is_unfollowed_for`` then tells the turn's watch when to interrupt it.
        """
        self._client_left = True

    def note_follower_elsewhere(self, at: datetime | None) -> None:
        """Note when the turn was last followed in another process.

        Clocks of processes differ, so a time that has changed since the last note counts as now.
        """
        if at != self._elsewhere_at:
            self._elsewhere_at = at
            self._followed_at = self._monotonic()

    def is_unfollowed_for(self, seconds: float) -> bool:
        """Whether the client went away and nobody has followed the turn for that many seconds."""
        return self._client_left and not self._followers and self._monotonic() - self._followed_at >= seconds

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1
            self._followed_at = self._monotonic()

    def _keep_piece(self, type_: str, text: str) -> None:
        self._bytes_left[type_] -= len(text.encode(errors="surrogatepass")) + PIECE_OVERHEAD_BYTES
        if self._bytes_left[type_] < 0:
            self._cut.add(type_)
        if type_ not in self._cut:
            self._log.append(_PIECE_TYPES[type_](text))

    def _emitted_text(self, type_: str) -> str:
        pieces: list[str] = []
        for entry in reversed(self._log):
            if isinstance(entry, ChatEvent):
                if entry.type == CREATED:
                    break
            elif type(entry) is _PIECE_TYPES[type_]:
                pieces.append(entry)
        return "".join(reversed(pieces))


def _as_joined_events(entries: Iterable[ChatEvent | str]) -> list[ChatEvent]:
    events: list[ChatEvent] = []
    for kind, run in groupby(entries, key=type):
        if issubclass(kind, str):
            events.append(delta("".join(cast("Iterable[str]", run)), REASONING if kind is _ReasoningPiece else DELTA))
        else:
            events.extend(cast("Iterable[ChatEvent]", run))
    return events
