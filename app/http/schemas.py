"""Responses, exactly as the API's contract names them. ``present.py`` makes them from the services' values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AliasPath, BaseModel, ConfigDict, Field

from app.core.model.anchors import AnchorStatus, AnchorType, Proposer, Speaker
from app.core.model.continuity import ProbeKind
from app.core.model.conversation import MessageStatus, ProtectedReason, Role
from app.core.model.gauge import GaugeStatus
from app.core.model.model_io import FinishReason
from app.core.model.records import Actor, CompactionStatus, RanIn, VerificationStatus
from app.core.model.repairs import RepairReason
from app.core.model.segments import LevelName
from app.core.model.state import MadeBy, Origin, Standing, Verified
from app.core.validation.damage import DamageKind

Item = TypeVar("Item")
Moment = Annotated[datetime, AfterValidator(lambda value: value.astimezone(UTC))]
"""A time, shown in UTC with a ``Z``."""


class Output(BaseModel):
    """A response body, read from a value's attributes; a ``validation_alias`` is the name of the value's attribute."""

    model_config = ConfigDict(from_attributes=True, frozen=True)

    @classmethod
    def from_value(cls, value: object, **further: Any) -> Self:
        """A resource with these fields; the others come from the value's attributes of the same names."""
        same = {name: getattr(value, name) for name in cls.model_fields if name not in further}
        return cls(**same, **further)


class Listing(Output, Generic[Item]):
    """One page of a list."""

    data: list[Item]
    next_cursor: str | None = None
    has_more: bool = False

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """The model's name in the OpenAPI document, such as ``MessageList``."""
        return f"{params[0].__name__}List"


class Breakdown(Output):
    """How the tokens of a context are distributed; their sum is ``tokens`` of its gauge."""

    system: int
    files: int = Field(description="The attached files, which every context has whole.")
    state: int
    anchors: int
    digests: int
    held: int
    tail: int
    recalled: int
    pending: int


class Pace(Output):
    """How a conversation developed in its newest turns."""

    turns: int
    turn_tokens: int = Field(description="What a turn added on average.")
    largest_turn: int = Field(description="What the largest of them added, in tokens.")
    turn_seconds: float | None = Field(description="From turn to turn when it was brisk.")
    compaction_seconds: float | None = Field(description="The longest of the newest compactions.")
    cached_share: float = Field(description="Of the tokens sent, the share that came from the provider's cache.")


class AdaptiveThresholds(Output):
    """Thresholds that adapt to the conversation, as shares of the budget, and the numbers they are computed from."""

    background: float
    target: float
    own_background: float = Field(description="The policy's own number.")
    own_target: float
    pace: Pace | None = Field(description="Null while too few turns are there: the policy's own numbers hold.")
    explanation: str = Field(description="Why they are where they are, in the conversation's language.")


class Gauge(Output):
    """How full a context is, in tokens; ``utilization`` is tokens divided by budget."""

    tokens: int
    budget: int
    window: int
    utilization: float
    status: GaugeStatus
    background_at: int | None
    sync_at: int | None
    tokens_until_compaction: int | None
    breakdown: Breakdown
    anchors_behind_marker: int = Field(description="Active anchors for which the block has no room.")
    target: int = Field(description="What a compaction folds down to, in tokens.")
    adaptive: AdaptiveThresholds | None = Field(
        description="What the thresholds follow from; null where they are the policy's own."
    )


class ConversationSummary(Output):
    """A conversation in a list."""

    id: UUID
    title: str | None
    user_id: str | None
    locale: str
    system_prompt: str
    preset: str
    preset_version: int
    state_schema: str | None
    compressed_at_message_id: UUID | None
    state_version: int
    compression_count: int
    metadata: dict[str, Any]
    message_count: int
    last_message_at: Moment | None
    context: Gauge
    created_at: Moment
    updated_at: Moment


