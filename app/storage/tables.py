"""The tables. Each table has the tenant in its primary key; ``tenancy.py`` adds it to every statement.

Rows that belong to a conversation are deleted with it, in cascade by composite foreign keys.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSON as TEXT_JSON
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from app.core.model.anchors import AnchorStatus, AnchorType, ClaimedStatus, Proposer, Speaker
from app.core.model.caches import CacheAction
from app.core.model.conversation import MessageStatus, Role
from app.core.model.records import IN_FLIGHT, CompactionStatus, DetailCallPurpose, RanIn, TurnStatus, VerificationStatus
from app.core.model.segments import ExpansionWay, Level
from app.core.model.state import MadeBy, Verified
from app.storage.constraints import in_conversation, of_tenant

NAMING = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}

BIG = BigInteger()
MOMENT = DateTime(timezone=True)
TEXTS = ARRAY(Text())
NUMBERS = ARRAY(BIG)
# A missing value is SQL's NULL, never JSON's null, so that partial indexes and IS NULL see the same as Python.
JSON = JSONB(none_as_null=True)
PARTS = TEXT_JSON(none_as_null=True)  # as written: the order of keys and the form of numbers belong to the original


class TenantScoped(SQLModel):
    """The class by which ``tenancy.py`` recognises tables: rows of one tenant, which comes first in the key."""

    metadata = MetaData(naming_convention=NAMING)

    tenant_id: UUID = Field(primary_key=True)


def _one_of(column: str, literal: Any) -> CheckConstraint:
    words = ", ".join(f"'{word}'" for word in sorted(get_args(literal)))
    return CheckConstraint(f"{column} IN ({words})", name=column)


def _server_default(value: str) -> dict[str, Any]:
    # For rows that a version without this column writes; see docs/upgrading.md.
    return {"server_default": text(value)}


class TenantRow(TenantScoped, table=True):
    """A tenant."""

    __tablename__ = "tenants"
    __table_args__ = (UniqueConstraint("name"),)

    name: str
    created_at: datetime = Field(sa_type=MOMENT, sa_column_kwargs={"server_default": func.now()})
    sealing_secret: bytes | None = Field(sa_type=LargeBinary)
    """The secret that seals tokens for clients; made when it is first needed."""


class ApiKeyRow(TenantScoped, table=True):
    """An API key, with only the SHA-256 of its secret."""

    __tablename__ = "api_keys"
    __table_args__ = (of_tenant(), UniqueConstraint("secret_hash"))

    id: UUID = Field(primary_key=True)
    name: str
    prefix: str
    secret_hash: bytes = Field(sa_type=LargeBinary)
    scopes: list[str] = Field(sa_type=TEXTS)
    limits: dict[str, Any] = Field(sa_type=JSON, sa_column_kwargs=_server_default("'{}'::jsonb"))
    created_at: datetime = Field(sa_type=MOMENT)
    expires_at: datetime | None = Field(sa_type=MOMENT)
    last_used_at: datetime | None = Field(sa_type=MOMENT)
    revoked_at: datetime | None = Field(sa_type=MOMENT)


LISTED_AT = "coalesce(last_message_at, created_at)"
IS_DUE = "context_tokens >= trigger_tokens OR context_messages >= trigger_messages"
"""A threshold that is NULL is never reached."""
DELETED = "deleted_at IS NOT NULL"
STALE_SUMS = "stale_sums_to IS NOT NULL"
WHOLE_LIVE = "num_nulls(live_model, live_response_id, live_through_seq) IN (0, 3)"
UNEMBEDDED = "boundary_seq > embedded_seq"
EMBEDDED = "embedded_model IS NOT NULL"
WHOLE_FORK = "num_nulls(forked_from, forked_through) IN (0, 2)"


class ConversationRow(TenantScoped, table=True):
    """A conversation: state, boundary, counters, running sums."""

    __tablename__ = "conversations"
    __table_args__ = (
        of_tenant(),
        CheckConstraint("boundary_seq BETWEEN 0 AND last_seq", name="boundary"),
        CheckConstraint("covered_tokens BETWEEN 0 AND total_tokens", name="covered"),
        CheckConstraint("state_version >= 0", name="state_version"),
        CheckConstraint("last_event >= 0", name="last_event"),
        CheckConstraint(WHOLE_LIVE, name="live"),
        CheckConstraint(WHOLE_FORK, name="forked"),
        Index("ix_conversations_listed", "tenant_id", text(f"({LISTED_AT})"), "id"),
        Index("ix_conversations_listed_of_user", "tenant_id", "user_id", text(f"({LISTED_AT})"), "id"),
        # For the sweeper: it contains only what is due, so that a look costs the same for any number of conversations.
        Index("ix_conversations_due", "tenant_id", "id", postgresql_where=text(IS_DUE)),
        # The same for deleted conversations that still have rows, and for running sums that have to be computed again.
        Index("ix_conversations_deleted", "deleted_at", postgresql_where=text(DELETED)),
        Index("ix_conversations_stale_sums", "id", postgresql_where=text(STALE_SUMS)),
        # The same for conversations whose messages need vectors, and for those that have vectors of any model.
        Index("ix_conversations_unembedded", "embed_after", postgresql_where=text(UNEMBEDDED)),
        Index("ix_conversations_embedded", "embedded_model", postgresql_where=text(EMBEDDED)),
    )

    id: UUID = Field(primary_key=True)
    title: str | None
    user_id: str | None
    locale: str
    system_prompt: str
    preset: str
    preset_version: int = Field(sa_column_kwargs=_server_default("1"))
    policy: dict[str, Any] = Field(sa_type=JSON)
    state_schema: str | None
    compressed_state: dict[str, Any] | None = Field(sa_type=JSON)
    compressed_at_message_id: UUID | None
    boundary_seq: int = Field(sa_type=BIG)
    state_version: int = Field(sa_type=BIG)
    layout: dict[str, Any] | None = Field(sa_type=JSON)
    layout_version: int
    compression_count: int
    content_epoch: int = Field(sa_type=BIG)
    token_factor: float
    scratchpad: dict[str, Any] = Field(sa_type=JSON)
    meta: dict[str, Any] = Field(sa_column=Column("metadata", JSON, nullable=False))
    last_seq: int = Field(sa_type=BIG)
    last_message_id: UUID | None
    last_message_at: datetime | None = Field(sa_type=MOMENT)
    last_event: int = Field(sa_type=BIG)
    total_messages: int = Field(sa_type=BIG)
    total_tokens: int = Field(sa_type=BIG)
    total_bytes: int = Field(sa_type=BIG)
    total_held_tokens: int = Field(sa_type=BIG)
    total_held_bytes: int = Field(sa_type=BIG)
    covered_messages: int = Field(sa_type=BIG)
    covered_tokens: int = Field(sa_type=BIG)
    covered_bytes: int = Field(sa_type=BIG)
    covered_held_tokens: int = Field(sa_type=BIG)
    covered_held_bytes: int = Field(sa_type=BIG)
    context_tokens: int = Field(sa_type=BIG)
    trigger_tokens: int | None = Field(sa_type=BIG)
    context_messages: int = Field(sa_type=BIG)
    trigger_messages: int | None = Field(sa_type=BIG)
    quiet_until_seq: int = Field(sa_type=BIG)
    quiet_until_tokens: int = Field(sa_type=BIG)
    quiet_until: datetime | None = Field(sa_type=MOMENT)
    quiet_reason: str | None
    failure_count: int
    pace: dict[str, Any] | None = Field(sa_type=JSON)
    """The recent course of the conversation in numbers, for adaptive thresholds."""
    live_model: str | None
    live_response_id: str | None
    live_through_seq: int | None = Field(sa_type=BIG)
    file_tokens: int = Field(sa_type=BIG, sa_column_kwargs=_server_default("0"))
    file_bytes: int = Field(sa_type=BIG, sa_column_kwargs=_server_default("0"))
    anchors_due_from: int | None = Field(sa_type=BIG)
    forked_from: UUID | None
    forked_through: int | None = Field(sa_type=BIG)
    deleted_at: datetime | None = Field(sa_type=MOMENT)
    """Since when the conversation is deleted for everybody; its rows are removed in steps."""
    stale_sums_from: int | None = Field(sa_type=BIG)
    stale_sums_to: int | None = Field(sa_type=BIG)
    """Up to this ``seq`` the running sums are still those before an erasure; they are computed again in steps."""
    embedded_model: str | None
    embedded_seq: int = Field(sa_type=BIG, sa_column_kwargs=_server_default("0"))
    """Up to this ``seq`` the covered messages have vectors of that model, as far as they can have one."""
    embed_after: datetime | None = Field(sa_type=MOMENT)
    """The work on vectors does not go on before this time."""
    created_at: datetime = Field(sa_type=MOMENT)
    updated_at: datetime = Field(sa_type=MOMENT)


MAKES_CALLS = "call_ids <> '{}'::text[]"
BELONGS_TO_CALL = "call_ids <> '{}'::text[] OR result_ids <> '{}'::text[]"
CALL_KEYS = "array_append(call_ids || result_ids, conversation_id::text)"
"""The indexed words of a message's calls. Ids are often the same in every conversation ("call_1"), so the conversation
is added as a word.
"""
COMMAND = "is_command"
QUOTES_MESSAGES = "strpos(parts::text, '\"quotes\"') > 0"


class MessageRow(TenantScoped, table=True):
    """A message, with the running sums up to it; commands do not count in them."""

    __tablename__ = "messages"
    __table_args__ = (
        in_conversation(),
        UniqueConstraint("tenant_id", "conversation_id", "seq"),
        CheckConstraint("seq > 0", name="seq"),
        CheckConstraint("token_count >= 0 AND byte_length >= 0", name="weight"),
        # Text that json accepts and jsonb does not (NUL) would break every search in it.
        CheckConstraint("parts::jsonb IS NOT NULL", name="parts"),
        _one_of("role", Role),
        _one_of("status", MessageStatus),
        Index("ix_messages_protected", "tenant_id", "conversation_id", "seq", postgresql_where=text("is_protected")),
        # Used by the version before, which searches all calls of a conversation; the next version drops it.
        Index(
            "ix_messages_calls",
            "tenant_id",
            "conversation_id",
            "seq",
            postgresql_where=text(MAKES_CALLS),
        ),
        Index(
            "ix_messages_tool_calls",
            text(f"({CALL_KEYS})"),
            postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": "512"},
            postgresql_where=text(BELONGS_TO_CALL),
        ),
        Index("ix_messages_commands", "tenant_id", "conversation_id", "seq", postgresql_where=text(COMMAND)),
        # These are few: messages with results of the service's own tools that quote earlier messages.
        Index("ix_messages_quoting", "tenant_id", "conversation_id", "seq", postgresql_where=text(QUOTES_MESSAGES)),
        # Neither tenant nor conversation is needed, since a key belongs to one conversation (``term_keys.py``). New
        # entries wait in a list that every search reads whole, so it has to stay short (in kB).
        Index(
            "ix_messages_terms",
            "term_keys",
            postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": "512"},
        ),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    seq: int = Field(sa_type=BIG)
    role: str
    content: str
    parts: list[dict[str, Any]] = Field(sa_type=PARTS)
    call_ids: list[str] = Field(sa_type=TEXTS)
    result_ids: list[str] = Field(sa_type=TEXTS)
    contents: list[str] = Field(sa_type=TEXTS, sa_column_kwargs=_server_default("'{}'::text[]"))
    """Hashes of the contents that its parts refer to; the database counts them down when the message is removed."""
    event_type: str
    status: str
    is_command: bool
    protected_reason: str
    is_pinned: bool
    is_protected: bool
    token_count: int = Field(sa_type=BIG)
    byte_length: int = Field(sa_type=BIG)
    message_sum: int = Field(sa_type=BIG)
    token_sum: int = Field(sa_type=BIG)
    byte_sum: int = Field(sa_type=BIG)
    model: str | None
    usage: dict[str, Any] | None = Field(sa_type=JSON)
    reasoning: str = Field(sa_column_kwargs=_server_default("''"))
    """The reasoning that its model showed; the database empties it when the content is rewritten."""
    meta: dict[str, Any] = Field(sa_column=Column("metadata", JSON, nullable=False))
    term_keys: list[int] = Field(sa_type=NUMBERS)
    """The word index: hashes of the message's stems; none for a command or an erased message."""
    created_at: datetime = Field(sa_type=MOMENT)
    utc_offset: int | None = Field(sa_type=SmallInteger)
    """The offset in minutes with which the client gave the time, if it was not UTC: a moment has no offset."""


