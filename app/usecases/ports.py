"""What the services speak to. Each port but the repositories has a second adapter (``tests/fakes.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, Self
from uuid import UUID

from app.core.model.anchors import Anchor, AnchorStatus, AnchorType, FoundAnchor, Ranking, Transition
from app.core.model.conversation import Conversation, Message, Outline, Sums
from app.core.model.instruments import Instrument
from app.core.model.model_io import (
    ChatRequest,
    DetailRequest,
    ModelProfile,
    Proposal,
    StepEvent,
    SummaryRequest,
    VerificationRequest,
)
from app.core.model.records import (
    ApiKey,
    Attempt,
    Compaction,
    Crashes,
    DetailCall,
    Event,
    IdempotencyRecord,
    Page,
    RanIn,
    Turn,
    Verification,
    Work,
)
from app.core.model.repairs import Repair
from app.core.model.segments import Expansion, Segment, SegmentLevel
from app.core.model.state import StateVersion, VerificationCounts, Verified
from app.core.model.statistics import LevelMeasure, Measured
from app.core.retrieval.corpus import Source
from app.core.text.token_counts import Estimator


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


class Summarizer(Protocol):
    """A model that proposes a new state."""

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""

    async def propose(self, request: SummaryRequest) -> Proposal:
        """One call, no retries of its own. Raises ``ModelUnavailableError``."""

    async def detail(self, request: DetailRequest) -> Proposal:
        """A segment's L1 as plain text: one call, no retries of its own. Raises ``ModelUnavailableError``."""

    async def verify(self, request: VerificationRequest) -> Proposal:
        """Verdicts on claims, as JSON: one call, no retries of its own. Raises ``ModelUnavailableError``."""


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


class JobQueue(Protocol):
    """Hands a compaction's id to the worker: a hint, sent after the commit, off the request path."""

    async def send(self, compaction_id: UUID, request_id: str | None = None) -> bool:
        """True when the broker took it; time-boxed, never raises."""

    async def send_detail(self, conversation_id: UUID) -> bool:
        """Ask a worker to have one L1 of that conversation written, after everything else.

        False when the broker is away; True also where so many wait that none is added. Time-boxed, never raises.
        """

    async def send_verification(self, conversation_id: UUID) -> bool:
        """Likewise, to have the conversation's newest state verified."""


