"""Anchors and pins; what erasure, calibration and thresholds in messages need."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import in_conversation
from app.storage.migrations import create_partial_index

revision = "202611201100"
down_revision = "202611200920"

MOMENT = sa.DateTime(timezone=True)
BIG = sa.BigInteger()
ZERO = sa.text("0")


def upgrade() -> None:
    _anchors()
    _messages()
    _conversations()
    op.add_column("state_versions", sa.Column("covered_messages", BIG, nullable=False, server_default=ZERO))
    op.alter_column("state_versions", "covered_messages", server_default=None)
    op.create_index("ix_compactions_finished", "compactions", ["tenant_id", "finished_at"])
    _count_what_is_there()


def downgrade() -> None:
    op.drop_index("ix_compactions_finished", "compactions")
    op.drop_column("state_versions", "covered_messages")
    op.drop_index("ix_conversations_due", "conversations")
    for name in (
        "content_epoch",
        "token_factor",
        "total_messages",
        "covered_messages",
        "context_messages",
        "trigger_messages",
    ):
        op.drop_column("conversations", name)
    create_partial_index(
        "ix_conversations_due",
        "conversations",
        ["tenant_id", "id"],
        "trigger_tokens IS NOT NULL AND context_tokens >= trigger_tokens",
    )
    op.drop_column("messages", "is_pinned")
    op.drop_column("messages", "message_sum")
    op.drop_table("anchors")


def _anchors() -> None:
    op.create_table(
        "anchors",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("offset", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("proposed_by", sa.String(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("token_count", sa.Integer(), nullable=False),
        sa.Column("superseded_by", sa.Uuid()),
        sa.Column("created_at", MOMENT, nullable=False),
        in_conversation(),
        sa.UniqueConstraint("tenant_id", "conversation_id", "seq", "offset", "type"),
        sa.CheckConstraint(
            "type IN ('commitment', 'correction', 'critical_fact', 'decision', 'unresolved_question')",
            name=op.f("ck_anchors_type"),
        ),
        sa.CheckConstraint("status IN ('active', 'resolved', 'superseded')", name=op.f("ck_anchors_status")),
        sa.CheckConstraint("proposed_by IN ('model', 'rule', 'user')", name=op.f("ck_anchors_proposed_by")),
    )
    create_partial_index("ix_anchors_active", "anchors", ["tenant_id", "conversation_id", "seq"], "status = 'active'")


def _messages() -> None:
    op.add_column("messages", sa.Column("is_pinned", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.alter_column("messages", "is_pinned", server_default=None)
    op.add_column("messages", sa.Column("message_sum", BIG, nullable=False, server_default=ZERO))
    op.alter_column("messages", "message_sum", server_default=None)


def _conversations() -> None:
    for name in ("content_epoch", "total_messages", "covered_messages", "context_messages"):
        op.add_column("conversations", sa.Column(name, BIG, nullable=False, server_default=ZERO))
        op.alter_column("conversations", name, server_default=None)
    op.add_column("conversations", sa.Column("token_factor", sa.Float(), nullable=False, server_default=sa.text("1")))
    op.alter_column("conversations", "token_factor", server_default=None)
    op.add_column("conversations", sa.Column("trigger_messages", BIG))
    op.drop_index("ix_conversations_due", "conversations")
    create_partial_index(
        "ix_conversations_due",
        "conversations",
        ["tenant_id", "id"],
        "context_tokens >= trigger_tokens OR context_messages >= trigger_messages",
    )


def _count_what_is_there() -> None:
    """The running count of messages, for conversations that are older than it."""
    op.execute(
        """
        UPDATE messages SET message_sum = counted.number
        FROM (
            SELECT tenant_id, id, sum(CASE WHEN is_command THEN 0 ELSE 1 END)
                OVER (PARTITION BY tenant_id, conversation_id ORDER BY seq) AS number
            FROM messages
        ) AS counted
        WHERE messages.tenant_id = counted.tenant_id AND messages.id = counted.id
        """
    )
    op.execute(
        """
        UPDATE conversations SET
            total_messages = coalesce((SELECT max(message_sum) FROM messages
                WHERE messages.tenant_id = conversations.tenant_id AND conversation_id = conversations.id), 0),
            covered_messages = coalesce((SELECT max(message_sum) FROM messages
                WHERE messages.tenant_id = conversations.tenant_id AND conversation_id = conversations.id
                AND seq <= boundary_seq), 0)
        """
    )
    op.execute("UPDATE conversations SET context_messages = total_messages - covered_messages")
    op.execute(
        """
        UPDATE state_versions SET covered_messages = coalesce((SELECT max(message_sum) FROM messages
            WHERE messages.tenant_id = state_versions.tenant_id
            AND messages.conversation_id = state_versions.conversation_id
            AND seq <= state_versions.boundary_seq), 0)
        """
    )