class LiveContext(Output):
    """What a stateful chat model's provider keeps of a conversation: everything up to ``through_seq``."""

    model: str
    response_id: str
    through_seq: int


class Conversation(ConversationSummary):
    """A conversation; ``policy`` is resolved and has every field."""

    policy: dict[str, Any]
    compressed_state: dict[str, Any] | None
    scratchpad: dict[str, Any]
    live_context: LiveContext | None


class UIMessage(Output):
    """One entry of the history as a message of the AI SDK (``?format=ui``)."""

    id: str
    role: Literal["system", "user", "assistant"]
    metadata: dict[str, Any]
    parts: list[dict[str, Any]]


class Message(Output):
    """One entry of the history; ``turn`` is its position, counted from 0."""

    id: UUID
    conversation_id: UUID
    seq: int
    turn: int
    role: Role
    content: str
    parts: list[dict[str, Any]]
    event_type: str
    status: MessageStatus
    is_command: bool = Field(description="A typed command or its answer: in the history, and in no context.")
    is_protected: bool
    protected_reason: ProtectedReason
    token_count: int
    model: str | None
    usage: dict[str, Any] | None
    reasoning: str = Field(
        description="What the model showed of its thoughts, where it showed any: never a part of what it is sent later."
    )
    metadata: dict[str, Any]
    created_at: Moment
    utc_offset: int | None = Field(
        description="In minutes: that of the time that the client gave; null for UTC. The message's day is that there."
    )


class File(Output):
    """A file that is attached to a conversation."""

    id: UUID
    conversation_id: UUID
    name: str
    media_type: str
    sha256: str = Field(description="Of its bytes, in hexadecimal.")
    bytes: int
    tokens: int = Field(description="What it weighs in every context, as estimated.")
    created_at: Moment


class ExportedFile(File):
    """A file together with its bytes."""

    data: str = Field(description="In Base64.")


class MessageBatchResult(Output):
    """The appended messages, in order."""

    data: list[Message]


