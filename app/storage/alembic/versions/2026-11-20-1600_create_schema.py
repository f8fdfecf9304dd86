"""Every table of commit 150b694, the first whose data are kept; no earlier database is brought up from."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.storage.constraints import in_conversation, of_tenant
from app.storage.migrations import create_partial_index

revision = "202611201600"
down_revision = None

UUID, STRING, BOOL, FLOAT = sa.Uuid(), sa.String(), sa.Boolean(), sa.Float()
INT, BIG, MOMENT = sa.Integer(), sa.BigInteger(), sa.DateTime(timezone=True)
JSON, WRITTEN = postgresql.JSONB(), postgresql.JSON()
TEXTS, NUMBERS = sa.ARRAY(sa.Text()), sa.ARRAY(BIG)
OF_CONVERSATION = ["tenant_id", "conversation_id"]


def upgrade() -> None:
    _tenants()
    _conversations()
    _messages()
    _state_versions()
    _compactions()
    _turns()
    _anchors()
    _segments()
    _expansions()


def _keys(type_: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_, primary_key=True) for name in names]


def _needed(type_: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_, nullable=False) for name in names]


def _maybe(type_: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_) for name in names]


def _tenants() -> None:
    op.create_table(
        "tenants",
        *_keys(UUID, "tenant_id"),
        *_needed(STRING, "name"),
        sa.Column("created_at", MOMENT, server_default=sa.text("now()"), nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "api_keys",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(STRING, "name", "prefix"),
        *_needed(sa.LargeBinary(), "secret_hash"),
        *_needed(TEXTS, "scopes"),
        *_needed(MOMENT, "created_at"),
        *_maybe(MOMENT, "revoked_at"),
        of_tenant(),
        sa.UniqueConstraint("secret_hash"),
    )
    op.create_table(
        "idempotency_keys",
        *_keys(UUID, "tenant_id"),
        *_keys(STRING, "key"),
        *_needed(STRING, "fingerprint"),
        *_needed(JSON, "ref"),
        *_needed(INT, "status"),
        *_needed(MOMENT, "created_at"),
        of_tenant(),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])


def _conversations() -> None:
    op.create_table(
        "conversations",
        *_keys(UUID, "tenant_id", "id"),
        *_maybe(STRING, "title", "user_id"),
        *_needed(STRING, "locale", "system_prompt", "preset"),
        *_needed(JSON, "policy"),
        *_maybe(STRING, "state_schema"),
        *_maybe(JSON, "compressed_state"),
        *_maybe(UUID, "compressed_at_message_id"),
        *_needed(BIG, "boundary_seq", "state_version"),
        *_maybe(JSON, "layout"),
        *_needed(INT, "layout_version", "compression_count"),
        *_needed(JSON, "scratchpad", "metadata"),
        *_needed(BIG, "last_seq"),
        *_maybe(UUID, "last_message_id"),
        *_maybe(MOMENT, "last_message_at"),
        *_needed(BIG, "last_event", "total_tokens", "total_bytes", "total_held_tokens", "total_held_bytes"),
        *_needed(BIG, "covered_tokens", "covered_bytes", "covered_held_tokens", "covered_held_bytes", "context_tokens"),
        *_maybe(BIG, "trigger_tokens"),
        *_needed(BIG, "quiet_until_seq", "quiet_until_tokens"),
        *_maybe(MOMENT, "quiet_until"),
        *_maybe(STRING, "quiet_reason"),
        *_needed(INT, "failure_count"),
        *_needed(MOMENT, "created_at", "updated_at"),
        *_needed(BIG, "content_epoch", "total_messages", "covered_messages", "context_messages"),
        *_needed(FLOAT, "token_factor"),
        *_maybe(BIG, "trigger_messages"),
        *_maybe(STRING, "live_model", "live_response_id"),
        *_maybe(BIG, "live_through_seq"),
        sa.CheckConstraint("boundary_seq BETWEEN 0 AND last_seq", name="boundary"),
        sa.CheckConstraint("covered_tokens BETWEEN 0 AND total_tokens", name="covered"),
        sa.CheckConstraint("last_event >= 0", name="last_event"),
        sa.CheckConstraint("state_version >= 0", name="state_version"),
        sa.CheckConstraint("num_nulls(live_model, live_response_id, live_through_seq) IN (0, 3)", name="live"),
        of_tenant(),
    )
    due = "context_tokens >= trigger_tokens OR context_messages >= trigger_messages"
    create_partial_index("ix_conversations_due", "conversations", ["tenant_id", "id"], due)
    at = sa.literal_column("(coalesce(last_message_at, created_at))")
    op.create_index("ix_conversations_listed", "conversations", ["tenant_id", at, "id"])
    op.create_index("ix_conversations_listed_of_user", "conversations", ["tenant_id", "user_id", at, "id"])
    op.create_table(
        "events",
        *_keys(UUID, *OF_CONVERSATION),
        *_keys(BIG, "number"),
        *_needed(STRING, "type"),
        *_needed(JSON, "data"),
        *_needed(MOMENT, "occurred_at"),
        sa.CheckConstraint("number > 0", name="number"),
        in_conversation(),
    )


def _messages() -> None:
    op.create_table(
        "messages",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id"),
        *_needed(BIG, "seq"),
        *_needed(STRING, "role", "content"),
        *_needed(WRITTEN, "parts"),
        *_needed(TEXTS, "call_ids", "result_ids"),
        *_needed(STRING, "event_type", "status"),
        *_needed(BOOL, "is_command"),
        *_needed(STRING, "protected_reason"),
        *_needed(BOOL, "is_protected"),
        *_needed(BIG, "token_count", "byte_length", "token_sum", "byte_sum"),
        *_maybe(STRING, "model"),
        *_maybe(JSON, "usage"),
        *_needed(JSON, "metadata"),
        *_needed(MOMENT, "created_at"),
        *_needed(BOOL, "is_pinned"),
        *_needed(BIG, "message_sum"),
        *_needed(NUMBERS, "term_keys"),
        sa.CheckConstraint("role IN ('assistant', 'system', 'tool', 'user')", name="role"),
        sa.CheckConstraint("status IN ('complete', 'erased', 'interrupted')", name="status"),
        sa.CheckConstraint("seq > 0", name="seq"),
        sa.CheckConstraint("token_count >= 0 AND byte_length >= 0", name="weight"),
        sa.CheckConstraint("parts::jsonb IS NOT NULL", name="parts"),
        in_conversation(),
        sa.UniqueConstraint(*OF_CONVERSATION, "seq"),
    )
    place = [*OF_CONVERSATION, "seq"]
    create_partial_index("ix_messages_calls", "messages", place, "call_ids <> '{}'::text[]")
    create_partial_index("ix_messages_protected", "messages", place, "is_protected")
    op.create_index("ix_messages_token_sum", "messages", [*OF_CONVERSATION, "token_sum"])
    pending = {"gin_pending_list_limit": "512"}
    op.create_index("ix_messages_terms", "messages", ["term_keys"], postgresql_using="gin", postgresql_with=pending)


def _state_versions() -> None:
    op.create_table(
        "state_versions",
        *_keys(UUID, *OF_CONVERSATION),
        *_keys(BIG, "version"),
        *_needed(STRING, "state_schema"),
        *_needed(JSON, "state", "entries"),
        *_needed(INT, "next_entry"),
        *_needed(BIG, "boundary_seq"),
        *_maybe(UUID, "boundary_message_id"),
        *_needed(BIG, "covered_tokens", "covered_bytes", "covered_held_tokens", "covered_held_bytes"),
        *_maybe(JSON, "layout"),
        *_maybe(UUID, "compaction_id"),
        *_needed(MOMENT, "created_at"),
        *_needed(BIG, "covered_messages"),
        *_maybe(BIG, "parent_version"),
        *_needed(TEXTS, "segment_ids"),
        sa.CheckConstraint("boundary_seq >= 0", name="boundary"),
        sa.CheckConstraint("version > 0", name="version"),
        in_conversation(),
    )
    op.create_index("ix_state_versions_compaction", "state_versions", ["tenant_id", "compaction_id"])


def _compactions() -> None:
    op.create_table(
        "compactions",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id"),
        *_needed(STRING, "trigger", "ran_in", "status"),
        *_maybe(STRING, "reason"),
        *_needed(STRING, "strategy"),
        *_maybe(STRING, "model"),
        *_needed(JSON, "request", "attempts"),
        *_maybe(BIG, "from_seq", "to_seq"),
        *_needed(INT, "messages_covered"),
        *_maybe(BIG, "tokens_before", "tokens_after"),
        *_needed(JSON, "entries"),
        *_needed(BIG, "state_version_before"),
        *_maybe(BIG, "state_version_after"),
        *_needed(JSON, "usage"),
        *_maybe(BIG, "duration_ms"),
        *_maybe(UUID, "retry_of"),
        *_needed(INT, "claims"),
        *_maybe(UUID, "lease_token"),
        *_maybe(MOMENT, "lease_until"),
        *_maybe(STRING, "owner"),
        *_maybe(MOMENT, "queued_at", "sent_at"),
        *_needed(MOMENT, "requested_at"),
        *_maybe(MOMENT, "started_at", "finished_at"),
        *_maybe(FLOAT, "fidelity"),
        sa.CheckConstraint(
            "(status = 'running') = (lease_token IS NOT NULL AND lease_until IS NOT NULL)", name="lease"
        ),
        sa.CheckConstraint("ran_in IN ('request', 'sweeper', 'turn', 'worker')", name="ran_in"),
        sa.CheckConstraint(
            "status IN ('applied', 'failed', 'queued', 'rejected', 'running', 'skipped', 'superseded')", name="status"
        ),
        sa.CheckConstraint("claims >= 0", name="claims"),
        in_conversation(),
    )
    op.create_index("ix_compactions_id", "compactions", ["id"])
    op.create_index("ix_compactions_of_conversation", "compactions", [*OF_CONVERSATION, "id"])
    op.create_index("ix_compactions_of_status", "compactions", ["tenant_id", "status", "id"])
    op.create_index("ix_compactions_finished", "compactions", ["tenant_id", "finished_at"])
    op.create_index("ix_compactions_ended", "compactions", ["finished_at"])
    create_partial_index("ix_compactions_lease", "compactions", ["lease_until"], "status = 'running'")
    create_partial_index("ix_compactions_queued", "compactions", ["queued_at"], "status = 'queued'")
    in_flight = "status IN ('queued', 'running')"
    create_partial_index("uq_compactions_in_flight", "compactions", OF_CONVERSATION, in_flight, unique=True)


def _turns() -> None:
    op.create_table(
        "turns",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id", "message_id"),
        *_maybe(UUID, "reply_id", "compaction_id"),
        *_needed(STRING, "status"),
        *_needed(MOMENT, "lease_until"),
        *_needed(BOOL, "interrupt_requested"),
        *_needed(TEXTS, "warnings"),
        *_maybe(STRING, "error_code"),
        *_needed(MOMENT, "started_at"),
        *_maybe(MOMENT, "finished_at"),
        sa.CheckConstraint("status IN ('completed', 'failed', 'interrupted', 'running')", name="status"),
        in_conversation(),
    )
    op.create_index("ix_turns_of_conversation", "turns", [*OF_CONVERSATION, "id"])
    op.create_index("ix_turns_ended", "turns", ["finished_at"])
    create_partial_index("ix_turns_lease", "turns", ["lease_until"], "status = 'running'")
    create_partial_index("uq_turns_running", "turns", OF_CONVERSATION, "status = 'running'", unique=True)


def _anchors() -> None:
    op.create_table(
        "anchors",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id", "message_id"),
        *_needed(BIG, "seq"),
        *_needed(INT, "offset"),
        *_needed(STRING, "type", "content", "status", "proposed_by"),
        *_needed(FLOAT, "importance"),
        *_needed(INT, "token_count"),
        *_maybe(UUID, "superseded_by"),
        *_needed(MOMENT, "created_at"),
        in_conversation(),
        sa.UniqueConstraint(*OF_CONVERSATION, "seq", "offset", "type"),
        sa.CheckConstraint(
            "type IN ('commitment', 'correction', 'critical_fact', 'decision', 'unresolved_question')", name="type"
        ),
        sa.CheckConstraint("status IN ('active', 'resolved', 'superseded')", name="status"),
        sa.CheckConstraint("proposed_by IN ('model', 'rule', 'user')", name="proposed_by"),
    )
    create_partial_index("ix_anchors_active", "anchors", [*OF_CONVERSATION, "seq"], "status = 'active'")


def _segments() -> None:
    op.create_table(
        "segments",
        *_keys(UUID, *OF_CONVERSATION),
        *_keys(STRING, "id"),
        *_needed(BIG, "from_seq", "to_seq"),
        *_needed(STRING, "topic"),
        *_needed(MOMENT, "started_at", "ended_at"),
        *_needed(INT, "messages"),
        *_needed(BIG, "tokens"),
        *_needed(TEXTS, "identifiers"),
        *_needed(BOOL, "is_current", "wants_detail"),
        *_needed(INT, "detail_tries"),
        *_maybe(MOMENT, "detail_after"),
        *_needed(MOMENT, "created_at"),
        in_conversation(),
        sa.UniqueConstraint(*OF_CONVERSATION, "from_seq", "to_seq"),
        sa.CheckConstraint("from_seq > 0 AND to_seq >= from_seq", name="range"),
    )
    create_partial_index("ix_segments_current", "segments", [*OF_CONVERSATION, "from_seq", "to_seq"], "is_current")
    create_partial_index("ix_segments_wanting", "segments", ["detail_after"], "wants_detail AND is_current")
    op.create_table(
        "segment_levels",
        *_keys(UUID, *OF_CONVERSATION),
        *_keys(STRING, "segment_id", "level"),
        *_needed(STRING, "text"),
        *_needed(INT, "tokens"),
        *_needed(STRING, "made_by", "content_hash"),
        *_needed(MOMENT, "created_at"),
        sa.ForeignKeyConstraint(
            [*OF_CONVERSATION, "segment_id"],
            ["segments.tenant_id", "segments.conversation_id", "segments.id"],
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("level IN ('L1', 'L2', 'L3')", name="level"),
    )


def _expansions() -> None:
    op.create_table(
        "expansions",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id"),
        *_needed(STRING, "way"),
        *_maybe(STRING, "level", "segment_id"),
        *_needed(INT, "passages"),
        *_needed(BIG, "tokens"),
        *_maybe(BOOL, "used"),
        *_needed(BIG, "duration_ms"),
        *_needed(MOMENT, "created_at"),
        in_conversation(),
        sa.CheckConstraint("way IN ('automatic', 'explicit', 'search')", name="way"),
    )
    op.create_index("ix_expansions_of_conversation", "expansions", [*OF_CONVERSATION, "id"])
    op.create_index("ix_expansions_made", "expansions", ["created_at"])
    op.create_table(
        "detail_calls",
        *_keys(UUID, "tenant_id", "id"),
        *_needed(UUID, "conversation_id"),
        *_maybe(JSON, "attempt"),
        *_needed(MOMENT, "called_at"),
        in_conversation(),
    )
    op.create_index("ix_detail_calls_of_late", "detail_calls", ["tenant_id", "called_at"])
    op.create_index("ix_detail_calls_made", "detail_calls", ["called_at"])
    op.create_index("ix_detail_calls_of_conversation", "detail_calls", [*OF_CONVERSATION, "id"])
    create_partial_index("ix_detail_calls_running", "detail_calls", ["called_at"], "attempt IS NULL")