class ConversationRepository(Protocol):
    """Rows of ``conversations`` of one tenant."""

    async def add(self, conversation: Conversation) -> None:
        """Insert."""

    async def get(self, conversation_id: UUID) -> Conversation:
        """Read without a lock. Raises ``NotFoundError``."""

    async def locales(self, conversation_ids: Collection[UUID]) -> dict[UUID, str]:
        """The language of each of them that there is."""

    async def lock(self, conversation_id: UUID) -> Conversation:
        """Read with ``FOR UPDATE``: every writer begins with this, so that writers queue per conversation.

        The law of lock order: the conversation before any of its compactions or turns, or two writers deadlock.
        """

    async def update(self, conversation_id: UUID, **changes: Any) -> Conversation:
        """Set fields by their names in ``Conversation`` (``total``, ``covered``, ``quiet``, ``live`` … as values)."""

    async def page(self, page: Page, *, user_id: str | None) -> tuple[list[Conversation], str | None]:
        """By ``last_message_at`` (``created_at`` while there is none), then id; and the next cursor."""

    async def delete(self, conversation_id: UUID) -> None:
        """Delete with everything derived (foreign keys cascade). Raises ``NotFoundError``."""

    async def due(self, *, limit: int) -> list[tuple[UUID, UUID]]:
        """(tenant, conversation) due for a compaction, over all tenants, by the partial index; database time.

        Due: ``context_tokens >= trigger_tokens``, quiet over (all three of ``Quiet``), no row in flight,
        no running turn with a live lease.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """What recall and search choose from: a whole small conversation, or the part of a large one that may fit."""

    sources: list[Source]
    """By ``seq``; without commands and without what was erased."""
    documents: Mapping[str, int]
    """In how many messages of the conversation each stem stands; of a common one only about.

    Empty when ``sources`` are the whole conversation: they can be counted.
    """
    total: int
    """Messages in the whole conversation."""


class MessageRepository(Protocol):
    """Rows of ``messages``: appended, never changed."""

    async def append(self, messages: Sequence[Message], sums: Sequence[Sums]) -> None:
        """Insert; ``sums[i]`` are the running sums through ``messages[i]``."""

    async def get(self, conversation_id: UUID, message_id: UUID) -> Message:
        """One message. Raises ``NotFoundError``."""

    async def pin(self, conversation_id: UUID, message_id: UUID, *, is_pinned: bool, reason: str) -> Message:
        """Set ``is_pinned`` and ``protected_reason``. The caller recomputes the sums (``recompute``)."""

    async def erase(self, conversation_id: UUID, changed: Sequence[Message]) -> None:
        """Store these messages' ``content``, ``parts``, ``status``, weights, reason, ``usage`` and ``metadata``.

        The one exception to "never changed": tombstones, and the stubbed halves of tool pairs.
        """

    async def halves(self, conversation_id: UUID, call_ids: Sequence[str]) -> list[Message]:
        """Every message that makes or answers one of these tool calls, by ``seq``."""

    async def command_answers(self, conversation_id: UUID, *, after_seq: int) -> list[Message]:
        """The service's answers to typed commands after that ``seq``, in order."""

    async def recompute(self, conversation_id: UUID) -> Sums:
        """Recompute every running sum from the weights, and return the total."""

    async def protected_tokens(self, conversation_id: UUID, estimator: Estimator) -> int:
        """What pinned and protected messages weigh together, those held by their role (``system``) apart."""

    async def last(self, conversation_id: UUID, *, role: str | None = None) -> Message | None:
        """The newest message that is no command (of that role, if given)."""

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[Message], str | None]:
        """By ``seq``."""

    async def outline(self, conversation_id: UUID, *, after_seq: int, limit: int) -> list[Outline]:
        """The oldest ``limit`` messages after ``after_seq``, without text."""

    async def between(self, conversation_id: UUID, from_seq: int, to_seq: int) -> list[Message]:
        """Messages of a range, inclusive, commands left out."""

    async def newest(
        self, conversation_id: UUID, *, after_seq: int, max_tokens: int, each_at_most: int | None = None
    ) -> list[Message]:
        """The newest messages after ``after_seq`` while they weigh at most ``max_tokens``, in order.

        Commands are left out; the newest one is always there. With ``each_at_most`` a message counts for no more than
        that, so that a giant hides nothing behind it; this looks at every message after ``after_seq``.
        """

    async def held(self, conversation_id: UUID, *, through_seq: int) -> list[Message]:
        """Protected messages up to that ``seq``, in order."""

    async def sums_at(self, conversation_id: UUID, seq: int) -> Sums:
        """Sums through that message; zeros for 0."""

    async def at_seq(self, conversation_id: UUID, seq: int) -> Message:
        """One message by position. Raises ``NotFoundError``."""

    async def quoting(self, conversation_id: UUID, seq: int) -> list[Message]:
        """Later results of tools that quote this message (a part's ``quotes`` are ranges of ``seq``), in order."""

    async def calls(self, conversation_id: UUID, ids: Sequence[str]) -> frozenset[str]:
        """Which of these tool call ids were made in this conversation."""

    async def reweigh(self, conversation_id: UUID, reasons: Mapping[int, str]) -> Sums:
        """Set ``protected_reason`` for the given ``seq``s, and return the total; other rows stay as they are."""

    async def protectable(
        self,
        conversation_id: UUID,
        *,
        roles: Collection[str],
        event_types: Collection[str],
        seqs: Collection[int],
    ) -> list[Message]:
        """What protection is decided for again after a policy change, in order; neither commands nor erased messages.

        The first message, pinned ones, those that are held or found no room, those of these roles or event types, and
        those at these positions.
        """

    async def said(self, conversation_id: UUID, *, role: str, after_seq: int, limit: int) -> list[tuple[int, str]]:
        """Positions and texts of the next messages of a role, in order; neither commands nor erased ones."""

    async def sources(
        self, conversation_id: UUID, *, stems: Sequence[str], limit: int, neighbours: bool = True
    ) -> Narrowed:
        """The messages among which those that fit these stems are: all of a small conversation (1 500 messages).

        Of a larger one at most ``limit`` messages that hold stems, those that hold the rarest ones first, and the
        neighbours of the best quarter of them, forty at least, up to three places away. Without ``neighbours`` also of
        a small one no more than the messages that hold stems.
        """

    async def holding(
        self, conversation_id: UUID, texts: Sequence[str], *, stems: Sequence[str], limit: int
    ) -> list[Source]:
        """The newest messages that hold each of these texts literally, whatever the case; blanks are alike.

        Of a long text the first 200 characters are sought: the caller looks whether the rest follows.
        With ``stems`` (all of them in the message) by the index, else among the newest 20 000 messages.
        """

    async def at_seqs(self, conversation_id: UUID, seqs: Sequence[int]) -> list[Message]:
        """These messages by ``seq``, without commands and without what was erased."""


