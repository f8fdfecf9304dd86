"""Keys that expire and have limits of their own, who did what, and what chats spend."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op
from app.storage.constraints import of_tenant

revision = "202611220800"
down_revision = "202611220611"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("limits", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.add_column("api_keys", sa.Column("expires_at", MOMENT, nullable=True))
    op.add_column("api_keys", sa.Column("last_used_at", MOMENT, nullable=True))
    op.create_table(
        "audit",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("object_id", sa.String(), nullable=True),
        sa.Column("data", JSONB(), nullable=False),
        sa.Column("occurred_at", MOMENT, nullable=False),
        of_tenant(),
    )
    op.create_index("ix_audit_occurred_at", "audit", ["occurred_at"])
    op.create_table(
        "chat_spending",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("minute", MOMENT, primary_key=True),
        sa.Column("key_id", sa.Uuid(), primary_key=True),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        of_tenant(),
    )
