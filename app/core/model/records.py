"""Stored records without rules of their own: compactions, turns, events, keys."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, Final, Literal
from uuid import UUID

from app.core.model.continuity import Continuity
from app.core.model.conversation import Usage
from app.core.model.fieldwise import combine_fields

CompactionStatus = Literal["queued", "running", "applied", "skipped", "rejected", "failed", "superseded"]
RanIn = Literal["worker", "turn", "request", "sweeper"]
WorkKind = Literal["append", "context", "search", "expansion", "erasure", "compaction", "examination"]
"""The kind of work that is done on a conversation's texts."""
TurnStatus = Literal["running", "completed", "interrupted", "failed"]
VerificationStatus = Literal["queued", "running", "done", "failed", "stale", "skipped"]
Scope = Literal["read", "write", "admin"]
Actor = Literal["key", "open", "cli", "service"]
Fold = Literal["to_target", "all"]

ERASURE_TRIGGER = "erasure"
"""The trigger of a compaction that writes a narrative anew after an erasure; it folds nothing."""

IN_FLIGHT: frozenset[str] = frozenset({"queued", "running"})
"""Statuses of a compaction or a verification that has not ended."""

MAX_CLAIMS: Final = 5
"""The most times that a compaction is claimed without a commit. A restart costs one or two claims; a job that ended
five processes is itself at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One model call of a compaction: ids and numbers, never text."""

    model: str
    outcome: Literal["accepted", "refused", "error"]
    reason: str | None
    duration_ms: int
    usage: Usage
    metered: bool = True
    """Whether the call cost money: the spend guard counts it."""
    prompt_version: str | None = None
    """The version of the summarizer's prompt and schema; ``None`` for a model that reads none, and in older rows."""
    retry_after: float | None = None
    """The seconds that the provider, or the circuit before it, asked to be left alone, if that helps."""


DetailCallPurpose = Literal["detail", "embedding"]
"""What a call was for: a segment's L1, or vectors of messages and questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailCall:
    """A model call beside compactions and verifications: ids and numbers, never text."""

    id: UUID
    conversation_id: UUID
    called_at: datetime
    attempt: Attempt | None = None
    """How the call went; ``None`` while it runs, and for ever if its process died."""
    purpose: DetailCallPurpose = "detail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A verification of a state version's claims, due or done: ids and numbers, never text."""

    id: UUID
    conversation_id: UUID
    version: int
    """The version that is judged; while the row is queued, a later version may take its place."""
    status: VerificationStatus = "queued"
    reason: str | None = None
    tries: int = 0
    after: datetime | None = None
    """It does not begin before this moment: it was put off, or another process works on it."""
    asked_at: datetime | None = None
    """When a model was last asked."""
    attempts: tuple[Attempt, ...] = ()
    created_at: datetime
    finished_at: datetime | None = None

    @property
    def model(self) -> str | None:
        """The model that gave the last answer; ``None`` if none has answered."""
        return next((one.model for one in reversed(self.attempts) if one.outcome != "error"), None)

    @property
    def usage(self) -> Usage:
        """The usage of all calls."""
        return reduce(Usage.plus, (attempt.usage for attempt in self.attempts), Usage())


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationView:
    """A verification, and what came of it."""

    verification: Verification
    claims: int | None = None
    """How many claims were judged; ``None`` unless the verification is ``done``."""
    changed: bool = False
    """Whether its verdicts led to a new version of the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCounts:
    """What a compaction did to the entries of the state."""

    added: int = 0
    kept: int = 0
    superseded: int = 0
    dropped: int = 0
    restored_by_code: int = 0
    ungrounded: int = 0

    def plus(self, other: EntryCounts) -> EntryCounts:
        """The sum over chunks, with ``kept`` from the last chunk."""
        return replace(combine_fields(operator.add, self, other), kept=other.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRequest:
    """What a compaction was asked to fold: stored for requests that join it and processes that take it over."""

    fold: Fold = "to_target"
    keep_turns: int = 0
    keep_messages: int = 0
    keep_tokens: int = 0
    up_to_seq: int | None = None
    focus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A compaction: its row serves as lock, outbox, audit record and API resource at once."""

    id: UUID
    tenant_id: UUID
    conversation_id: UUID
    trigger: str
    ran_in: RanIn
    status: CompactionStatus
    reason: str | None = None
    strategy: str = "semantic"
    """The preset's name at the time, for the record only."""
    model: str | None = None
    request: FoldRequest = field(default_factory=FoldRequest)
    attempts: tuple[Attempt, ...] = ()
    from_seq: int | None = None
    to_seq: int | None = None
    messages_covered: int = 0
    tokens_before: int | None = None
    tokens_after: int | None = None
    entries: EntryCounts = field(default_factory=EntryCounts)
    state_version_before: int = 0
    state_version_after: int | None = None
    usage: Usage = field(default_factory=Usage)
    duration_ms: int | None = None
    fidelity: float | None = None
    """The share of the last folded chunk's exact values that are still served verbatim; only a measure."""
    continuity: Continuity | None = None
    """How many probes of all its chunks can still be answered; ``None`` if no probe was made."""
    retry_of: UUID | None = None
    claims: int = 0
    """How often it was claimed since the last commit; this counts crashes, not model calls."""
    lease_token: UUID | None = None
    lease_until: datetime | None = None
    owner: str | None = None
    """The process that holds the lease."""
    sent_at: datetime | None = None
    """When its id was last handed to the broker."""
    requested_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def in_flight(self) -> bool:
        """Whether it is queued or running, and so holds the conversation's only slot."""
        return self.status in IN_FLIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A running or ended answer. A conversation has at most one running turn, which a lease holds."""

    id: UUID
    tenant_id: UUID
    conversation_id: UUID
    message_id: UUID
    """The user message that the turn answers."""
    input_from_seq: int | None = None
    """The first message of the turn's request, or the message that it answers; ``None`` in older rows."""
    begun_at_seq: int | None = None
    """The last message when the turn began, including those of its request; ``None`` in older rows."""
    planned_reply_id: UUID | None = None
    """The id that its reply is going to have, chosen at the start; ``None`` in older rows."""
    reply_id: UUID | None = None
    """The id of the stored reply; ``None`` while the turn runs, and if it failed."""
    compaction_id: UUID | None = None
    status: TurnStatus = "running"
    lease_until: datetime
    interrupt_requested: bool = False
    followed_at: datetime | None = None
    """When somebody last followed the turn from another process."""
    stream_key: bytes | None = field(default=None, repr=False)
    """The key of the encrypted stream for followers in other processes; removed when the turn ends."""
    warnings: tuple[str, ...] = ()
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were recalled for it."""
    error_code: str | None = None
    started_at: datetime
    finished_at: datetime | None = None
    request: Mapping[str, Any] | None = None
    """For a request in another API's format: the fields that the response repeats."""