class CompactionRepository(Protocol):
    """Rows of ``compactions``. Leases are reckoned in database time."""

    async def claim(self, compaction: Compaction) -> Compaction | None:
        """Insert unless one is in flight (``ON CONFLICT DO NOTHING`` on the partial unique index).

        A row inserted as ``running`` gets ``lease_until = now() + 9 s`` and ``claims = 1``.
        """

    async def get(self, compaction_id: UUID) -> Compaction:
        """One row. Raises ``NotFoundError``."""

    async def in_flight(self, conversation_id: UUID) -> Compaction | None:
        """The queued or running row."""

    async def page(
        self, page: Page, *, conversation_id: UUID | None = None, status: str | None = None
    ) -> tuple[list[Compaction], str | None]:
        """Newest first by default."""

    async def focused(self, conversation_id: UUID) -> list[Compaction]:
        """Those that were asked to keep something in view."""

    async def take(self, compaction_id: UUID, *, lease_token: UUID, ran_in: RanIn, owner: str) -> Compaction | None:
        """``queued``, or ``running`` with an expired lease, to ``running`` with this lease; ``claims + 1``."""

    async def takeable(self, compaction_id: UUID) -> bool:
        """Whether ``take`` would succeed now; a look without a lock, for those who wait."""

    async def heartbeat(self, compaction_id: UUID, lease_token: UUID) -> bool:
        """Prolong the lease; False when it is lost."""

    async def update(self, compaction_id: UUID, lease_token: UUID, **changes: Any) -> Compaction | None:
        """Set fields, fenced by the lease token; ``None`` when it is lost."""

    async def requeue(self, compaction_id: UUID, lease_token: UUID, *, count: bool) -> bool:
        """Back to ``queued`` without a lease; ``count=False`` takes the claim back."""

    async def release_owner(self, owner: str) -> int:
        """Back to ``queued``, uncounted, everything that process holds (SIGTERM)."""

    async def mark_sent(self, compaction_ids: Sequence[UUID]) -> None:
        """``sent_at = now()``."""

    async def expired(self, *, limit: int) -> list[Compaction]:
        """Running rows whose lease is over, all tenants; not locked."""

    async def unsent(self, *, older_than: timedelta, limit: int) -> list[Compaction]:
        """Queued rows not sent for that long, all tenants, ``FOR UPDATE SKIP LOCKED``."""

    async def finish(self, compaction_id: UUID, **changes: Any) -> Compaction:
        """Set fields without a fence, for a row locked in this transaction."""

    async def calls_within(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """Metered model calls recorded within that time (database time), of a conversation or of the whole tenant."""


class StateRepository(Protocol):
    """Rows of ``state_versions``."""

    async def add(self, conversation_id: UUID, version: StateVersion) -> None:
        """Insert."""

    async def get(self, conversation_id: UUID, version: int) -> StateVersion:
        """One version. Raises ``NotFoundError``."""

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[StateVersion], str | None]:
        """By version."""

    async def since_boundary(self, conversation_id: UUID, seq: int) -> list[StateVersion]:
        """Every version whose boundary is at or after that ``seq``, oldest first."""

    async def rewrite(self, conversation_id: UUID, version: StateVersion) -> None:
        """Store a version's ``state``, ``entries``, ``covered``, ``layout``, ``repairs`` and ``verified`` again.

        For erasures, and for verdicts that change only the order in which entries are served from the next version on.
        """

    async def mark(
        self, conversation_id: UUID, version: int, verified: Verified, counts: VerificationCounts | None = None
    ) -> None:
        """Set what looked at a version, and what it found."""

    async def unmark(self, conversation_id: UUID, *, before: int) -> None:
        """Versions before that one that wait for a model are not looked at any more: code alone judged them."""

    async def repairs_of(self, compaction_ids: Sequence[UUID]) -> dict[UUID, tuple[Repair, ...]]:
        """What was done to the summaries of these compactions, over all versions that each wrote."""

    async def by_compaction(self, compaction_ids: Sequence[UUID]) -> dict[UUID, StateVersion]:
        """The last version that each of these compactions wrote, in one query."""


