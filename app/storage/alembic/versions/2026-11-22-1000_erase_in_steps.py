"""Long histories: what is deleted, erased and summed anew in steps, and what providers keep of conversations."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import of_tenant
from app.storage.migrations import create_partial_index

revision = "202611221000"
down_revision = "202611220900"

MOMENT = sa.DateTime(timezone=True)
COLUMNS = {"deleted_at": MOMENT, "stale_sums_from": sa.BigInteger(), "stale_sums_to": sa.BigInteger()}


def upgrade() -> None:
    for name, type_ in COLUMNS.items():
        op.add_column("conversations", sa.Column(name, type_, nullable=True))
    op.create_table(
        "erasures",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("conversations", sa.BigInteger(), nullable=False),
        sa.Column("requested_at", MOMENT, nullable=False),
        of_tenant(),
    )
    op.create_table(
        "provider_copies",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("response_id", sa.String(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.Column("delete_after", MOMENT, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        of_tenant(),
    )
    op.create_index("ix_provider_copies_of_conversation", "provider_copies", ["tenant_id", "conversation_id"])
    create_partial_index("ix_provider_copies_wanted", "provider_copies", ["delete_after"], "delete_after IS NOT NULL")
