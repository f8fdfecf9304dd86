"""Stored records of the shell that carry no rules of their own: compactions, turns, events, keys."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from app.core.model.continuity import Continuity
from app.core.model.conversation import Usage
from app.core.model.fieldwise import fieldwise

CompactionStatus = Literal["queued", "running", "applied", "skipped", "rejected", "failed", "superseded"]
RanIn = Literal["worker", "turn", "request", "sweeper"]
WorkKind = Literal["append", "context", "search", "expansion", "erasure", "compaction", "examination"]
"""What is done with a conversation's texts."""
TurnStatus = Literal["running", "completed", "interrupted", "failed"]
VerificationStatus = Literal["queued", "running", "done", "failed", "stale", "skipped"]
Scope = Literal["read", "write", "admin"]
Actor = Literal["key", "open", "cli", "service"]
Fold = Literal["to_target", "all"]

ERASURE = "erasure"
"""The trigger of a compaction that tells a narrative again after an erasure; it folds nothing."""

IN_FLIGHT: frozenset[str] = frozenset({"queued", "running"})
"""Statuses of a compaction or a verification that has not ended."""

MAX_CLAIMS: Final = 5
"""The most claims of a compaction without a commit. A restart costs one or two; a job that ends five processes is at
fault itself."""


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
    """The version of the summarizer's prompt and schema; ``None`` where it reads none, and in older rows."""


AsidePurpose = Literal["detail", "embedding"]
"""A segment's L1, or vectors of messages and questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailCall:
    """A model call beside compactions and verifications: ids and numbers, never text."""

    id: UUID
    conversation_id: UUID
    called_at: datetime
    attempt: Attempt | None = None
    """How it went; ``None`` while it runs, and for ever where its process died."""
    purpose: AsidePurpose = "detail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is to be asked, or was, about a state version's claims: ids and numbers, never text."""

    id: UUID
    conversation_id: UUID
    version: int
    """The version that is judged; as long as the row is queued, a later one may take its place."""
    status: VerificationStatus = "queued"
    reason: str | None = None
    tries: int = 0
    after: datetime | None = None
    """Nobody begins before this moment: it was put off, or another process works on it."""
    asked_at: datetime | None = None
    """When a model was last asked."""
    attempts: tuple[Attempt, ...] = ()
    created_at: datetime
    finished_at: datetime | None = None


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
        """Sum over chunks; ``kept`` is that of the last chunk."""
        return replace(fieldwise(operator.add, self, other), kept=other.kept)


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
    """The row that is lock, outbox, audit and API resource at once."""

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
    """The share of the exact values of the last folded chunk that stand verbatim in what is served; a measure."""
    continuity: Continuity | None = None
    """What can still be answered, of the probes of all its chunks; ``None`` where none was made."""
    retry_of: UUID | None = None
    claims: int = 0
    """How often it was claimed without a commit since: crashes, not model calls."""
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
        """Queued or running: holds the conversation's only slot."""
        return self.status in IN_FLIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A running or ended answer; one running per conversation, held by a lease."""

    id: UUID
    tenant_id: UUID
    conversation_id: UUID
    message_id: UUID
    """The user message it answers."""
    input_from_seq: int | None = None
    """The first message that the turn's request brought, else the message that it answers; ``None`` in older rows."""
    begun_at_seq: int | None = None
    """The last message that there was when it began, its request's own included; ``None`` in older rows."""
    planned_reply_id: UUID | None = None
    """The id that its reply is going to have, from the start; ``None`` in older rows."""
    reply_id: UUID | None = None
    """The id of the stored reply; ``None`` while the turn runs, and where it failed."""
    compaction_id: UUID | None = None
    status: TurnStatus = "running"
    lease_until: datetime
    interrupt_requested: bool = False
    followed_at: datetime | None = None
    """When somebody last followed it in another process."""
    stream_key: bytes | None = field(default=None, repr=False)
    """The key of the encrypted stream for followers in other processes; removed when the turn ends."""
    warnings: tuple[str, ...] = ()
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were brought back for it."""
    error_code: str | None = None
    started_at: datetime
    finished_at: datetime | None = None
    request: Mapping[str, Any] | None = None
    """What the request of another API's client said, to be repeated with the response."""


NOT_NUMBERED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a conversation; ``number`` counts 1, 2, 3 … per conversation. ``data``: ids and numbers.

    One that is told once more, and stored nowhere, is ``NOT_NUMBERED``.
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
    """The end user whose conversations alone it sees and makes; ``None`` = all of the tenant."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The key's own limits, which replace those of the settings: fields of ``allowances.Limits``."""
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute or so."""
    revoked_at: datetime | None = None

    def is_usable(self, at: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what: ids and numbers, no text and no address."""

    id: UUID
    tenant_id: UUID
    key_id: UUID | None
    """``None``: the command line, or a request without a key where none is asked for."""
    actor: Actor
    action: str
    """A noun and what became of it: ``conversation.deleted``."""
    object_id: str | None
    data: Mapping[str, Any]
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """What a key did: ids and numbers, no text. The response is rendered again from ``ref``."""

    key: str
    fingerprint: str
    """Hash of method, path and body."""
    ref: Mapping[str, Any]
    status: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Keyset paging: rows after ``after`` (the opaque cursor's content), in ``order``."""

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
    """An id that one process has and no later one."""
    kind: WorkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashes:
    """How many processes ended, one after the other, while they worked on a conversation."""

    conversation_id: UUID
    count: int
    kind: WorkKind
    """What the last of them did."""
    set_aside_at: datetime | None = None
    """When the conversation was set aside: since then nothing works on its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An end user, or a whole tenant, whose conversations are being erased, in steps."""

    id: UUID
    tenant_id: UUID
    user_id: str | None
    """``None``: everything of the tenant, and the tenant."""
    requested_at: datetime
    conversations: int = 0
    """Deleted so far."""


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
        """What names it among those of a tenant."""
        return (self.response_id,)