class AnchorRepository(Protocol):
    """Rows of ``anchors``."""

    async def add(self, anchors: Sequence[Anchor]) -> None:
        """Insert; one that stands at the same place with the same type already is left as it is."""

    async def get(self, conversation_id: UUID, anchor_id: UUID) -> Anchor:
        """One. Raises ``NotFoundError``."""

    async def active(
        self, conversation_id: UUID, *, through_seq: int | None = None, limit: int = 1_000
    ) -> list[Anchor]:
        """The newest ``limit`` active ones (up to that ``seq``), in order of position."""

    async def servable(
        self, conversation_id: UUID, *, through_seq: int | None = None, limit: int = 1_000
    ) -> list[FoundAnchor]:
        """The same, without what only changing them needs: thousands are read for one context."""

    async def page(
        self, conversation_id: UUID, page: Page, *, type_: AnchorType | None = None, status: AnchorStatus | None = None
    ) -> tuple[list[Anchor], str | None]:
        """By position (``seq``, offset, id)."""

    async def claimed(self, conversation_id: UUID, *, through_seq: int, limit: int) -> list[Anchor]:
        """The newest active ones up to that ``seq`` of which a summarizer claims something, in order of position."""

    async def rank(self, conversation_id: UUID, ranking: Ranking) -> None:
        """Write down what a language model said of anchors; those that a user set are left as they are."""

    async def unclaim(self, conversation_id: UUID, ids: Sequence[UUID]) -> None:
        """Forget what was claimed of these."""

    async def set_by_user(self, conversation_id: UUID, anchor_id: UUID, status: AnchorStatus) -> None:
        """Set a status by hand; ``active`` makes it one that a user set."""

    async def change(self, conversation_id: UUID, transitions: Sequence[Transition]) -> None:
        """Set statuses; what was claimed of these anchors is forgotten."""

    async def delete_of(self, conversation_id: UUID, seqs: Sequence[int]) -> int:
        """Delete the anchors of these messages; how many there were.

        References to them are cleared, and so are claims that rest on these messages.
        """


