"""The ports through which use cases reach everything but storage.

Each has a second implementation (``tests/fakes.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeVar
from uuid import UUID

from app.core.model.caches import CachedPrefix, MadeCache
from app.core.model.embedding import Embedded, InputKind
from app.core.model.files import FileCopy
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
from app.core.model.usage_limits import SlidingCount
from app.off_loop import off_loop

Argument = TypeVar("Argument")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The result of counting a request: whether it is allowed, and where the counts stand."""

    is_allowed: bool
    """Whether every count had room for it; if not, nothing was counted."""
    now: float
    """The time by the clock of the counters, in seconds since 1970."""
    counts: tuple[SlidingCount, ...]
    """Each count as it is now, in the order of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that is taken under some names until it is given back."""

    id: UUID
    names: tuple[str, ...]


class Processes(Protocol):
    """Where texts are read if that may take seconds."""

    async def run(self, tenant_id: UUID, work: Callable[[Argument], Result], argument: Argument) -> Result:
        """The result of a module-level function for a value.

        Raises:
            TooLargeError: It took too long and was ended.
            DependencyUnavailableError: Its process ended.
        """


class InThreads:
    """``Processes`` as threads of this process, for processes whose event loop nobody else waits for."""

    async def run(self, tenant_id: UUID, work: Callable[[Argument], Result], argument: Argument) -> Result:  # noqa: ARG002
        """The result of the function. A running function cannot be ended."""
        return await off_loop(work, argument)


class Counters(Protocol):
    """Counts over all processes; without their server, each process counts for itself.

    They never fail and hardly wait.
    """

    async def hit(self, limits: Sequence[tuple[str, int]], *, counts: bool = True) -> Hit:
        """Count one under each name, if there is room under all; ``counts=False`` only looks."""

    async def take(self, limits: Sequence[tuple[str, int]]) -> Place | int:
        """Take a place under each name, if one is free under all.

        Otherwise returns the index of the first name that is full.
        """

    def release(self, place: Place) -> None:
        """Give the place back. A second call changes nothing."""

    async def taken(self, names: Sequence[str]) -> list[int]:
        """How many places are taken under each name."""

    async def close(self) -> None:
        """Give back every place that this process has taken."""


class Clock(Protocol):
    """The clock, as an argument of everything that needs the time."""

    def now(self) -> datetime:
        """The present moment, with time zone UTC."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""

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
"""What a summarizer is asked for: a new state, a segment's L1 as plain text, or verdicts on claims."""


class Summarizer(Protocol):
    """A model that writes about a conversation outside its turns. All answers but an L1 are JSON."""

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""

    async def ask(self, request: SummarizerRequest) -> Proposal:
        """One call, no retries of its own. Raises ``ModelUnavailableError``."""


class Embedder(Protocol):
    """A model that makes vectors of texts."""

    @property
    def name(self) -> str:
        """The model's name, with the dimensions if they are chosen. Only vectors of one name can be compared."""

    @property
    def metered(self) -> bool:
        """Whether a call may cost money."""

    async def embed(self, texts: Sequence[str], kind: InputKind) -> Embedded:
        """A vector for each text: one call, no retries of its own. Raises ``ModelUnavailableError``.

        An answer is refused (``bad_vectors``) if the number of vectors differs from that of texts, if their lengths
        differ, or if a component is not a finite number.
        """


class ProviderStore(Protocol):
    """The data that models' providers keep for the service, by the model's name.

    Raises ``InvalidInputError`` if there is no such model, or its provider keeps nothing of that kind.
    """

    async def delete(self, name: str, response_id: str) -> None:
        """Delete a response or a cache that a model's provider keeps. Raises ``ModelUnavailableError``."""

    async def make_cache(
        self, name: str, prefix: CachedPrefix, attached: ContextMessage | None, ttl: timedelta
    ) -> MadeCache:
        """Have a provider cache a prefix; ``attached`` carries its files.

        Raises ``CacheTooSmallError`` and ``ModelUnavailableError``.
        """

    async def renew_cache(self, name: str, cache: str, ttl: timedelta) -> datetime:
        """Have a cache kept for longer. Returns when it ends. Raises ``ModelUnavailableError``."""

    async def upload_file(self, name: str, data: bytes, media_type: str) -> FileCopy:
        """Upload a file to a model's provider; it may not be ready at once. Raises what ``delete`` raises."""

    async def await_file(self, name: str, file_name: str) -> None:
        """Return once an uploaded file can be used in requests; waits some seconds.

        Raises ``ModelUnavailableError``: its reason is ``file_not_found`` if the file is gone, ``file_failed`` if it
        can never be used, ``file_processing`` if it cannot be used yet, or why the provider did not answer.
        """

    def file_account(self, name: str) -> str | None:
        """Where a model's provider keeps files, even if the model is no longer allowed; ``None`` if it keeps none."""

    async def delete_file(self, name: str, file_name: str) -> None:
        """Delete an uploaded file.

        Raises what ``delete`` raises, with ``file_not_found`` if the file is gone.
        """


