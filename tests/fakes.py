"""The second adapters of the ports: in memory, scripted, with a clock that moves only when told to."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

from app.core.context.tools import tools_tokens
from app.core.model.caches import CachedPrefix, MadeCache
from app.core.model.conversation import Usage
from app.core.model.embedding import Embedded, InputKind, packed_vector
from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.core.model.files import FileCopy
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    DetailRequest,
    FinishReason,
    ModelProfile,
    Proposal,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    ToolCall,
    VerificationRequest,
)
from app.core.model.records import Event
from app.core.state.layout import messages_tokens
from app.core.text.token_counts import estimate_text
from app.infrastructure.turn_streams import ENDED_SECONDS, Follower
from app.storage.database import DatabaseState
from app.usecases.ports import ChatModel, Embedder, JobKind, ProviderStore, Summarizer, SummarizerRequest

Model = TypeVar("Model")
Entry = TypeVar("Entry")

# The rounds of the loop that a task may need to get from one await to the next through any of our layers.
_ROUNDS = 50

FAKE_PROFILE = ModelProfile(name="fake", input_limit=100_000, output_limit=8_000)


class FakeClock:
    """Virtual time. ``sleep`` ends when ``advance`` has passed its moment; sleepers wake in order."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass, and let every sleeper act at its moment."""
        end = self._elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, at)
            if not woken.done():
                woken.set_result(None)
                await settle()
        self._elapsed = end
        await settle()


async def settle() -> None:
    """Let every task run until it waits for something outside this loop."""
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)


class FakeWakeUp:
    """``WakeUp`` that uses the fake clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.event = asyncio.Event()

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the port's signature
        sleeping = asyncio.ensure_future(self._clock.sleep(timeout))
        waking = asyncio.ensure_future(self.event.wait())
        try:
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
            if not waking.done():
                return False
            self.event.clear()
            return True
        finally:
            sleeping.cancel()
            waking.cancel()


class FakeEventBus:
    """``EventBus`` in memory; while it is ``away`` it wakes nobody and does not fail, as when Redis is away."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._waiting: defaultdict[UUID, set[FakeWakeUp]] = defaultdict(set)
        self.published: list[Event] = []
        self.hints: list[tuple[UUID, str]] = []
        self.away = False

    @property
    def subscribers(self) -> int:
        return sum(len(waiting) for waiting in self._waiting.values())

    async def publish(self, events: Sequence[Event]) -> None:
        self.published.extend(events)
        for event in events:
            self._wake(event.conversation_id)

    async def hint(self, conversation_id: UUID, word: str) -> None:
        self.hints.append((conversation_id, word))
        self._wake(conversation_id)

    @asynccontextmanager
    async def subscribe(self, conversation_id: UUID) -> AsyncIterator[FakeWakeUp]:
        wake_up = FakeWakeUp(self._clock)
        self._waiting[conversation_id].add(wake_up)
        try:
            yield wake_up
        finally:
            self._waiting[conversation_id].discard(wake_up)

    async def ping(self) -> bool:
        return not self.away

    async def close(self) -> None:
        self._waiting.clear()

    def _wake(self, conversation_id: UUID) -> None:
        if not self.away:
            for wake_up in self._waiting[conversation_id]:
                wake_up.event.set()


