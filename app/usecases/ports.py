"""What use cases speak to, beside storage. Each port has a second implementation (``tests/fakes.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeVar
from uuid import UUID

from app.core.model.allowances import SlidingCount
from app.core.model.caches import CachedPrefix, MadeCache
from app.core.model.embedding import Embedded, InputKind
from app.core.model.files import KeptFile
from app.core.model.instruments import Instrument
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    DetailRequest,
    ModelProfile,
    Proposal,
    StepEvent,
    SummaryRequest,
    VerificationRequest,
)
from app.core.model.records import (
    Event,
)
from app.off_loop import off_loop

Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The result of counting a request: whether it is allowed, and where the counts stand."""

    room: bool
    """Whether every count had room for it; if not, nothing was counted."""
    now: float
    """By the clock that counts: seconds since 1970."""
    counts: tuple[SlidingCount, ...]
    """Each count as it stands now, in the order that was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that is taken under some names, until it is given back."""

    id: UUID
    names: tuple[str, ...]


class Processes(Protocol):
    """Where texts are read that take seconds."""

    async def run(self, tenant_id: UUID, work: Callable[[Given], Result], given: Given) -> Result:
        """What a function of a module makes of a value.

        Raises:
            TooLargeError: It took too long and was ended.
            DependencyUnavailableError: Its process ended.
        """


class InThreads:
    """``Processes`` as threads of this process, for where nobody else waits for its loop."""

    async def run(self, tenant_id: UUID, work: Callable[[Given], Result], given: Given) -> Result:  # noqa: ARG002
        """What the function makes of it; it cannot be ended."""
        return await off_loop(work, given)


class Counters(Protocol):
    """Counts over all processes; without their server, each process's own. They never fail and hardly wait."""

    async def hit(self, limits: Sequence[tuple[str, int]], *, counts: bool = True) -> Hit:
        """Count one under each name, if there is room in all; ``counts=False`` only looks."""

    async def take(self, limits: Sequence[tuple[str, int]]) -> Place | int:
        """A place under each name, if there is one under all; else the number of the first that is full."""

    def release(self, place: Place) -> None:
        """Let others have it; a second time changes nothing."""

    async def taken(self, names: Sequence[str]) -> list[int]:
        """How many places are taken under each name."""

    async def close(self) -> None:
        """Give every place back."""


class Clock(Protocol):
    """Time, as an argument of everything that needs it."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class ChatModel(Protocol):
    """A model that answers, one step at a time."""

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""

    def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Yield deltas, calls, then one ``StepFinish``. Raises ``ModelUnavailableError``; no retries of its own."""


SummarizerRequest = SummaryRequest | DetailRequest | VerificationRequest
"""What is wanted: a new state, a segment's L1 as plain text, or verdicts on claims."""


class Summarizer(Protocol):
    """A model that writes about a conversation beside its turns; all but an L1 as JSON."""

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""

    async def ask(self, request: SummarizerRequest) -> Proposal:
        """One call, no retries of its own. Raises ``ModelUnavailableError``."""


class Embedder(Protocol):
    """A model that makes vectors of texts."""

    @property
    def name(self) -> str:
        """The model's name, with the dimensions where they are chosen: vectors of one name can be compared."""

    @property
    def metered(self) -> bool:
        """Whether a call may cost money."""

    async def embed(self, texts: Sequence[str], kind: InputKind) -> Embedded:
        """A vector for each text: one call, no retries of its own. Raises ``ModelUnavailableError``.

        An answer with another number of vectors than of texts, with vectors of different lengths, or with a number
        that is none, is no answer (``bad_vectors``).
        """


class ProviderStore(Protocol):
    """What models' providers keep for us, by the model's name.

    Raises ``InvalidInputError`` where there is no such model, or its provider keeps nothing of the kind.
    """

    async def forget(self, name: str, response_id: str) -> None:
        """Have a model's provider delete a response or a cache that it keeps. Raises ``ModelUnavailableError``."""

    async def make_cache(
        self, name: str, prefix: CachedPrefix, attached: ContextMessage | None, ttl: timedelta
    ) -> MadeCache:
        """Have a provider cache a prefix; ``attached`` carries its files.

        Raises ``CacheTooSmallError`` and ``ModelUnavailableError``.
        """

    async def renew_cache(self, name: str, cache: str, ttl: timedelta) -> datetime:
        """Have a cache kept for longer; when it ends. Raises ``ModelUnavailableError``."""

    async def keep_file(self, name: str, data: bytes, media_type: str) -> KeptFile:
        """Have the provider of a model keep a file; it may not be ready yet. Raises as ``forget``."""

    async def await_file(self, name: str, file_name: str) -> None:
        """Return once a kept file can be used in requests; waits some seconds.

        Raises ``ModelUnavailableError``: ``file_not_found`` when it is gone, ``file_failed`` when it can never be
        used, ``file_processing`` when it cannot yet, or why the provider does not say.
        """

    async def forget_file(self, name: str, file_name: str) -> None:
        """Have the provider of a model delete a kept file. Raises as ``forget``; ``file_not_found`` when it is gone."""