class Models(Protocol):
    """The registry, which finds models by name.

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

    def seconds_away(self, name: str) -> float:
        """For how long that summarizer would refuse calls at once, since its provider is away; 0 = it would not."""

    def embedder(self) -> Embedder | None:
        """The configured embedding model; ``None`` if there is none."""

    @property
    def store(self) -> ProviderStore:
        """Access to what providers keep for the service."""


class EventBus(Protocol):
    """A wake-up channel; the table of events is authoritative. Nothing here may block a caller or make it fail."""

    async def publish(self, events: Sequence[Event]) -> None:
        """Publish on ``throughline:conversation:<id>``; time-boxed, errors are logged and swallowed."""

    def subscribe(self, conversation_id: UUID) -> AbstractAsyncContextManager[WakeUp]:
        """Wake-ups for one conversation; one Redis connection serves a whole process."""

    async def hint(self, conversation_id: UUID, word: str) -> None:
        """Send a wake-up that is not an event (``interrupt``), on the same kind of channel. Clients never see it."""

    async def ping(self) -> bool:
        """Whether Redis answers, within a second."""

    async def close(self) -> None:
        """Close the connections."""


class TurnStreams(Protocol):
    """The events of running turns, for followers in other processes; the database is authoritative.

    Nothing here blocks a caller for more than a second, or raises.
    """

    async def add(self, turn_id: UUID, number: int, entry: bytes, *, is_last: bool = False) -> bool:
        """Add an entry of a turn, numbered 1, 2, 3 ….

        Returns false if it may not have arrived: try again with the same entry.

        Entries are removed by themselves: some minutes after the newest, or some seconds after the last one.
        """

    def follow(self, turn_id: UUID) -> AbstractAsyncContextManager[TurnEntries]:
        """The entries of a turn, from the first one that is still there."""

    async def forget(self, turn_ids: Sequence[UUID]) -> None:
        """Remove all entries of these turns."""

    async def close(self) -> None:
        """Close the connections."""


class TurnEntries(Protocol):
    """Numbered entries; there may be gaps between the numbers."""

    async def get(self) -> tuple[int, bytes]:
        """Wait for the next entry, without a limit of time."""


class WakeUp(Protocol):
    """A wake-up that can be waited for."""

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the caller's own poll interval
        """Return true when something was published meanwhile, false after ``timeout`` seconds."""


class Meter(Protocol):
    """Counters, gauges and distributions of this process; words and numbers, never any text."""

    def count(self, instrument: Instrument, amount: float = 1, **labels: str) -> None:
        """Add to a counter; it never goes down."""

    def observe(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Add one value to a distribution."""

    def set(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Set a gauge to a value."""

    def render(self) -> str:
        """All metrics in the format of Prometheus."""


class Sealer(Protocol):
    """Seals what clients keep for the service, as a token that nobody else can read, change or make."""

    def seal(self, text: str, tenant_id: UUID, secret: bytes) -> str:
        """The text as a token; ``secret`` is the tenant's own key."""

    def open(self, token: str, tenant_id: UUID, secret: bytes) -> str | None:
        """The text in a token; ``None`` if this service did not make it, it was changed, or it is another tenant's."""


JobKind = Literal["detail", "verification", "embedding", "cache", "anchors", "fork"]
"""Work that can wait, for which a worker is asked."""


class JobQueue(Protocol):
    """Hands a compaction's id to the worker: a hint, sent after the commit, off the request path."""

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        """Returns true if the broker took the id. Limited in time, never raises."""

    async def send_later(self, kind: JobKind, id_: UUID) -> bool:
        """Ask a worker for something that can wait, after everything else.

        Returns false if the broker is away, and true also if so many wait that none is added. Limited in time, never
        raises.

        Args:
            kind: One ``detail`` (an L1) of a conversation, a ``verification`` of its newest state, an ``embedding``
                of its messages, its ``anchors`` to be found; a provider's ``cache`` to be made or renewed.
            id_: The id of the conversation, or of the cache.
        """

    async def send_fork(self, conversation_id: UUID) -> bool:
        """Ask a worker to copy the rest of a forked conversation, for which somebody waits. Never raises."""


NewId = Callable[[], UUID]
"""Makes a new id, a UUIDv7."""