class SegmentRepository(Protocol):
    """Rows of ``segments`` and ``segment_levels``. Every segment ever made stays; ``is_current`` says which count."""

    async def add(self, segments: Sequence[Segment]) -> None:
        """Insert, with their levels. The caller has looked for the same range (``of_ranges``) and for free ids."""

    async def get(self, conversation_id: UUID, segment_id: str) -> Segment:
        """One, current or not, with its levels. Raises ``NotFoundError``."""

    async def of_ranges(self, conversation_id: UUID, ranges: Sequence[tuple[int, int]]) -> list[Segment]:
        """Those that have exactly one of these (first, last) ``seq``s, current or not, with levels, by ``from_seq``."""

    async def ids_like(self, conversation_id: UUID, stems: Sequence[str]) -> frozenset[str]:
        """Ids in use that are one of these, or one of these with a number behind it (``auth``, ``auth_2``)."""

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[Segment], str | None]:
        """The current version's, by ``from_seq``, with levels."""

    async def newest(self, conversation_id: UUID, *, limit: int) -> list[Segment]:
        """The newest current ones, with their L2 and L3, by ``from_seq``; one query, bounded by ``limit``."""

    async def count(self, conversation_id: UUID) -> int:
        """How many are current."""

    async def covering(self, conversation_id: UUID, seqs: Sequence[int]) -> list[Segment]:
        """The current ones that hold any of these messages, without levels, by ``from_seq``."""

    async def touching(self, conversation_id: UUID, seqs: Sequence[int]) -> list[Segment]:
        """Every one ever made that holds any of these messages, with levels."""

    async def named(self, conversation_id: UUID, segment_ids: Sequence[str]) -> list[Segment]:
        """These, current or not, with levels, by ``from_seq``."""

    async def within(self, conversation_id: UUID, from_seq: int, to_seq: int) -> list[Segment]:
        """The current ones that lie wholly or in part in this range, with levels, by ``from_seq``."""

    async def put_levels(self, conversation_id: UUID, segment_id: str, levels: Sequence[SegmentLevel]) -> None:
        """Insert or replace these levels."""

    async def rewrite(self, segment: Segment) -> None:
        """Store a segment's topic, counts, identifiers and levels again (no other level stays).

        For erasures, and for what a model told of it and a message contradicts.
        """

    async def rename(self, conversation_id: UUID, segment_id: str, new_id: str) -> None:
        """Another id for a segment, wherever one stands (levels, versions, expansions): erasure only."""

    async def update(self, conversation_id: UUID, segment_id: str, **changes: Any) -> None:
        """Set ``wants_detail``, ``detail_tries``, ``detail_after``."""

    async def make_current(self, conversation_id: UUID, version: int) -> None:
        """Recompute ``is_current`` from the chain of parents of that version; for restores."""

    async def set_current(self, conversation_id: UUID, segment_ids: Sequence[str]) -> None:
        """Make these current beside the others."""

    async def wanting_detail(self, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID, str]]:
        """(tenant, conversation, segment) of current ones that want an L1 and whose ``detail_after`` is over.

        Oldest first, over all tenants for the sweeper, by the partial index; database time.
        """


class ExpansionRepository(Protocol):
    """Rows of ``expansions``: what was brought back, in numbers."""

    async def add(self, expansions: Sequence[Expansion]) -> None:
        """Insert."""

    async def mark_used(self, expansion_ids: Sequence[UUID], *, used: bool) -> None:
        """Whether a reply drew on what they brought back."""