class Models(Protocol):
    """The registry: names to models.

    Raises ``ModelNotAllowedError`` for a name that the operator does not allow, before anything is built, and
    ``InvalidInputError`` for a name that it cannot build.
    """

    async def prepare(self, name: str | None = None) -> None:
        """Build the model of that name, or the configured ones, off the event loop: building may take seconds."""

    def allows(self, name: str) -> bool:
        """Whether a request or a policy may name this model."""

    def chat(self, name: str | None = None) -> ChatModel:
        """The chat model of that name, or the configured one."""

    def summarizer(self, name: str | None = None) -> Summarizer:
        """The summarizer of that name, or the configured compaction model."""

    def embedder(self) -> Embedder | None:
        """The configured embedding model; ``None`` where there is none."""

    @property
    def store(self) -> ProviderStore:
        """What providers keep for us."""


class EventBus(Protocol):
    """A wake-up channel; the events table is the truth. Nothing here may block or fail a caller."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Publish on ``throughline:conversation:<id>``; time-boxed, errors are logged and swallowed."""

    def subscribe(self, conversation_id: UUID) -> AbstractAsyncContextManager[WakeUp]:
        """Wake-ups for one conversation; one Redis connection serves a whole process."""

    async def hint(self, conversation_id: UUID, word: str) -> None:
        """A wake-up that is no event (``interrupt``); on the same channel family, never shown to clients."""

    async def ping(self) -> bool:
        """Whether Redis answers, within a second."""

    async def close(self) -> None:
        """Let go of connections."""


class TurnStreams(Protocol):
    """What running turns tell, for followers in other processes; the database is the truth.

    Nothing here blocks a caller for more than a second, or raises.
    """

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        """Add an entry of a turn, numbered 1, 2, 3 …; False when it may not be there: try again with the same.

        Entries go by themselves: some minutes after the newest, and some seconds after the last one.
        """

    def follow(self, turn_id: UUID) -> AbstractAsyncContextManager[TurnEntries]:
        """The entries of a turn, from the first one that is there."""

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        """Remove everything of these turns."""

    async def close(self) -> None:
        """Let go of connections."""


class TurnEntries(Protocol):
    """Entries with their numbers, which may have gaps."""

    async def get(self) -> tuple[int, bytes]:
        """Wait for the next one, for ever."""


class WakeUp(Protocol):
    """Something to wait on."""

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the caller's own poll interval
        """True when something was published meanwhile, False after ``timeout`` seconds."""


class Meter(Protocol):
    """Counters, gauges and distributions of this process; words and numbers, never any text."""

    def count(self, instrument: Instrument, amount: float = 1, **labels: str) -> None:
        """Add to a counter; it never goes down."""

    def observe(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Add one value to a distribution."""

    def set(self, instrument: Instrument, value: float, **labels: str) -> None:
        """What a gauge shows from now on."""

    def render(self) -> str:
        """Everything, as Prometheus reads it."""


class Sealer(Protocol):
    """Seals what clients keep for us: a token that nobody else can read, change or make."""

    def seal(self, text: str, tenant_id: UUID, secret: bytes) -> str:
        """The text as a token; ``secret`` is the tenant's own."""

    def open(self, token: str, tenant_id: UUID, secret: bytes) -> str | None:
        """The text in a token; ``None`` where it is none of ours, was changed, or is another tenant's."""


Later = Literal["detail", "verification", "embedding", "cache", "anchors", "fork"]
"""What a worker is asked for that can wait."""


class JobQueue(Protocol):
    """Hands a compaction's id to the worker: a hint, sent after the commit, off the request path."""

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        """True when the broker took it; time-boxed, never raises."""

    async def send_later(self, wanted: Later, id_: UUID) -> bool:
        """Ask a worker for something that can wait, after everything else.

        False when the broker is away; True also where so many wait that none is added. Time-boxed, never raises.

        Args:
            wanted: One ``detail`` (an L1) of a conversation, a ``verification`` of its newest state, an ``embedding``
                of its messages, its ``anchors`` to be found; a provider's ``cache`` to be made or renewed.
            id_: The conversation's, or the cache's.
        """

    async def send_fork(self, conversation_id: UUID) -> bool:
        """Ask a worker to copy what a forked conversation still lacks: somebody waits for it. Never raises."""


NewId = Callable[[], UUID]
"""UUIDv7."""
