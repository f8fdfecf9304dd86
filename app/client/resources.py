"""The API's resources as values. Fields that a newer service adds are kept under their names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class Resource(BaseModel):
    """A value that came from the service."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())


class Page(Resource, Generic[Item]):
    """One page of a list."""

    data: list[Item]
    next_cursor: str | None = None
    has_more: bool = False


class Items(Resource, Generic[Item]):
    """A list without pages."""

    data: list[Item]


class Breakdown(Resource):
    """How the tokens of a context are distributed."""

    system: int
    files: int = 0
    state: int
    anchors: int
    digests: int
    held: int
    tail: int
    recalled: int
    pending: int


class Pace(Resource):
    """How a conversation developed in its newest turns."""

    turns: int
    turn_tokens: int
    largest_turn: int
    turn_seconds: float | None
    compaction_seconds: float | None
    cached_share: float


class AdaptiveThresholds(Resource):
    """Thresholds that adapt to a conversation, as shares of the budget, and the numbers they are computed from."""

    background: float
    target: float
    own_background: float
    own_target: float
    pace: Pace | None
    explanation: str


class Gauge(Resource):
    """How full a context is; ``utilization`` is tokens divided by budget."""

    tokens: int
    budget: int
    window: int
    utilization: float
    status: str
    background_at: int | None
    sync_at: int | None
    tokens_until_compaction: int | None
    breakdown: Breakdown
    anchors_behind_marker: int = 0
    target: int | None = None
    adaptive: AdaptiveThresholds | None = None


class ConversationSummary(Resource):
    """A conversation in a list."""

    id: UUID
    title: str | None
    user_id: str | None
    locale: str
    system_prompt: str
    preset: str
    preset_version: int = 1
    state_schema: str | None
    compressed_at_message_id: UUID | None
    state_version: int
    compression_count: int
    metadata: dict[str, Any]
    message_count: int
    last_message_at: datetime | None
    context: Gauge
    created_at: datetime
    updated_at: datetime


class LiveContext(Resource):
    """What a stateful chat model's provider keeps of a conversation: everything up to ``through_seq``."""

    model: str
    response_id: str
    through_seq: int


class Conversation(ConversationSummary):
    """A conversation with its resolved policy and its state."""

    policy: dict[str, Any]
    compressed_state: dict[str, Any] | None
    scratchpad: dict[str, Any]
    live_context: LiveContext | None


class Message(Resource):
    """One entry of the history."""

    id: UUID
    conversation_id: UUID
    seq: int
    turn: int
    role: str
    content: str
    parts: list[dict[str, Any]]
    event_type: str
    status: str
    is_command: bool = False
    is_protected: bool
    protected_reason: str
    token_count: int
    model: str | None
    usage: dict[str, Any] | None
    reasoning: str = ""
    metadata: dict[str, Any]
    created_at: datetime
    utc_offset: int | None = None


class File(Resource):
    """A file attached to a conversation; every context contains it whole."""

    id: UUID
    conversation_id: UUID
    name: str
    media_type: str
    sha256: str
    bytes: int
    tokens: int
    created_at: datetime


class Continuity(Resource):
    """What a conversation can still answer after a compaction."""

    before: int
    after: int
    recall: float | None
    contradiction: float | None
    tone: float | None
    kinds: dict[str, dict[str, int]]


class CompactionContinuity(Resource):
    """The score of one compaction."""

    compaction_id: UUID
    trigger: str
    model: str | None
    from_seq: int | None
    to_seq: int | None
    state_version_after: int | None
    finished_at: datetime | None
    continuity: Continuity


class Compaction(Resource):
    """A compaction: planned, waiting, running or ended."""

    id: UUID | None
    conversation_id: UUID
    trigger: str
    ran_in: str
    status: str
    reason: str | None
    strategy: str
    model: str | None
    focus: str | None
    joined: bool
    attempts: list[dict[str, Any]]
    from_seq: int | None
    to_seq: int | None
    messages_covered: int
    tokens_before: int | None
    tokens_after: int | None
    ratio: float | None
    entries: dict[str, int]
    state_version_before: int
    state_version_after: int | None
    repairs: list[dict[str, Any]]
    prompt_version: str | None = None
    continuity: Continuity | None = None
    summary: str | None
    usage: dict[str, Any]
    cost_usd: float | None
    duration_ms: int | None
    retry_of: UUID | None
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Verification(Resource):
    """A verification of a version of the state: waiting, running or ended."""

    id: UUID
    state_version: int
    status: str
    reason: str | None
    model: str | None
    """``None`` until a model has answered."""
    claims: int | None
    """How many claims were judged; ``None`` unless it is ``done``."""
    changed: bool
    """Whether its verdicts led to a new version of the state."""
    usage: dict[str, Any]
    cost_usd: float | None
    requested_at: datetime
    finished_at: datetime | None


class Marker(Resource):
    """A place in a context that can be expanded."""

    text: str
    level: str
    segment_id: str


class Section(Resource):
    """A range of a context, and where it came from."""

    kind: str
    level: str | None
    segment_id: str | None
    seqs: list[int]
    tokens: int


class Recalled(Resource):
    """Recalled messages that follow each other."""

    segment_id: str | None
    level: str
    seqs: list[int]
    score: float | None = None
    reasons: dict[str, float] = Field(default_factory=dict)


class SeqRange(Resource):
    """Messages by position, inclusive."""

    from_seq: int
    to_seq: int