class DetailCallRepository(Protocol):
    """Rows of ``detail_calls``: model calls outside of compactions, for the spend guard and the measures."""

    async def begin(self, call: DetailCall) -> None:
        """Insert, before the model is asked."""

    async def end(self, call_id: UUID, attempt: Attempt) -> None:
        """How it went."""

    async def calls_within(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """Metered calls begun within that time (database time), of a conversation or of the whole tenant."""

    async def running(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """Calls begun within that time that have not ended, of a conversation or of all that the unit of work sees."""


class VerificationRepository(Protocol):
    """Rows of ``verifications``: at most one of a conversation waits or runs."""

    async def open(self, verification: Verification) -> None:
        """Insert, unless one waits or runs: that one will look at the newest version."""

    async def open_of(self, conversation_id: UUID) -> Verification | None:
        """The one that waits or runs."""

    async def update(self, verification_id: UUID, **changes: Any) -> None:
        """Set fields."""

    async def wanting(self, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID]]:
        """(tenant, conversation) of those that are due, and of those whose process died; over all tenants by index."""

    async def calls_within(self, span: timedelta, *, conversation_id: UUID | None = None) -> int:
        """Metered calls of those that asked within that time (database time); one that runs counts as one more."""

    async def running(self, *, conversation_id: UUID | None = None) -> int:
        """How many are at it, of a conversation or of all that the unit of work sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """A turn that is over, with what its conversation looks like by now."""

    turn: Turn
    usage: Mapping[str, Any] | None
    """Of its reply."""
    preset: str
    policy: Mapping[str, Any]
    """The overrides."""
    context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What ended of late, over all tenants: for metrics, which forget whose it was."""

    compactions: list[Compaction]
    turns: list[EndedTurn]
    expansions: list[Expansion]
    details: list[DetailCall]
    """Each under the time at which it began."""
    verifications: list[Verification] = field(default_factory=list)
    levels: Mapping[UUID, Sequence[LevelMeasure]] = field(default_factory=dict)
    """Of the segments that an applied compaction made, by its id."""


class StatisticsRepository(Protocol):
    """Sums over rows, made by the database: exact by construction, whoever writes meanwhile."""

    async def one_moment(self) -> None:
        """Let every statement of this transaction see the same moment; before any other statement of it."""

    async def measured(self, conversation_id: UUID | None = None, *, since: datetime | None = None) -> Measured:
        """Everything counted, of a conversation or of the whole tenant; of what was asked for at or after ``since``."""

    async def levels(self, conversation_ids: Sequence[UUID]) -> list[LevelMeasure]:
        """What the current segments of these conversations weigh at each level that they have."""

    async def levels_of(self, conversation_id: UUID, compaction_id: UUID) -> list[LevelMeasure]:
        """The same of the segments that this compaction made."""

    async def ended(self, since: datetime, *, limit: int) -> Ended:
        """What ended after ``since``, over all tenants, by indexes on time; at most ``limit`` of each, the first."""

    async def waiting(self) -> Mapping[str, int]:
        """Compactions in flight by status, over all tenants, by the partial index."""


class TurnRepository(Protocol):
    """Rows of ``turns``."""

    async def start(self, turn: Turn) -> Turn | None:
        """Insert with a fresh lease, in database time; ``None`` while one runs, or a dead one was not ended."""

    async def get(self, turn_id: UUID) -> Turn:
        """One row. Raises ``NotFoundError``."""

    async def running(self, conversation_id: UUID) -> Turn | None:
        """The running turn with a live lease."""

    async def heartbeat(self, turn_id: UUID) -> Turn | None:
        """Prolong the lease and read the row; ``None`` when it is no longer running."""

    async def end(self, turn_id: UUID, **changes: Any) -> Turn | None:
        """Set an ending status and other fields of a running turn; ``None`` when it has ended before."""

    async def request_interrupt(self, conversation_id: UUID) -> Turn | None:
        """Set the column on the running turn."""

    async def expired(self, *, limit: int) -> list[Turn]:
        """Running turns whose lease is over, all tenants; not locked."""

    async def fail_expired(self, turn_id: UUID) -> Turn | None:
        """End a turn whose lease is over; ``None`` when it is not, or has ended."""

    async def fail_dead(self, conversation_id: UUID) -> Turn | None:
        """End the turn of that conversation whose lease is over, if there is one."""


class WorkRepository(Protocol):
    """Rows of ``works`` and ``crashes``: what processes work on, and how often one ended over it."""

    async def begin(self, work: Work, *, seconds: float) -> Crashes | None:
        """Insert with a lease of so many seconds, in database time; what is known of the conversation.

        In a unit of work of its own, as ``renew`` and ``end``: they are committed at once.
        """

    async def renew(self, work_id: UUID, *, seconds: float) -> None:
        """Prolong the lease."""

    async def end(self, work_ids: Collection[UUID]) -> None:
        """Delete."""

    async def abandoned(self, *, limit: int) -> list[Work]:
        """Those whose lease is over; not locked."""

    async def bury(self, work: Work) -> bool:
        """Delete everything that this process had begun on that conversation; whether there was anything left."""

    async def crashes(self, conversation_id: UUID) -> Crashes | None:
        """What is known of a conversation; ``None`` where no process ended."""

    async def count_crash(self, work: Work, *, most: int) -> Crashes:
        """Count one more; from ``most`` on the conversation is set aside. Raises ``NotFoundError`` without it."""

    async def forget_crashes(self, conversation_id: UUID, *, kind: str | None = None) -> Crashes | None:
        """Begin to count anew; with ``kind`` only where that is the last one's and nothing is set aside."""


class EventRepository(Protocol):
    """Rows of ``events``."""

    async def add(self, conversation_id: UUID, type_: str, data: Mapping[str, Any], at: datetime) -> Event:
        """Take the next number from the conversation row and insert; collected for publishing by the unit of work."""

    async def add_many(
        self, conversation_id: UUID, items: Sequence[tuple[str, Mapping[str, Any]]], at: datetime
    ) -> list[Event]:
        """Several at once, in order: (type, data)."""

    async def after(self, conversation_id: UUID, number: int, *, limit: int) -> list[Event]:
        """Events after that number, in order."""


class IdempotencyRepository(Protocol):
    """Rows of ``idempotency_keys`` of one tenant."""

    async def claim(self, record: IdempotencyRecord) -> IdempotencyRecord | None:
        """Insert, or the record that is already there, locked: of two requests with one key the second waits."""

    async def update(self, key: str, *, ref: Mapping[str, Any], status: int) -> None:
        """Set what the key did, in the transaction that did it."""

    async def delete(self, key: str) -> None:
        """Forget a key whose request had no effect."""

    async def forget_older_than(self, age: timedelta) -> int:
        """Housekeeping, all tenants."""


class KeyRepository(Protocol):
    """Tenants and API keys; ``by_hash`` works without a tenant."""

    async def add_tenant(self, tenant_id: UUID, name: str) -> None:
        """Insert unless it exists."""

    async def tenant_by_name(self, name: str) -> UUID | None:
        """The tenant's id."""

    async def add(self, key: ApiKey) -> None:
        """Insert."""

    async def by_hash(self, secret_hash: bytes) -> ApiKey | None:
        """The key with that hash, unless revoked."""

    async def all(self) -> list[ApiKey]:
        """Every key (of the tenant, if the unit of work has one)."""

    async def revoke(self, key_id: UUID, at: datetime) -> bool:
        """False when there is none."""

    async def any(self) -> bool:
        """Whether any usable key exists in the whole database."""


class UnitOfWork(Protocol):
    """One short transaction of one tenant; rolled back on exit unless committed. Services commit, only they.

    After ``commit`` the events added in it stand in ``committed_events``, for publishing.
    """

    conversations: ConversationRepository
    messages: MessageRepository
    compactions: CompactionRepository
    states: StateRepository
    anchors: AnchorRepository
    segments: SegmentRepository
    expansions: ExpansionRepository
    detail_calls: DetailCallRepository
    verifications: VerificationRepository
    statistics: StatisticsRepository
    turns: TurnRepository
    events: EventRepository
    idempotency: IdempotencyRepository
    keys: KeyRepository
    works: WorkRepository

    @property
    def committed_events(self) -> Sequence[Event]:
        """Events of the commit, in order."""

    async def commit(self) -> None:
        """Make it so."""

    async def __aenter__(self) -> Self:
        """Begin."""

    async def __aexit__(self, *exc: object) -> None:
        """Roll back what was not committed, give the connection back."""


UnitOfWorkFactory = Callable[[UUID | None], UnitOfWork]
"""The argument is the tenant; ``None`` = all tenants, for the sweeper, key look-ups and the worker's first read."""

NewId = Callable[[], UUID]
"""UUIDv7."""
