"""The values a conversation is made of, as the core and the services see them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from app.core.model.calibration import counted, estimated_within
from app.core.model.fieldwise import combine_fields
from app.core.model.pace import Pace
from app.core.model.segments import ShownSegment
from app.core.text.parts import Part

Role = Literal["user", "assistant", "system", "tool"]
MessageStatus = Literal["complete", "interrupted", "erased", "superseded"]
ProtectedReason = Literal[
    "initial_objective",
    "explicit_constraint",
    "authentication",
    "goal_statement",
    "system",
    "pinned",
    "over_allotment",
    "compressible",
]

UNPROTECTED: frozenset[str] = frozenset({"compressible", "over_allotment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Counts over consecutive messages, mostly from the first on; commands and erased messages are not counted.

    ``held_*``: counts of the held messages only.
    """

    messages: int = 0
    tokens: int = 0
    bytes: int = 0
    held_tokens: int = 0
    held_bytes: int = 0

    def plus(self, other: Sums) -> Sums:
        """These sums with those of further messages added."""
        return combine_fields(operator.add, self, other)

    def minus(self, other: Sums) -> Sums:
        """These sums without those of some messages."""
        return combine_fields(operator.sub, self, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of the session history. ``seq`` is 1, 2, 3 … without gaps; originals never change."""

    id: UUID
    conversation_id: UUID
    seq: int
    role: Role
    content: str
    parts: tuple[Part, ...] = ()
    event_type: str = "casual"
    status: MessageStatus = "complete"
    is_command: bool = False
    """Marked by the service: a typed ``/compact`` and its answer. Shown in the history, never in a context."""
    protected_reason: ProtectedReason = "compressible"
    is_pinned: bool = False
    """Whether a client pinned it: it stays pinned whatever the policy's rules say."""
    token_count: int = 0
    byte_length: int = 0
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    reasoning: str = ""
    """The thoughts that the model showed. They are only displayed: never served, weighed, searched or folded, and read
    only where they are displayed (``MessageRepository.with_reasoning``)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime

    @property
    def utc_offset(self) -> int | None:
        """The UTC offset, in minutes, of the clock by which it was said; ``None`` for UTC."""
        return (self.created_at.utcoffset() or timedelta()) // timedelta(minutes=1) or None

    @property
    def is_protected(self) -> bool:
        """Whether it is held: served verbatim even after it is covered."""
        return self.protected_reason not in UNPROTECTED

    @property
    def is_part_of_talk(self) -> bool:
        """Whether it is a part of the talk: it is not a command and was not erased."""
        return not self.is_command and self.status != "erased"

    @property
    def is_spoken(self) -> bool:
        """Whether it is what the user or the assistant said."""
        return self.role in {"user", "assistant"} and self.is_part_of_talk

    @property
    def turn(self) -> int:
        """The message's own position from 0, as the Sessions Pattern calls it; not a pair of question and answer."""
        return self.seq - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What the planner needs of a message: everything but its text."""

    seq: int
    role: Role
    token_count: int
    byte_length: int
    is_protected: bool = False
    is_command: bool = False
    anchor_tokens: int = 0
    """The tokens that its active anchors will take in the state block once it is covered."""
    calls: frozenset[str] = frozenset()
    """Ids of the tool calls this message makes."""
    results: frozenset[str] = frozenset()
    """Ids of the tool calls this message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    """What a message says, without its weights: cheap to read by the thousand."""

    seq: int
    role: Role
    status: MessageStatus
    is_command: bool
    content: str
    parts: Sequence[Part]
    metadata: Mapping[str, Any]


MAX_WAIT: Final = timedelta(days=2)
"""The longest time that anything is put off; a process whose clock was wrong may have written a later moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietPeriod:
    """The quiet period: no trigger fires until all three bounds are passed. ``reason`` says why it was set."""

    until_seq: int = 0
    """There has to be a message after this one."""
    until_tokens: int = 0
    """The context has to weigh at least this much."""
    until: datetime | None = None
    """This moment has to be past."""
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the state block is served; stored with the state version, so that served bytes stay the same."""

    text: str
    """The state's JSON inside the ``<session_state>`` element."""
    tokens: int
    """The tokens that the whole block adds to a context, including its acknowledgement and the anchors."""
    anchors: str = ""
    """The rendered ``<anchors>`` element with its marker; empty when no anchor is served."""
    anchor_tokens: int = 0
    """The part of ``tokens`` that the anchors take."""
    anchors_behind_marker: int = 0
    """Active anchors for which there was no room."""
    held: tuple[int, ...] = ()
    """``seq`` of the held messages that follow the block."""
    held_days: str = ""
    """The rendered element with the days of these messages; empty when no message follows."""
    held_day_tokens: int = 0
    """The part of ``tokens`` that the element with the days takes."""
    digests: str = ""
    """The rendered ``<digests>`` element with its markers; empty when no digest is served."""
    digest_tokens: int = 0
    """The part of ``tokens`` that the digests take."""
    digest_room: int | None = None
    """The most tokens that the digests may take until the next version; ``None``: their allotment."""
    segments: tuple[ShownSegment, ...] = ()
    """The segments that the digests show, each with its level, in order of position."""

    @property
    def state_tokens(self) -> int:
        """The part of ``tokens`` that the state takes, with the block's own lines."""
        return self.tokens - self.anchor_tokens - self.digest_tokens - self.held_day_tokens

    def without_held_days(self) -> Layout:
        """This layout without the days of held messages."""
        return replace(self, held_days="", held_day_tokens=0, tokens=self.tokens - self.held_day_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveContext:
    """A context that a stateful model's provider keeps: it holds the conversation up to one message."""

    model: str
    """The chat model, by the name under which it is asked."""
    response_id: str
    """The provider's id of its last response: a request that names it goes on from there."""
    through_seq: int
    """The last message that is in it; what came after has not been sent yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The stored row. Its sums make utilization O(1): no turn counts the history again."""

    id: UUID
    tenant_id: UUID
    title: str | None = None
    user_id: str | None = None
    locale: str = "en"
    system_prompt: str = ""
    preset: str = "semantic"
    preset_version: int = 1
    """The version of the preset whose policy it has."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The overrides as given; the resolved policy comes from ``resolving.resolve``."""
    state_schema: str | None = None
    compressed_state: Mapping[str, Any] | None = None
    compressed_at_message_id: UUID | None = None
    boundary_seq: int = 0
    state_version: int = 0
    layout: Layout | None = None
    layout_version: int = 0
    """How often the layout has changed."""
    compression_count: int = 0
    content_epoch: int = 0
    """Grows with each erasure, restore, and reply that is made again. Whatever was read before that is stale."""
    token_factor: float = 1.0
    """The provider's reported tokens ÷ our estimates. Stored sums are estimates; they are multiplied when compared."""
    scratchpad: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    last_seq: int = 0
    last_message_id: UUID | None = None
    last_message_at: datetime | None = None
    last_event: int = 0
    total: Sums = field(default_factory=Sums)
    """Sums through ``last_seq``."""
    covered: Sums = field(default_factory=Sums)
    """Sums through ``boundary_seq``."""
    context_tokens: int = 0
    trigger_tokens: int | None = None
    """A compaction is due when ``context_tokens`` reaches this number; ``None`` = never."""
    context_messages: int = 0
    """Messages after the boundary."""
    trigger_messages: int | None = None
    """A compaction is due when ``context_messages`` reaches this number; ``None`` = never."""
    quiet: QuietPeriod = field(default_factory=QuietPeriod)
    failure_count: int = 0
    """Failed automatic compactions in a row; sets the back-off."""
    pace: Pace | None = None
    """The pace of its newest turns, measured at the end of each turn if the policy's thresholds are adaptive."""
    live: LiveContext | None = None
    """The context from which a stateful chat model goes on; ``None`` = the next request holds the whole context."""
    file_tokens: int = 0
    """The tokens that the attached files take in every context."""
    file_bytes: int = 0
    """The bytes of all attached files."""
    anchors_due_from: int | None = None
    """The first message in which anchors are still to be looked for; ``None`` = all messages were looked at."""
    forked_from: UUID | None = None
    """The conversation whose first messages were copied into it."""
    forked_through: int | None = None
    """The last message to be copied; while ``last_seq`` is smaller, the copying still goes on."""
    created_at: datetime
    updated_at: datetime

    @property
    def is_being_copied(self) -> bool:
        """Whether messages of the conversation that it was forked from are still missing."""
        return self.last_seq < (self.forked_through or 0)

    def counted(self, estimated: int) -> int:
        """Estimated tokens converted to the provider's tokens: budgets and thresholds are compared with these."""
        return counted(estimated, self.token_factor)

    def estimated_within(self, tokens: int) -> int:
        """The most estimated tokens that are at most ``tokens`` of the provider's: contexts are built in estimates."""
        return estimated_within(tokens, self.token_factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of model calls, as the provider reported them; ``cost_usd`` is ``None`` when unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: Usage) -> Usage:
        """The sum of both; if only one cost is known, the unknown one counts as 0."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(costs) if costs else None,
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that is stored and shown."""
        return asdict(self)