NOT_NUMBERED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a conversation. ``number`` counts 1, 2, 3 … in the conversation; ``data`` holds ids and numbers.

    The number of an event that is only repeated, and not stored, is ``NOT_NUMBERED``.
    """

    conversation_id: UUID
    number: int
    type: str
    data: Mapping[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key of a tenant; only the hash of its secret is stored."""

    id: UUID
    tenant_id: UUID
    name: str
    prefix: str
    """The first characters, to recognise it by."""
    secret_hash: bytes
    """SHA-256 of the whole key."""
    scopes: frozenset[Scope]
    user_id: str | None = None
    """The only end user whose conversations the key can see and create; ``None`` = all of the tenant."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The key's own limits, which replace those of the settings: fields of ``usage_limits.Limits``."""
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """When the key was last used, accurate to about a minute."""
    revoked_at: datetime | None = None

    def is_usable(self, at: datetime) -> bool:
        """Whether it is neither revoked nor expired at this moment."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what: ids and numbers, no text and no address."""

    id: UUID
    tenant_id: UUID
    key_id: UUID | None
    """The key that was used; ``None``: the command line, or a request that needed no key."""
    actor: Actor
    action: str
    """A noun and what was done with it: ``conversation.deleted``."""
    object_id: str | None
    data: Mapping[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """The outcome of the request with an idempotency key, without text. The response is rendered again from ``ref``."""

    key: str
    fingerprint: str
    """Hash of method, path and body."""
    ref: Mapping[str, Any]
    status: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A request for one page: the rows after ``after`` (the opaque cursor's content), in ``order``."""

    limit: int = 20
    after: str | None = None
    order: Literal["asc", "desc"] = "desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A piece of work on a conversation's texts that a process has begun."""

    id: UUID
    tenant_id: UUID
    conversation_id: UUID
    process: UUID
    """The id of the process; no later process gets the same."""
    kind: WorkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCount:
    """How many processes ended in a row while they worked on a conversation."""

    conversation_id: UUID
    count: int
    kind: WorkKind
    """What the last of them was doing."""
    set_aside_at: datetime | None = None
    """When the conversation was set aside: from then on nothing works on its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The erasure, in steps, of all conversations of an end user or of a whole tenant."""

    id: UUID
    tenant_id: UUID
    user_id: str | None
    """The end user; ``None``: the tenant itself is erased, with everything that it has."""
    requested_at: datetime
    conversations: int = 0
    """How many conversations are deleted so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCopy:
    """A response that the provider of a stateful model keeps, together with everything before it."""

    tenant_id: UUID
    response_id: str
    conversation_id: UUID
    model: str
    """The chat model, by the name under which it is asked."""
    made_at: datetime
    delete_after: datetime | None = None
    """The moment from which on the provider is to delete it; ``None`` = not yet."""
    tries: int = 0

    @property
    def key(self) -> tuple[str]:
        """What identifies the copy among those of a tenant."""
        return (self.response_id,)
