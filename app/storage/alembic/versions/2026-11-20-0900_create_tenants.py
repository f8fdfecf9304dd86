"""Tenants, their API keys and idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.storage.constraints import of_tenant

revision = "202611200900"
down_revision = None

JSON = postgresql.JSONB()
MOMENT = sa.DateTime(timezone=True)
TEXTS = sa.ARRAY(sa.Text())


def upgrade() -> None:
    _tenants()
    _api_keys()
    _idempotency_keys()


def downgrade() -> None:
    op.drop_table("idempotency_keys")
    op.drop_table("api_keys")
    op.drop_table("tenants")


def _tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, server_default=sa.text("now()"), nullable=False),
        sa.UniqueConstraint("name"),
    )


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", TEXTS, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("revoked_at", MOMENT),
        of_tenant(),
        sa.UniqueConstraint("secret_hash"),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("ref", JSON, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        of_tenant(),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