class FakeJobQueue:
    """``JobQueue`` that records, and runs each job at once when it is given something to run it with."""

    def __init__(self, run: Callable[[UUID], Awaitable[object]] | None = None) -> None:
        self._run = run
        self.sent: list[tuple[UUID, str | None]] = []
        self.asked: list[UUID] = []
        self.forks: list[UUID] = []
        self.later: defaultdict[JobKind, list[UUID]] = defaultdict(list)
        self.away = False

    @property
    def ids(self) -> list[UUID]:
        return [compaction_id for compaction_id, _ in self.sent]

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        self.asked.append(compaction_id)
        if self.away:
            return False
        self.sent.append((compaction_id, request_id))
        if self._run is not None:
            await self._run(compaction_id)
        return True

    async def send_later(self, kind: JobKind, id_: UUID) -> bool:
        if not self.away:
            self.later[kind].append(id_)
        return not self.away

    async def send_fork(self, conversation_id: UUID) -> bool:
        if not self.away:
            self.forks.append(conversation_id)
        return not self.away


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One scripted step of a chat model: its pieces, then its end, which is a finish or an error."""

    pieces: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    usage: Usage | None = None
    """``None`` stands for the usage that a provider reports if it counts as we do."""
    error: Exception | None = None
    meanwhile: Callable[[], Awaitable[object]] | None = None
    """Awaited before the first piece, while the model seems to think."""


class ScriptedChatModel:
    """``ChatModel`` that plays a script, step by step; the last entry is repeated."""

    def __init__(self, *script: str | Reply | Exception, profile: ModelProfile = FAKE_PROFILE) -> None:
        self._script = _Script(script or ("All right.",))
        self._profile = profile
        self.requests: list[ChatRequest] = []

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        self.requests.append(request)
        entry = self._script.next()
        if isinstance(entry, Exception):
            raise entry
        reply = entry if isinstance(entry, Reply) else Reply(pieces=(entry[:3], entry[3:]))
        if reply.meanwhile is not None:
            await reply.meanwhile()
        for piece in reply.pieces:
            yield TextDelta(text=piece)
        if reply.error is not None:
            raise reply.error
        for call in reply.calls:
            yield call
        asked = messages_tokens(request.messages, "script") + tools_tokens(request.tools, "script")
        usage = reply.usage or Usage(input_tokens=asked, output_tokens=10)
        reason: FinishReason = "tool_call" if reply.calls and reply.finish == "stop" else reply.finish
        yield StepFinish(reason=reason, usage=usage, model=self._profile.name)


DetailEntry = Proposal | Exception | str | Callable[[DetailRequest], Awaitable[Proposal]]
VerificationEntry = Proposal | Exception | str | Callable[[VerificationRequest], Awaitable[Proposal]]
SummaryEntry = Proposal | Exception | str | Callable[[SummaryRequest], Awaitable[Proposal]]


class ScriptedSummarizer:
    """``Summarizer`` that plays a script; the last entry is repeated. A text is a finished proposal's text.

    ``details`` is another script, for L1s, and ``verifications`` one for verdicts; without one every such call finds
    the model away.
    """

    def __init__(
        self,
        *script: SummaryEntry,
        profile: ModelProfile = FAKE_PROFILE,
        details: Sequence[DetailEntry] = (),
        verifications: Sequence[VerificationEntry] = (),
    ) -> None:
        away = ModelUnavailableError("away", retryable=True)
        self._script = _Script(script)
        self._details: _Script[DetailEntry] = _Script(details or [away])
        self._verifications: _Script[VerificationEntry] = _Script(verifications or [away])
        self._profile = profile
        self.requests: list[SummaryRequest] = []
        self.detail_requests: list[DetailRequest] = []
        self.verification_requests: list[VerificationRequest] = []

    def verifies(self, *script: VerificationEntry) -> None:
        """Play these verdicts from now on."""
        self._verifications = _Script(script)

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def ask(self, request: SummarizerRequest) -> Proposal:
        script: Any  # the entries for such a request
        match request:
            case SummaryRequest():
                self.requests.append(request)
                script = self._script
            case DetailRequest():
                self.detail_requests.append(request)
                script = self._details
            case VerificationRequest():
                self.verification_requests.append(request)
                script = self._verifications
        entry = script.next()
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, str):
            return Proposal(text=entry, finish="stop", model=self._profile.name, usage=Usage(input_tokens=100))
        told: Proposal = entry if isinstance(entry, Proposal) else await entry(request)
        return told


class FakeModels:
    """``Models`` with a default of each kind, and with others by name."""

    def __init__(
        self,
        chat: ChatModel,
        summarizer: Summarizer,
        *,
        chats: Mapping[str, ChatModel] | None = None,
        summarizers: Mapping[str, Summarizer] | None = None,
        allowed: Collection[str] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._allowed = allowed
        self._embedder = embedder
        self.away: dict[str, float] = {}
        """For how many seconds the circuits of summarizers are open, by the model's name."""
        self._chats: dict[str | None, ChatModel] = {None: chat} | dict(chats or {})
        self._summarizers: dict[str | None, Summarizer] = {None: summarizer} | dict(summarizers or {})

    async def prepare(self, name: str | None = None) -> None:
        if name not in self._chats:
            self.summarizer(name)

    @property
    def store(self) -> ProviderStore:
        return self

    async def delete(self, name: str, response_id: str) -> None:
        raise InvalidInputError(f"The provider of {name} keeps no responses.")

    async def upload_file(self, name: str, data: bytes, media_type: str) -> FileCopy:
        raise InvalidInputError(f"The provider of {name} keeps no files.")

    async def await_file(self, name: str, file_name: str) -> None:
        raise InvalidInputError(f"The provider of {name} keeps no files.")

    def file_account(self, name: str) -> str | None:
        return None

    async def delete_file(self, name: str, file_name: str) -> None:
        raise InvalidInputError(f"The provider of {name} keeps no files.")

    async def make_cache(
        self, name: str, prefix: CachedPrefix, attached: ContextMessage | None, ttl: timedelta
    ) -> MadeCache:
        raise InvalidInputError(f"The provider of {name} keeps no caches.")

    async def renew_cache(self, name: str, cache: str, ttl: timedelta) -> datetime:
        raise InvalidInputError(f"The provider of {name} keeps no caches.")

    def allows(self, name: str) -> bool:
        return self._allowed is None or name in self._allowed

    def chat(self, name: str | None = None) -> ChatModel:
        return _named(self._chats, name)

    def summarizer(self, name: str | None = None) -> Summarizer:
        return _named(self._summarizers, name)

    def seconds_away(self, name: str) -> float:
        return self.away.get(name, 0.0)

    def embedder(self) -> Embedder | None:
        return self._embedder