class Usage(Output):
    """Tokens and money, as the provider reported them."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None


class Attempt(Output):
    """One model call of a compaction."""

    model: str
    outcome: str
    reason: str | None
    duration_ms: int
    usage: Usage
    prompt_version: str | None = Field(
        description="Of the prompt and the schema that the model was given. Null for the offline summarizer, which is "
        "given none, and for calls made before versions were recorded."
    )


class EntryCounts(Output):
    """What happened to the entries of the state."""

    added: int
    kept: int
    superseded: int
    dropped: int
    restored_by_code: int
    ungrounded: int


class Repair(Output):
    """One change of a summary, made by code, or by the model when it was asked again about its answer."""

    field: str
    entry_id: str | None = Field(description="The entry that it became, or that it is about.")
    before: str = Field(description="As the model wrote it; empty for what was added, and once a source was erased.")
    after: str | None = Field(description="What stands there now; null: nothing does.")
    reason: RepairReason


class Answered(Output):
    """Probes of one kind."""

    before: int = Field(description="Answered from the context before.")
    after: int = Field(description="Of those, answered from the context after.")
    contradicted: int = Field(description="Of those, answered with something else than the messages say.")


class Continuity(Output):
    """What a conversation can still answer after a compaction, measured by probes of the folded messages."""

    before: int = Field(description="Probes that the context before answered.")
    after: int = Field(description="Of those, the probes that the context after answers.")
    recall: float | None = Field(description="after ÷ before; null without a probe.")
    contradiction: float | None = Field(description="Of `before`, the share answered otherwise; null without a probe.")
    tone: float | None = Field(description="Of language and moods of the user, the share that is told; null for none.")
    kinds: dict[ProbeKind, Answered] = Field(description="By kind of probe.")


class CompactionContinuity(Output):
    """The score of one compaction."""

    compaction_id: UUID
    trigger: str
    model: str | None
    from_seq: int | None
    to_seq: int | None
    state_version_after: int | None
    finished_at: Moment | None
    continuity: Continuity


class Compaction(Output):
    """A compaction that is planned, waiting, running or ended.

    Tokens are those of the served context, with the same tail.
    """

    id: UUID | None = Field(description="Null for a dry run, which is not stored.")
    conversation_id: UUID
    trigger: str
    ran_in: RanIn
    status: CompactionStatus | Literal["planned"]
    reason: str | None
    strategy: str
    model: str | None
    focus: str | None
    joined: bool
    attempts: list[Attempt]
    from_seq: int | None
    to_seq: int | None
    messages_covered: int
    tokens_before: int | None
    tokens_after: int | None
    ratio: float | None = Field(description="tokens_after ÷ tokens_before")
    entries: EntryCounts
    state_version_before: int
    state_version_after: int | None
    repairs: list[Repair] = Field(description="What was done to the summary.")
    prompt_version: str | None = Field(
        description="That of the last attempt that has one: of the accepted answer, if there is one."
    )
    continuity: Continuity | None = Field(description="What can still be answered; null where nothing was asked.")
    summary: str | None
    usage: Usage
    cost_usd: float | None
    duration_ms: int | None
    retry_of: UUID | None
    requested_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class Provenance(Output):
    """Where an entry of a state came from; ``pruned`` is set only in the version whose cap removed it."""

    entry_id: str = Field(validation_alias="id")
    field: str
    text: str
    from_seqs: list[int]
    since_version: int
    origins: list[Origin] = Field(description="Where its sources came from: who said it, a tool, a pasted document.")
    superseded: list[str]
    in_doubt: bool = Field(description="Given up without a proof, or stated nowhere: served after the others, marked.")
    standing: Standing | None = Field(
        description="Why it is in doubt: unverified (a verifier found it nowhere) or set_aside (a model gave it up)."
        " If it was removed: superseded, or null without a successor."
    )
    pruned: bool


class VerificationCounts(Output):
    """How a model judged the claims of a version."""

    model: str
    prompt_version: str
    claims: int
    supported: int
    contradicted: int = Field(description="With a quote that stands in a message: these changed the state.")
    not_stated: int
    unproven: int = Field(
        description="Contradictions without such a quote, and support of what was cut: they changed nothing."
    )
    unanswered: int
    usage: Usage


class Verification(Output):
    """A verification of a version of the state that waits, runs or has ended."""

    id: UUID
    state_version: int = Field(
        description="The version that is judged. While it waits, a later one may take its place."
    )
    status: VerificationStatus
    reason: str | None
    model: str | None = Field(description="Null until a model has answered.")
    claims: int | None = Field(description="How many claims were judged; null unless it is `done`.")
    changed: bool = Field(description="Whether its verdicts led to a new version of the state.")
    usage: Usage
    cost_usd: float | None
    requested_at: Moment
    finished_at: Moment | None


class StateVersion(Output):
    """One version of a conversation's state."""

    version: int
    state: dict[str, Any]
    state_schema: str
    provenance: list[Provenance] = Field(validation_alias="entries")
    repairs: list[Repair] = Field(description="What was done to the summary that it was made from.")
    made_by: MadeBy
    verified: Verified = Field(description="By code alone (exact); a model is going to (pending); a model did (model).")
    verification: VerificationCounts | None
    compaction_id: UUID | None
    boundary_seq: int
    created_at: Moment


class Damage(Output):
    """One text in the served state that earlier checks damaged."""

    kind: DamageKind
    field: str = Field(validation_alias=AliasPath("entry", "field"))
    entry_id: str = Field(validation_alias=AliasPath("entry", "id"))
    text: str = Field(validation_alias=AliasPath("entry", "text"))
    state_version: int = Field(validation_alias="version", description="The version in which it was damaged.")


