"""Conversations: messages, state versions, events."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.storage.constraints import in_conversation, of_tenant
from app.storage.migrations import create_partial_index

revision = "202611200910"
down_revision = "202611200900"

JSON = postgresql.JSONB()
MOMENT = sa.DateTime(timezone=True)
BIG = sa.BigInteger()
TEXTS = sa.ARRAY(sa.Text())


def upgrade() -> None:
    _conversations()
    _messages()
    _state_versions()
    _events()


def downgrade() -> None:
    op.drop_table("events")
    op.drop_table("state_versions")
    op.drop_table("messages")
    op.drop_table("conversations")


def _conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("title", sa.String()),
        sa.Column("user_id", sa.String()),
        sa.Column("locale", sa.String(), nullable=False),
        sa.Column("system_prompt", sa.String(), nullable=False),
        sa.Column("preset", sa.String(), nullable=False),
        sa.Column("policy", JSON, nullable=False),
        sa.Column("state_schema", sa.String()),
        sa.Column("compressed_state", JSON),
        sa.Column("compressed_at_message_id", sa.Uuid()),
        sa.Column("boundary_seq", BIG, nullable=False),
        sa.Column("state_version", BIG, nullable=False),
        sa.Column("layout", JSON),
        sa.Column("layout_version", sa.Integer(), nullable=False),
        sa.Column("compression_count", sa.Integer(), nullable=False),
        sa.Column("scratchpad", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("last_seq", BIG, nullable=False),
        sa.Column("last_message_id", sa.Uuid()),
        sa.Column("last_message_at", MOMENT),
        sa.Column("last_event", BIG, nullable=False),
        sa.Column("total_tokens", BIG, nullable=False),
        sa.Column("total_bytes", BIG, nullable=False),
        sa.Column("total_held_tokens", BIG, nullable=False),
        sa.Column("total_held_bytes", BIG, nullable=False),
        sa.Column("covered_tokens", BIG, nullable=False),
        sa.Column("covered_bytes", BIG, nullable=False),
        sa.Column("covered_held_tokens", BIG, nullable=False),
        sa.Column("covered_held_bytes", BIG, nullable=False),
        sa.Column("context_tokens", BIG, nullable=False),
        sa.Column("trigger_tokens", BIG),
        sa.Column("quiet_until_seq", BIG, nullable=False),
        sa.Column("quiet_until_tokens", BIG, nullable=False),
        sa.Column("quiet_until", MOMENT),
        sa.Column("quiet_reason", sa.String()),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("boundary_seq BETWEEN 0 AND last_seq", name=op.f("ck_conversations_boundary")),
        sa.CheckConstraint("covered_tokens BETWEEN 0 AND total_tokens", name=op.f("ck_conversations_covered")),
        sa.CheckConstraint("last_event >= 0", name=op.f("ck_conversations_last_event")),
        sa.CheckConstraint("state_version >= 0", name=op.f("ck_conversations_state_version")),
        of_tenant(),
    )
    create_partial_index(
        "ix_conversations_due",
        "conversations",
        ["tenant_id", "id"],
        "trigger_tokens IS NOT NULL AND context_tokens >= trigger_tokens",
    )
    op.create_index(
        "ix_conversations_listed",
        "conversations",
        ["tenant_id", sa.literal_column("(coalesce(last_message_at, created_at))"), "id"],
    )
    op.create_index(
        "ix_conversations_listed_of_user",
        "conversations",
        ["tenant_id", "user_id", sa.literal_column("(coalesce(last_message_at, created_at))"), "id"],
    )


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("parts", JSON, nullable=False),
        sa.Column("call_ids", TEXTS, nullable=False),
        sa.Column("result_ids", TEXTS, nullable=False),
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("is_command", sa.Boolean(), nullable=False),
        sa.Column("protected_reason", sa.String(), nullable=False),
        sa.Column("is_protected", sa.Boolean(), nullable=False),
        sa.Column("token_count", BIG, nullable=False),
        sa.Column("byte_length", BIG, nullable=False),
        sa.Column("token_sum", BIG, nullable=False),
        sa.Column("byte_sum", BIG, nullable=False),
        sa.Column("held_token_sum", BIG, nullable=False),
        sa.Column("held_byte_sum", BIG, nullable=False),
        sa.Column("model", sa.String()),
        sa.Column("usage", JSON),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("role IN ('assistant', 'system', 'tool', 'user')", name=op.f("ck_messages_role")),
        sa.CheckConstraint("status IN ('complete', 'erased', 'interrupted')", name=op.f("ck_messages_status")),
        sa.CheckConstraint("seq > 0", name=op.f("ck_messages_seq")),
        sa.CheckConstraint("token_count >= 0 AND byte_length >= 0", name=op.f("ck_messages_weight")),
        in_conversation(),
        sa.UniqueConstraint("tenant_id", "conversation_id", "seq"),
    )
    create_partial_index(
        "ix_messages_calls", "messages", ["tenant_id", "conversation_id", "seq"], "call_ids <> '{}'::text[]"
    )
    create_partial_index("ix_messages_protected", "messages", ["tenant_id", "conversation_id", "seq"], "is_protected")
    op.create_index("ix_messages_token_sum", "messages", ["tenant_id", "conversation_id", "token_sum"])


def _state_versions() -> None:
    op.create_table(
        "state_versions",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("version", BIG, primary_key=True),
        sa.Column("state_schema", sa.String(), nullable=False),
        sa.Column("state", JSON, nullable=False),
        sa.Column("entries", JSON, nullable=False),
        sa.Column("next_entry", sa.Integer(), nullable=False),
        sa.Column("boundary_seq", BIG, nullable=False),
        sa.Column("boundary_message_id", sa.Uuid()),
        sa.Column("covered_tokens", BIG, nullable=False),
        sa.Column("covered_bytes", BIG, nullable=False),
        sa.Column("covered_held_tokens", BIG, nullable=False),
        sa.Column("covered_held_bytes", BIG, nullable=False),
        sa.Column("layout", JSON),
        sa.Column("compaction_id", sa.Uuid()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("boundary_seq >= 0", name=op.f("ck_state_versions_boundary")),
        sa.CheckConstraint("version > 0", name=op.f("ck_state_versions_version")),
        in_conversation(),
    )
    op.create_index("ix_state_versions_compaction", "state_versions", ["tenant_id", "compaction_id"])


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("number", BIG, primary_key=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("occurred_at", MOMENT, nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("ck_events_number")),
        in_conversation(),
    )
