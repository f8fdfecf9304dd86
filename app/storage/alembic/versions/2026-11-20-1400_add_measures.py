"""The fidelity of a compaction, and what metrics look for: what ended since the last look, over all tenants."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611201400"
down_revision = "202611201300"

INDEXES = (
    ("ix_compactions_ended", "compactions", ["finished_at"]),
    ("ix_turns_ended", "turns", ["finished_at"]),
    ("ix_expansions_made", "expansions", ["created_at"]),
    ("ix_detail_calls_made", "detail_calls", ["called_at"]),
    ("ix_detail_calls_of_conversation", "detail_calls", ["tenant_id", "conversation_id", "id"]),
)


def upgrade() -> None:
    op.add_column("compactions", sa.Column("fidelity", sa.Float()))
    for name, table, columns in INDEXES:
        op.create_index(name, table, columns)


def downgrade() -> None:
    for name, table, _ in INDEXES:
        op.drop_index(name, table)
    op.drop_column("compactions", "fidelity")