class Context(Resource):
    """The context that a model would be sent; ``messages`` (and ``system``) have the requested format."""

    messages: list[dict[str, Any]]
    system: str | None = None
    sections: list[Section]
    markers: list[Marker]
    recalled: list[Recalled] = Field(default_factory=list)
    recalled_by: str | None = None
    """``words`` or ``words_and_vectors``; ``None`` if no embedding model is set or nothing was searched for."""
    gauge: Gauge
    warnings: list[str]
    truncated: SeqRange | None
    compaction: Compaction | None = None


class ToolCall(Resource):
    """A call of one of your tools."""

    id: str
    name: str
    arguments: dict[str, Any]


class ChatResult(Resource):
    """A turn with its reply."""

    message: Message
    reply: Message
    context: Gauge
    compaction: Compaction | None
    recalled: list[Recalled]
    warnings: list[str]
    status: str = "completed"
    open_calls: list[ToolCall] = Field(default_factory=list)
    finish: str = "stop"


class ChatEvent(Resource):
    """An event in a streamed turn; the last one has ``result``."""

    type: str
    id: int | None = None
    data: Mapping[str, Any] = Field(default_factory=dict)
    result: ChatResult | None = None

    @property
    def text(self) -> str:
        """The piece of the reply in a ``reply.delta``; empty for other events."""
        return str(self.data.get("text", "")) if self.type == "reply.delta" else ""

    @property
    def reasoning(self) -> str:
        """The piece of the model's reasoning in a ``reasoning.delta``; empty for other events."""
        return str(self.data.get("text", "")) if self.type == "reasoning.delta" else ""

    @property
    def notification(self) -> dict[str, Any] | None:
        """A notification for the user about a compaction inside the turn, if the policy wants one."""
        return self.data.get("notification")


class Interruption(Resource):
    """Whether a reply was running, and which message it answered."""

    interrupted: bool
    message_id: UUID | None


class Anchor(Resource):
    """A verbatim passage that is never compressed."""

    id: UUID
    type: str
    content: str
    original_position: int
    offset: int
    message_id: UUID
    speaker: str
    pasted: bool
    status: str
    proposed_by: str
    superseded_by: UUID | None


class Segment(Resource):
    """A range of covered messages on one topic, at one level of detail."""

    segment_id: str
    topic: str
    from_seq: int | None
    to_seq: int | None
    started_at: datetime | None
    ended_at: datetime | None
    message_count: int
    is_current: bool = True
    """Whether it belongs to the current state version."""
    level: str
    content: str
    messages: list[Message]
    """The originals, at the level ``full``."""
    anchors: list[Anchor]
    expansion_markers: list[Marker]
    token_count: int
    made_by: str
    truncated: bool
    next_cursor: str | None

    def joined(self, following: Segment) -> Segment:
        """This page and the following one, joined."""
        return following.model_copy(
            update={
                "from_seq": self.from_seq,
                "started_at": self.started_at,
                "content": self.content + following.content,
                "messages": [*self.messages, *following.messages],
                "token_count": self.token_count + following.token_count,
            }
        )


class StateVersion(Resource):
    """One version of a conversation's state."""

    version: int
    state: dict[str, Any]
    state_schema: str
    provenance: list[dict[str, Any]]
    repairs: list[dict[str, Any]]
    made_by: str
    verified: str
    verification: dict[str, Any] | None
    compaction_id: UUID | None
    boundary_seq: int
    created_at: datetime


class Examination(Resource):
    """What checks of earlier versions of the service damaged in the state that is served."""

    conversation_id: UUID
    state_version: int
    damages: list[dict[str, Any]]
    sound_version: int | None
    messages: int
    tokens: int
    by_model: bool
    repairs: list[dict[str, Any]]
    state_version_now: int


class StateDifference(Resource):
    """The differences between version ``a`` and version ``b``."""

    a: int
    b: int
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[dict[str, Any]]


class SearchHit(Resource):
    """A message that matches a query."""

    message_id: UUID
    seq: int
    segment_id: str | None
    snippet: str
    score: float
    role: str
    created_at: datetime


class Event(Resource):
    """An event of a conversation."""

    id: str
    type: str
    conversation_id: UUID
    occurred_at: datetime
    data: Mapping[str, Any]
    notification: dict[str, Any] | None = None


class PresetVersion(Resource):
    """An earlier version of a preset."""

    version: int
    policy: dict[str, Any]


class Preset(Resource):
    """A policy with a name."""

    name: str
    title: str
    design: str
    description: str
    is_default: bool = False
    """Whether it is the preset of conversations that name none."""
    version: int = 1
    policy: dict[str, Any]
    earlier: list[PresetVersion] = Field(default_factory=list)
    """The versions before, which conversations made with them keep."""


class Stats(Resource):
    """The measures of a conversation or of all; their names are the service's."""


class TokenCount(Resource):
    """The number of tokens, by the service's estimator."""

    tokens: int


class LimitStanding(Resource):
    """How much of one limit is used; times are in seconds."""

    name: str
    of: str
    limit: float
    used: float
    remaining: float
    resets_in: float
    retry_after: float


class KeyLimits(Resource):
    """What a key may request."""

    key_id: UUID | None
    user_id: str | None
    stream_seconds: float | None
    limits: list[LimitStanding]


class Erasure(Resource):
    """An end user whose conversations are being deleted."""

    id: UUID
    requested_at: datetime


class AuditEntry(Resource):
    """Who did what."""

    id: UUID
    occurred_at: datetime
    actor: str
    key_id: UUID | None
    action: str
    object_id: str | None
    data: dict[str, Any]