class ContentRow(TenantScoped, table=True):
    """The data of media and files, and how many messages and files have it.

    It is deleted with the last of them (``release_contents``, ``release_file``).
    """

    __tablename__ = "contents"
    __table_args__ = (of_tenant(), CheckConstraint("uses > 0", name="uses"))

    sha256: str = Field(primary_key=True, sa_type=Text)
    data: bytes = Field(sa_type=LargeBinary)
    media_type: str
    size: int = Field(sa_type=BIG)
    uses: int = Field(sa_type=BIG)


class EmbeddingRow(TenantScoped, table=True):
    """The vector of a message; it is deleted when the message is deleted or changed (``release_embeddings``)."""

    __tablename__ = "embeddings"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "conversation_id", "seq"],
            ["messages.tenant_id", "messages.conversation_id", "messages.seq"],
            ondelete="CASCADE",
        ),
        CheckConstraint("octet_length(sha256) = 32", name="sha256"),
        CheckConstraint("dimensions > 0 AND octet_length(vector) = 4 * dimensions", name="vector"),
        Index("ix_embeddings_of_text", "tenant_id", "model", "sha256"),
    )

    conversation_id: UUID = Field(primary_key=True)
    seq: int = Field(sa_type=BIG, primary_key=True)
    model: str
    sha256: bytes = Field(sa_type=LargeBinary)
    """The hash of the text that the model was given. The same text in another message needs no second call."""
    dimensions: int
    vector: bytes = Field(sa_type=LargeBinary)
    """32-bit floats, the least significant byte first."""
    created_at: datetime = Field(sa_type=MOMENT, sa_column_kwargs={"server_default": func.now()})


