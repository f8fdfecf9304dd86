"""Segments with their levels, what versions cover, and expansions."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.storage.constraints import in_conversation
from app.storage.migrations import create_partial_index

revision = "202611201300"
down_revision = "202611201200"

MOMENT = sa.DateTime(timezone=True)
BIG = sa.BigInteger()
TEXTS = sa.ARRAY(sa.Text())


def upgrade() -> None:
    _states()
    _segments()
    _levels()
    _expansions()
    _detail_calls()
    # Originals come back as they went in: JSONB keeps neither the order of keys nor 1e22 apart from an integer.
    op.alter_column("messages", "parts", type_=postgresql.JSON(), postgresql_using="parts::json")
    op.create_check_constraint(op.f("ck_messages_parts"), "messages", "parts::jsonb IS NOT NULL")


def downgrade() -> None:
    op.drop_constraint(op.f("ck_messages_parts"), "messages")
    op.alter_column("messages", "parts", type_=postgresql.JSONB(), postgresql_using="parts::jsonb")
    op.drop_table("detail_calls")
    op.drop_table("expansions")
    op.drop_table("segment_levels")
    op.drop_table("segments")
    op.drop_column("state_versions", "segment_ids")
    op.drop_column("state_versions", "parent_version")


def _states() -> None:
    op.add_column("state_versions", sa.Column("parent_version", BIG))
    op.add_column(
        "state_versions", sa.Column("segment_ids", TEXTS, nullable=False, server_default=sa.text("'{}'::text[]"))
    )
    op.alter_column("state_versions", "segment_ids", server_default=None)
    # Versions written before there were segments: each goes on from the one before it.
    op.execute("UPDATE state_versions SET parent_version = version - 1 WHERE version > 1")


def _segments() -> None:
    op.create_table(
        "segments",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("from_seq", BIG, nullable=False),
        sa.Column("to_seq", BIG, nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("tokens", BIG, nullable=False),
        sa.Column("identifiers", TEXTS, nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("wants_detail", sa.Boolean(), nullable=False),
        sa.Column("detail_tries", sa.Integer(), nullable=False),
        sa.Column("detail_after", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        in_conversation(),
        sa.UniqueConstraint("tenant_id", "conversation_id", "from_seq", "to_seq"),
        sa.CheckConstraint("from_seq > 0 AND to_seq >= from_seq", name=op.f("ck_segments_range")),
    )
    create_partial_index(
        "ix_segments_current", "segments", ["tenant_id", "conversation_id", "from_seq", "to_seq"], "is_current"
    )
    create_partial_index("ix_segments_wanting", "segments", ["detail_after"], "wants_detail AND is_current")


def _levels() -> None:
    op.create_table(
        "segment_levels",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("segment_id", sa.String(), primary_key=True),
        sa.Column("level", sa.String(), primary_key=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id", "segment_id"],
            ["segments.tenant_id", "segments.conversation_id", "segments.id"],
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("level IN ('L1', 'L2', 'L3')", name=op.f("ck_segment_levels_level")),
    )


def _expansions() -> None:
    op.create_table(
        "expansions",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("way", sa.String(), nullable=False),
        sa.Column("level", sa.String()),
        sa.Column("segment_id", sa.String()),
        sa.Column("passages", sa.Integer(), nullable=False),
        sa.Column("tokens", BIG, nullable=False),
        sa.Column("used", sa.Boolean()),
        sa.Column("duration_ms", BIG, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        in_conversation(),
        sa.CheckConstraint("way IN ('automatic', 'explicit', 'search')", name=op.f("ck_expansions_way")),
    )
    op.create_index("ix_expansions_of_conversation", "expansions", ["tenant_id", "conversation_id", "id"])


def _detail_calls() -> None:
    op.create_table(
        "detail_calls",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", postgresql.JSONB()),
        sa.Column("called_at", MOMENT, nullable=False),
        in_conversation(),
    )
    op.create_index("ix_detail_calls_of_late", "detail_calls", ["tenant_id", "called_at"])
    create_partial_index("ix_detail_calls_running", "detail_calls", ["called_at"], "attempt IS NULL")
