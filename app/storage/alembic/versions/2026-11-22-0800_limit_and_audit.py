"""Keys that expire and have limits of their own, who did what, and what chats spend."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611220800"
down_revision = "202611220611"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("limits", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.add_column("api_keys", sa.Column("expires_at", MOMENT, nullable=True))
    op.add_column("api_keys", sa.Column("last_used_at", MOMENT, nullable=True))
    op.create_table(
        "audit",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("object_id", sa.String(), nullable=True),
        sa.Column("data", JSONB(), nullable=False),
        sa.Column("occurred_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_audit_tenants", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_audit"),
    )
    op.create_index("ix_audit_occurred_at", "audit", ["occurred_at"])
    op.create_table(
        "chat_spending",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("minute", MOMENT, nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="fk_chat_spending_tenants", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "minute", "key_id", name="pk_chat_spending"),
    )


def downgrade() -> None:
    op.drop_table("chat_spending")
    op.drop_table("audit")
    op.drop_column("api_keys", "last_used_at")
    op.drop_column("api_keys", "expires_at")
    op.drop_column("api_keys", "limits")