class FileRow(TenantScoped, table=True):
    """A file attached to a conversation. Its bytes are a content, which is counted down when the file is removed."""

    __tablename__ = "files"
    __table_args__ = (
        in_conversation(),
        CheckConstraint("bytes > 0 AND tokens > 0", name="sizes"),
        Index("ix_files_of_conversation", "tenant_id", "conversation_id", "id"),
        # Finds out, when a file is removed, whether another file has the same content.
        Index("ix_files_of_content", "tenant_id", "sha256"),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    name: str
    media_type: str
    sha256: str = Field(sa_type=Text)
    bytes: int = Field(sa_type=BIG)
    tokens: int = Field(sa_type=BIG)
    created_at: datetime = Field(sa_type=MOMENT)


IN_USE = "delete_after IS NULL"


class ProviderFileRow(TenantScoped, table=True):
    """A copy at a provider of one content, for all conversations of a tenant.

    When the last file with that content is removed, the database marks the copy for deletion (``release_file``).
    """

    __tablename__ = "provider_files"
    __table_args__ = (
        of_tenant(),
        Index("uq_provider_files_in_use", "tenant_id", "account", "sha256", unique=True, postgresql_where=text(IN_USE)),
        # For the sweeper: only copies that have to be deleted, and, ordered by time, those that the provider has
        # deleted.
        Index("ix_provider_files_wanted", "delete_after", postgresql_where=text("delete_after IS NOT NULL")),
        Index("ix_provider_files_expired", "expires_at"),
    )

    account: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    sha256: str = Field(sa_type=Text)
    uri: str
    model: str
    made_at: datetime = Field(sa_type=MOMENT)
    expires_at: datetime = Field(sa_type=MOMENT)
    delete_after: datetime | None = Field(sa_type=MOMENT)
    tries: int


class StateVersionRow(TenantScoped, table=True):
    """One version of a conversation's state, with the provenance of its entries."""

    __tablename__ = "state_versions"
    __table_args__ = (
        in_conversation(),
        CheckConstraint("version > 0", name="version"),
        CheckConstraint("boundary_seq >= 0", name="boundary"),
        _one_of("verified", Verified),
        _one_of("made_by", MadeBy),
        Index("ix_state_versions_compaction", "tenant_id", "compaction_id"),
    )

    conversation_id: UUID = Field(primary_key=True)
    version: int = Field(sa_type=BIG, primary_key=True)
    state_schema: str
    state: dict[str, Any] = Field(sa_type=JSON)
    entries: list[dict[str, Any]] = Field(sa_type=JSON)
    next_entry: int
    boundary_seq: int = Field(sa_type=BIG)
    boundary_message_id: UUID | None
    covered_messages: int = Field(sa_type=BIG)
    covered_tokens: int = Field(sa_type=BIG)
    covered_bytes: int = Field(sa_type=BIG)
    covered_held_tokens: int = Field(sa_type=BIG)
    covered_held_bytes: int = Field(sa_type=BIG)
    layout: dict[str, Any] | None = Field(sa_type=JSON)
    compaction_id: UUID | None
    created_at: datetime = Field(sa_type=MOMENT)
    parent_version: int | None = Field(sa_type=BIG)
    segment_ids: list[str] = Field(sa_type=TEXTS)
    repairs: list[dict[str, Any]] = Field(sa_type=JSON, sa_column_kwargs=_server_default("'[]'::jsonb"))
    verified: str = Field(sa_column_kwargs=_server_default("'exact'"))
    verification: dict[str, Any] | None = Field(sa_type=JSON)
    made_by: str = Field(sa_column_kwargs=_server_default("'compaction'"))
    is_forgotten: bool = Field(default=False, sa_column_kwargs=_server_default("false"))
    """Whether its texts were removed; its segments also belong to the versions after it."""


CURRENT = "is_current"
WANTS_DETAIL = "wants_detail AND is_current"


class SegmentRow(TenantScoped, table=True):
    """A range of covered messages with a readable id. The range never changes, and no row is ever deleted."""

    __tablename__ = "segments"
    __table_args__ = (
        in_conversation(),
        CheckConstraint("from_seq > 0 AND to_seq >= from_seq", name="range"),
        UniqueConstraint("tenant_id", "conversation_id", "from_seq", "to_seq"),
        Index(
            "ix_segments_current", "tenant_id", "conversation_id", "from_seq", "to_seq", postgresql_where=text(CURRENT)
        ),
        # For the sweeper: it contains only what waits.
        Index("ix_segments_wanting", "detail_after", postgresql_where=text(WANTS_DETAIL)),
    )

    conversation_id: UUID = Field(primary_key=True)
    id: str = Field(primary_key=True)
    from_seq: int = Field(sa_type=BIG)
    to_seq: int = Field(sa_type=BIG)
    topic: str
    started_at: datetime = Field(sa_type=MOMENT)
    ended_at: datetime = Field(sa_type=MOMENT)
    messages: int
    tokens: int = Field(sa_type=BIG)
    identifiers: list[str] = Field(sa_type=TEXTS)
    is_current: bool
    wants_detail: bool
    detail_tries: int
    detail_after: datetime | None = Field(sa_type=MOMENT)
    created_at: datetime = Field(sa_type=MOMENT)


class SegmentLevelRow(TenantScoped, table=True):
    """A segment at one level of detail."""

    __tablename__ = "segment_levels"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "conversation_id", "segment_id"],
            ["segments.tenant_id", "segments.conversation_id", "segments.id"],
            ondelete="CASCADE",
        ),
        _one_of("level", Level),
    )

    conversation_id: UUID = Field(primary_key=True)
    segment_id: str = Field(primary_key=True)
    level: str = Field(primary_key=True)
    text: str
    tokens: int
    made_by: str
    content_hash: str
    created_at: datetime = Field(sa_type=MOMENT)