class ScriptedEmbedder:
    """``Embedder`` whose vectors say which of some words a text has; the next calls may fail."""

    metered = True

    def __init__(self, *words: str, name: str = "fake:vectors") -> None:
        self.name = name
        self.words = words
        self.asked: list[tuple[InputKind, tuple[str, ...]]] = []
        self.failures: list[ModelUnavailableError | None] = []
        self.refused: str | None = None
        """Texts with this word are refused."""
        self.before: Callable[[], Awaitable[None]] | None = None
        """Awaited during each call."""

    async def embed(self, texts: Sequence[str], kind: InputKind) -> Embedded:
        self.asked.append((kind, tuple(texts)))
        if self.before is not None:
            await self.before()
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        if self.refused is not None and any(self.refused in text for text in texts):
            raise ModelUnavailableError("bad_request", retryable=False, status=400)
        usage = Usage(input_tokens=sum(map(estimate_text, texts)), cost_usd=0.001)
        return Embedded(vectors=tuple(map(self.vector, texts)), usage=usage)

    def vector(self, text: str) -> bytes:
        found = packed_vector([1.0, *(float(text.lower().count(word)) * 5 for word in self.words)])
        assert found is not None
        return found

    def texts(self, kind: InputKind) -> list[str]:
        return [text for one, texts in self.asked if one == kind for text in texts]


def _named(models: Mapping[str | None, Model], name: str | None) -> Model:
    if name not in models:
        raise InvalidInputError(f"There is no model {name!r}.")
    return models[name]


class _Script(Generic[Entry]):
    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)
        self._played = 0

    def next(self) -> Entry:
        entry = self._entries[min(self._played, len(self._entries) - 1)]
        self._played += 1
        return entry


class LocalTurnStreams:
    """``TurnStreams`` for followers within one process."""

    def __init__(self) -> None:
        self._entries: defaultdict[UUID, list[tuple[int, bytes]]] = defaultdict(list)
        self._followers: defaultdict[UUID, set[Follower]] = defaultdict(set)

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        self._entries[turn_id].append((number, entry))
        for follower in self._followers[turn_id]:
            follower.give(number, entry)
        if is_last:
            asyncio.get_running_loop().call_later(ENDED_SECONDS, self._drop, turn_id)
        return True

    @asynccontextmanager
    async def follow(self, turn_id: UUID) -> AsyncIterator[asyncio.Queue[tuple[int, bytes]]]:
        follower = Follower()
        for number, entry in self._entries[turn_id]:
            follower.give(number, entry)
        self._followers[turn_id].add(follower)
        try:
            yield follower.entries
        finally:
            self._followers[turn_id].discard(follower)

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        for turn_id in turn_ids:
            self._drop(turn_id)

    async def close(self) -> None:
        return

    def _drop(self, turn_id: UUID) -> None:
        self._entries.pop(turn_id, None)
        if not self._followers[turn_id]:
            del self._followers[turn_id]


async def well() -> DatabaseState:
    """The answers of a database that answers and takes writes."""
    return "ok"