class Examination(Output):
    """What checks of earlier versions of the service damaged in the state that is served."""

    conversation_id: UUID
    state_version: int = Field(description="The version that was examined; 0: there is no state.")
    damages: list[Damage] = Field(validation_alias="found")
    sound_version: int | None = Field(
        description="The newest version before in which nothing is damaged; 0: before the first compaction. "
        "Restored and compacted again from there, the state is made anew. Null: nothing is damaged."
    )
    messages: int = Field(description="How many messages would be folded again from there.")
    tokens: int = Field(description="What those weigh.")
    by_model: bool = Field(description="Whether a language model would summarize them.")
    repairs: list[Repair] = Field(description="What was mended by code.")
    state_version_now: int


class Anchor(Output):
    """A verbatim passage that is never compressed; `original_position` is the `seq` of its message."""

    id: UUID
    type: AnchorType
    content: str
    original_position: int = Field(validation_alias="seq")
    offset: int = Field(description="Where it begins in the message's content, in characters.")
    message_id: UUID
    speaker: Speaker
    pasted: bool = Field(description="It stands in a text that the speaker only shows: not their own word.")
    status: AnchorStatus = Field(description="`withdrawn`: two models agree that it never was an anchor.")
    proposed_by: Proposer = Field(description="`user`: its status was set to `active` by hand; no model changes it.")
    superseded_by: UUID | None = Field(description="The anchor that took its place.")


class EntryChange(Output):
    """An entry whose text differs between two versions."""

    entry_id: str
    field: str
    before: str
    after: str


class StateDifference(Output):
    """What changed from version `a` to version `b`."""

    a: int
    b: int
    added: list[Provenance]
    removed: list[Provenance]
    changed: list[EntryChange]


class ContextMessage(Output):
    """One entry of a context; ``seq`` is null if the service wrote it."""

    role: Role
    content: str
    parts: list[dict[str, Any]]
    seq: int | None
    turn: int | None
    """Its position in the history, counted from 0."""
    event_type: str | None
    is_protected: bool
    """Whether it is served word for word, whatever is folded."""


class Section(Output):
    """A range of a context, and where it came from."""

    kind: str
    level: str | None
    segment_id: str | None
    seqs: list[int]
    tokens: int


class Marker(Output):
    """A place in a context that can be expanded."""

    text: str
    level: str
    segment_id: str


class Segment(Output):
    """A stretch of folded messages at one level of detail, or one of the lists `earlier` and `anchors`."""

    segment_id: str
    topic: str
    from_seq: int | None = Field(description="Of a list: of what this page shows; null when that is nothing.")
    to_seq: int | None
    started_at: Moment | None
    ended_at: Moment | None
    message_count: int = Field(description="Commands and erased messages left out.")
    is_current: bool = Field(description="Whether the present state covers it; after a restore it need not.")
    level: LevelName = Field(description="What `content` or `messages` hold: in a list the nearest one there is.")
    content: str = Field(description="The level's text; pages put together are the whole. Empty at `full`.")
    messages: list[Message] = Field(description="At `full`: the originals, whole, in order, commands left out.")
    anchors: list[Anchor] = Field(description="The active ones in it.")
    expansion_markers: list[Marker] = Field(description="What leads on from here: deeper, or from a list.")
    token_count: int = Field(description="What this page weighs.")
    made_by: str = Field(description="`extractive`, or the name of the model that wrote it.")
    truncated: bool
    next_cursor: str | None = Field(description="`after` of the next page.")


class SeqRange(Output):
    """Messages by position, inclusive."""

    from_seq: int
    to_seq: int


class Recalled(Output):
    """Recalled messages that follow each other in the history."""

    segment_id: str | None
    level: str
    seqs: list[int]


class RecalledMessage(Recalled):
    """One recalled message, and why it was recalled."""

    score: float
    reasons: dict[str, float] = Field(description="The strongest features, with what each added to the score.")


