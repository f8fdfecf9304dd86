"""Caches of what requests begin with, which providers keep: what is known of them, whose they are, what they cost."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import in_conversation, of_tenant
from app.storage.migrations import create_partial_index
from app.storage.row_security import protection_sql

revision = "202611222010"
down_revision = "202611222000"

MOMENT = sa.DateTime(timezone=True)
NEW = ("provider_caches", "provider_cache_members", "provider_cache_entries")


def upgrade() -> None:
    op.create_table(
        "provider_caches",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("files", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("minimum", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("ttl_seconds", sa.Integer(), nullable=False),
        sa.Column("made_at", MOMENT, nullable=True),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("made_for", sa.Uuid(), nullable=True),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.Column("rate", sa.Float(), nullable=False),
        sa.Column("rate_at", MOMENT, nullable=True),
        sa.Column("hit_rate", sa.Float(), nullable=True),
        sa.Column("measured", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("due_at", MOMENT, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=False),
        sa.CheckConstraint("num_nulls(name, made_at, expires_at) IN (0, 3)", name="whole"),
        of_tenant(),
        sa.UniqueConstraint("tenant_id", "model", "account", "fingerprint"),
    )
    op.create_index("ix_provider_caches_id", "provider_caches", ["id"])
    create_partial_index("ix_provider_caches_due", "provider_caches", ["due_at"], "due_at IS NOT NULL")
    op.create_index("ix_provider_caches_last_used_at", "provider_caches", ["last_used_at"])
    op.create_table(
        "provider_cache_members",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("model", sa.String(), primary_key=True),
        sa.Column("cache_id", sa.Uuid(), nullable=False),
        sa.Column("joined_at", MOMENT, nullable=False),
        in_conversation(),
        sa.ForeignKeyConstraint(
            ["tenant_id", "cache_id"], ["provider_caches.tenant_id", "provider_caches.id"], ondelete="CASCADE"
        ),
    )
    op.create_index("ix_provider_cache_members_of_cache", "provider_cache_members", ["tenant_id", "cache_id"])
    op.create_table(
        "provider_cache_entries",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=True),
        sa.Column("cache_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("spent_usd", sa.Float(), nullable=True),
        sa.Column("saved_usd", sa.Float(), nullable=True),
        sa.Column("beyond_usd", sa.Float(), nullable=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.CheckConstraint("action IN ('ended', 'failed', 'lost', 'made', 'renewed', 'used')", name="action"),
        of_tenant(),
        in_conversation(),
    )
    op.create_index(
        "ix_provider_cache_entries_of_conversation", "provider_cache_entries", ["tenant_id", "conversation_id", "id"]
    )
    op.create_index("ix_provider_cache_entries_at", "provider_cache_entries", ["at"])
    for table in NEW:  # new ones: nobody has a lock on them
        op.execute(protection_sql(table))