NOT_ENDED = "attempt IS NULL"


class DetailCallRow(TenantScoped, table=True):
    """One model call for an L1 or for vectors, in numbers."""

    __tablename__ = "detail_calls"
    __table_args__ = (
        in_conversation(),
        _one_of("purpose", DetailCallPurpose),
        Index("ix_detail_calls_of_late", "tenant_id", "called_at"),
        Index("ix_detail_calls_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_detail_calls_made", "called_at"),
        Index("ix_detail_calls_running", "called_at", postgresql_where=text(NOT_ENDED)),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    purpose: str = Field(sa_column_kwargs=_server_default("'detail'"))
    attempt: dict[str, Any] | None = Field(sa_type=JSON)
    called_at: datetime = Field(sa_type=MOMENT)


class ExpansionRow(TenantScoped, table=True):
    """One expansion, in numbers."""

    __tablename__ = "expansions"
    __table_args__ = (
        in_conversation(),
        _one_of("way", ExpansionWay),
        Index("ix_expansions_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_expansions_made", "created_at"),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    way: str
    level: str | None
    segment_id: str | None
    passages: int
    tokens: int = Field(sa_type=BIG)
    used: bool | None
    duration_ms: int = Field(sa_type=BIG)
    created_at: datetime = Field(sa_type=MOMENT)


ACTIVE = "status = 'active'"


class AnchorRow(TenantScoped, table=True):
    """A verbatim passage that is never compressed away."""

    __tablename__ = "anchors"
    __table_args__ = (
        in_conversation(),
        _one_of("type", AnchorType),
        _one_of("status", AnchorStatus),
        _one_of("proposed_by", Proposer),
        _one_of("speaker", Speaker),
        _one_of("claimed_status", ClaimedStatus),
        UniqueConstraint("tenant_id", "conversation_id", "seq", "offset", "type"),
        Index("ix_anchors_active", "tenant_id", "conversation_id", "seq", postgresql_where=text(ACTIVE)),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    message_id: UUID
    seq: int = Field(sa_type=BIG)
    offset: int
    type: str
    content: str
    status: str
    proposed_by: str
    speaker: str = Field(sa_column_kwargs=_server_default("'user'"))
    pasted: bool = Field(sa_column_kwargs=_server_default("false"))
    passed_over: bool = Field(sa_column_kwargs=_server_default("false"))
    """Whether a language model that was shown the anchor did not name it."""
    importance: float
    token_count: int
    superseded_by: UUID | None
    claimed_status: str | None
    claimed_seq: int | None = Field(sa_type=BIG)
    created_at: datetime = Field(sa_type=MOMENT)


COMPACTION_IN_FLIGHT = f"status IN ({', '.join(repr(word) for word in sorted(IN_FLIGHT))})"
RUNNING = "status = 'running'"
QUEUED = "status = 'queued'"


class CompactionRow(TenantScoped, table=True):
    """A compaction: lock, outbox, audit record and API resource in one.

    At most one row per conversation is in flight.
    """

    __tablename__ = "compactions"
    __table_args__ = (
        in_conversation(),
        _one_of("status", CompactionStatus),
        _one_of("ran_in", RanIn),
        CheckConstraint(f"({RUNNING}) = (lease_token IS NOT NULL AND lease_until IS NOT NULL)", name="lease"),
        CheckConstraint("claims >= 0", name="claims"),
        Index(
            "uq_compactions_in_flight",
            "tenant_id",
            "conversation_id",
            unique=True,
            postgresql_where=text(COMPACTION_IN_FLIGHT),
        ),
        Index("ix_compactions_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_compactions_of_status", "tenant_id", "status", "id"),
        # For recent spending: a row in flight has no end yet, and is sorted among the newest.
        Index("ix_compactions_finished", "tenant_id", "finished_at"),
        Index("ix_compactions_ended", "finished_at"),  # for metrics: rows of all tenants that ended since the last look
        # The worker's first read knows only the id that the broker sent, and no tenant.
        Index("ix_compactions_id", "id"),
        Index("ix_compactions_lease", "lease_until", postgresql_where=text(RUNNING)),
        Index("ix_compactions_queued", "queued_at", postgresql_where=text(QUEUED)),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    trigger: str
    ran_in: str
    status: str
    reason: str | None
    strategy: str
    model: str | None
    request: dict[str, Any] = Field(sa_type=JSON)
    attempts: list[dict[str, Any]] = Field(sa_type=JSON)
    from_seq: int | None = Field(sa_type=BIG)
    to_seq: int | None = Field(sa_type=BIG)
    messages_covered: int
    tokens_before: int | None = Field(sa_type=BIG)
    tokens_after: int | None = Field(sa_type=BIG)
    entries: dict[str, Any] = Field(sa_type=JSON)
    state_version_before: int = Field(sa_type=BIG)
    state_version_after: int | None = Field(sa_type=BIG)
    usage: dict[str, Any] = Field(sa_type=JSON)
    duration_ms: int | None = Field(sa_type=BIG)
    fidelity: float | None
    continuity: dict[str, Any] | None = Field(sa_type=JSON)
    retry_of: UUID | None
    claims: int
    lease_token: UUID | None
    lease_until: datetime | None = Field(sa_type=MOMENT)
    owner: str | None
    queued_at: datetime | None = Field(sa_type=MOMENT)
    """When the row was inserted as ``queued``, in database time. A row that was put back has none, so it is sent at
    once.
    """
    sent_at: datetime | None = Field(sa_type=MOMENT)
    requested_at: datetime = Field(sa_type=MOMENT)
    started_at: datetime | None = Field(sa_type=MOMENT)
    finished_at: datetime | None = Field(sa_type=MOMENT)


VERIFICATION_OPEN = COMPACTION_IN_FLIGHT


class VerificationRow(TenantScoped, table=True):
    """A verification of a state version: one ``queued`` or ``running`` row per conversation."""

    __tablename__ = "verifications"
    __table_args__ = (
        in_conversation(),
        _one_of("status", VerificationStatus),
        Index(
            "uq_verifications_open",
            "tenant_id",
            "conversation_id",
            unique=True,
            postgresql_where=text(VERIFICATION_OPEN),
        ),
        # For the sweeper: it contains only what waits or runs.
        Index("ix_verifications_waiting", "after", postgresql_where=text(VERIFICATION_OPEN)),
        Index("ix_verifications_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_verifications_of_late", "tenant_id", "asked_at"),
        Index("ix_verifications_ended", "finished_at"),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    version: int = Field(sa_type=BIG)
    status: str
    reason: str | None
    tries: int
    after: datetime | None = Field(sa_type=MOMENT)
    asked_at: datetime | None = Field(sa_type=MOMENT)
    attempts: list[dict[str, Any]] = Field(sa_type=JSON)
    created_at: datetime = Field(sa_type=MOMENT)
    finished_at: datetime | None = Field(sa_type=MOMENT)


class TurnRow(TenantScoped, table=True):
    """A turn, running or ended; at most one per conversation runs."""

    __tablename__ = "turns"
    __table_args__ = (
        in_conversation(),
        _one_of("status", TurnStatus),
        Index("uq_turns_running", "tenant_id", "conversation_id", unique=True, postgresql_where=text(RUNNING)),
        Index("ix_turns_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_turns_ended", "finished_at"),
        Index("ix_turns_lease", "lease_until", postgresql_where=text(RUNNING)),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    message_id: UUID
    input_from_seq: int | None = Field(sa_type=BIG)
    begun_at_seq: int | None = Field(sa_type=BIG)
    planned_reply_id: UUID | None
    reply_id: UUID | None
    compaction_id: UUID | None
    status: str
    lease_until: datetime = Field(sa_type=MOMENT)
    interrupt_requested: bool
    followed_at: datetime | None = Field(sa_type=MOMENT)
    stream_key: bytes | None = Field(sa_type=LargeBinary)
    warnings: list[str] = Field(sa_type=TEXTS)
    recalled: list[int] = Field(sa_type=NUMBERS, sa_column_kwargs=_server_default("'{}'"))
    error_code: str | None
    started_at: datetime = Field(sa_type=MOMENT)
    finished_at: datetime | None = Field(sa_type=MOMENT)
    request: dict[str, Any] | None = Field(sa_type=JSON)


class EventRow(TenantScoped, table=True):
    """An event of a conversation, numbered within the conversation in commit order, without gaps."""

    __tablename__ = "events"
    __table_args__ = (
        in_conversation(),
        CheckConstraint("number > 0", name="number"),
        # Rows are ordered by time, so an index of block ranges finds the old ones and costs next to nothing.
        Index("ix_events_occurred_at", "occurred_at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}),
    )

    conversation_id: UUID = Field(primary_key=True)
    number: int = Field(sa_type=BIG, primary_key=True)
    type: str
    data: dict[str, Any] = Field(sa_type=JSON)
    occurred_at: datetime = Field(sa_type=MOMENT)


class IdempotencyRow(TenantScoped, table=True):
    """What an idempotency key did."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (of_tenant(), Index("ix_idempotency_keys_created_at", "created_at"))

    key: str = Field(primary_key=True)
    fingerprint: str
    ref: dict[str, Any] = Field(sa_type=JSON)
    status: int
    created_at: datetime = Field(sa_type=MOMENT)


class WorkRow(TenantScoped, table=True):
    """A record of what a process works on.

    The table is unlogged: it is written often, and need not survive the database.
    """

    __tablename__ = "works"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    process: UUID
    kind: str
    lease_until: datetime = Field(sa_type=MOMENT)


class CrashRow(TenantScoped, table=True):
    """The number of processes that ended during work on a conversation."""

    __tablename__ = "crashes"
    __table_args__ = (in_conversation(),)

    conversation_id: UUID = Field(primary_key=True)
    count: int
    kind: str
    set_aside_at: datetime | None = Field(sa_type=MOMENT)


class AuditRow(TenantScoped, table=True):
    """Who did what. The row outlives the thing it is about."""

    __tablename__ = "audit"
    __table_args__ = (of_tenant(), Index("ix_audit_occurred_at", "occurred_at"))

    id: UUID = Field(primary_key=True)
    key_id: UUID | None
    actor: str
    action: str
    object_id: str | None
    data: dict[str, Any] = Field(sa_type=JSON)
    occurred_at: datetime = Field(sa_type=MOMENT)


class ChatSpendingRow(TenantScoped, table=True):
    """The calls and usage of the chat model, by key and minute."""

    __tablename__ = "chat_spending"
    __table_args__ = (of_tenant(),)

    minute: datetime = Field(sa_type=MOMENT, primary_key=True)
    key_id: UUID = Field(primary_key=True)
    calls: int = Field(sa_type=BIG)
    tokens: int = Field(sa_type=BIG)
    cost_usd: float


class ErasureRow(TenantScoped, table=True):
    """An end user or a whole tenant whose conversations are being erased; deleted when nothing is left."""

    __tablename__ = "erasures"
    __table_args__ = (of_tenant(),)

    id: UUID = Field(primary_key=True)
    user_id: str | None
    """The end user; ``None`` = everything of the tenant, and the tenant itself."""
    conversations: int = Field(sa_type=BIG)
    """How many conversations were deleted so far."""
    requested_at: datetime = Field(sa_type=MOMENT)


CACHE_DUE = "due_at IS NOT NULL"


class ProviderCacheRow(TenantScoped, table=True):
    """A cacheable beginning of requests of a tenant's conversations, in numbers, and the provider's cache of it."""

    __tablename__ = "provider_caches"
    __table_args__ = (
        of_tenant(),
        UniqueConstraint("tenant_id", "model", "account", "fingerprint"),
        CheckConstraint("num_nulls(name, made_at, expires_at) IN (0, 3)", name="whole"),
        # The worker's first read knows only the id that the broker sent, and no tenant.
        Index("ix_provider_caches_id", "id"),
        # For the sweeper: it contains only what has to be looked at.
        Index("ix_provider_caches_due", "due_at", postgresql_where=text(CACHE_DUE)),
        Index("ix_provider_caches_last_used_at", "last_used_at"),
    )

    id: UUID = Field(primary_key=True)
    model: str
    account: str
    fingerprint: str
    files: list[str] = Field(sa_type=TEXTS)
    tokens: int = Field(sa_type=BIG)
    minimum: int | None = Field(sa_type=BIG)
    name: str | None
    ttl_seconds: int
    made_at: datetime | None = Field(sa_type=MOMENT)
    expires_at: datetime | None = Field(sa_type=MOMENT)
    made_for: UUID | None
    """The id of a conversation. It has another name since the row does not belong to that conversation alone."""
    uses: int = Field(sa_type=BIG)
    rate: float
    rate_at: datetime | None = Field(sa_type=MOMENT)
    hit_rate: float | None
    measured: int = Field(sa_type=BIG)
    verdict: str
    due_at: datetime | None = Field(sa_type=MOMENT)
    tries: int
    created_at: datetime = Field(sa_type=MOMENT)
    last_used_at: datetime = Field(sa_type=MOMENT)


class CacheMemberRow(TenantScoped, table=True):
    """The prefix with which a conversation's requests begin now, for each model that it uses."""

    __tablename__ = "provider_cache_members"
    __table_args__ = (
        in_conversation(),
        ForeignKeyConstraint(
            ["tenant_id", "cache_id"], ["provider_caches.tenant_id", "provider_caches.id"], ondelete="CASCADE"
        ),
        Index("ix_provider_cache_members_of_cache", "tenant_id", "cache_id"),
    )

    conversation_id: UUID = Field(primary_key=True)
    model: str = Field(primary_key=True)
    cache_id: UUID
    joined_at: datetime = Field(sa_type=MOMENT)


class CacheEntryRow(TenantScoped, table=True):
    """One entry of the account of provider caches."""

    __tablename__ = "provider_cache_entries"
    __table_args__ = (
        of_tenant(),
        in_conversation(),
        _one_of("action", CacheAction),
        Index("ix_provider_cache_entries_of_conversation", "tenant_id", "conversation_id", "id"),
        Index("ix_provider_cache_entries_at", "at"),
    )

    id: UUID = Field(primary_key=True)
    conversation_id: UUID | None
    cache_id: UUID
    model: str
    action: str
    reason: str | None
    tokens: int = Field(sa_type=BIG)
    spent_usd: float | None
    saved_usd: float | None
    beyond_usd: float | None
    at: datetime = Field(sa_type=MOMENT)


DELETION_WANTED = "delete_after IS NOT NULL"


class ProviderCopyRow(TenantScoped, table=True):
    """A response or a cache that a provider keeps of a conversation. The row stays until the copy is deleted there."""

    __tablename__ = "provider_copies"
    __table_args__ = (
        of_tenant(),
        Index("ix_provider_copies_of_conversation", "tenant_id", "conversation_id"),
        # For the sweeper: it contains only what has to be deleted.
        Index("ix_provider_copies_wanted", "delete_after", postgresql_where=text(DELETION_WANTED)),
    )

    response_id: str = Field(primary_key=True)
    conversation_id: UUID
    model: str
    made_at: datetime = Field(sa_type=MOMENT)
    delete_after: datetime | None = Field(sa_type=MOMENT)
    tries: int