class AssembledContext(Output):
    """What a model would be sent."""

    messages: list[ContextMessage] | list[dict[str, Any]] = Field(
        description="In the format that was asked for: as the provider's request has them."
    )
    system: str | None = Field(description="The system text, for `gemini` and `anthropic`; else it is a message.")
    sections: list[Section]
    markers: list[Marker]
    recalled: list[RecalledMessage] = Field(description="Best first.")
    recalled_by: Literal["words", "words_and_vectors"] | None = Field(
        description="What recall went by; null where no embedding model is set, or nothing was looked for."
    )
    gauge: Gauge
    warnings: list[str]
    truncated: SeqRange | None
    compaction: Compaction | None = Field(description="What `compact: if_needed` ran or waited for.")


class ToolCall(Output):
    """A call of one of the client's tools."""

    id: str
    name: str
    arguments: dict[str, Any]


class ChatResult(Output):
    """A turn: the user's message, the reply, and what happened to the context."""

    message: Message
    reply: Message
    context: Gauge
    compaction: Compaction | None
    recalled: list[Recalled]
    warnings: list[str]
    status: Literal["completed", "interrupted", "requires_action"]
    open_calls: list[ToolCall] = Field(
        description="Calls of your tools that `reply` makes, and whose results the next request is to bring."
    )
    finish: FinishReason = Field(description="Why the model's last step ended.")


class Interruption(Output):
    """Whether a reply was running, and which message it answered."""

    interrupted: bool
    message_id: UUID | None


class Notification(Output):
    """A notification for the user."""

    level: str
    title: str
    message: str
    locale: str


class Event(Output):
    """An event; ``id`` is its number within the conversation, in decimal."""

    id: str
    type: str
    conversation_id: UUID
    occurred_at: Moment
    data: dict[str, Any]
    notification: Notification | None


class PresetVersion(Output):
    """An earlier version of a preset."""

    version: int
    policy: dict[str, Any]


class Preset(Output):
    """A policy with a name."""

    name: str
    title: str
    design: str
    description: str
    is_default: bool
    """Whether it is the preset of conversations that name none."""
    version: int
    policy: dict[str, Any]
    earlier: list[PresetVersion] = Field(description="The versions before, which conversations made with them keep.")


class TokenCount(Output):
    """The number of tokens, by the script-aware estimator."""

    tokens: int


class LimitStanding(Output):
    """How much of one limit is used; money is in US dollars."""

    name: str = Field(examples=["requests_per_minute"])
    of: Literal["tenant", "key"]
    limit: float
    used: float
    remaining: float
    resets_in: float = Field(description="Seconds until all of it is there again, if nothing more is asked for.")
    retry_after: float = Field(description="Seconds until there is room again; 0 while there is.")


class KeyLimits(Output):
    """What a key may request. Without a key, if none is needed, there are no limits."""

    key_id: UUID | None
    user_id: str | None = Field(description="The end user whose conversations alone the key sees.")
    stream_seconds: float | None = Field(description="How long a stream lasts.")
    limits: list[LimitStanding]


class Erasure(Output):
    """An end user whose conversations are being erased."""

    id: UUID
    requested_at: Moment


class AuditEntry(Output):
    """Who did what, in ids and numbers."""

    id: UUID
    occurred_at: Moment
    actor: Actor = Field(
        description="`key`; `open`: a request where no key is asked for; `cli`: the command line;"
        " `service`: the service itself, which nobody asked."
    )
    key_id: UUID | None
    action: str = Field(examples=["conversation.deleted"])
    object_id: str | None
    data: dict[str, Any]


class Health(Output):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class Readiness(Output):
    """The state of what the service depends on. Without Redis it works the same, but notices changes later."""

    status: Literal["ok", "degraded"]
    postgres: Literal["ok", "read_only"]
    redis: Literal["ok", "away"]
    row_security: Literal["on", "off"]
    """Whether Postgres itself separates tenants, in addition to the service."""
    background: Literal["ok", "restarting"]
    """Whether the sweeper and other background work of this process run, and have run for a minute since they last
    ended.
    """
