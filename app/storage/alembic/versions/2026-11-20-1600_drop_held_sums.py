"""What is held is added up where it is asked for: rows after a message stay as they are when it is pinned."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611201600"
down_revision = "202611201500"

COLUMNS = {"held_token_sum": "token_count", "held_byte_sum": "byte_length"}


def upgrade() -> None:
    for name in COLUMNS:
        op.drop_column("messages", name)


def downgrade() -> None:
    for name in COLUMNS:
        op.add_column("messages", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
        op.alter_column("messages", name, server_default=None)
    sums = ", ".join(
        f"sum(CASE WHEN is_protected AND NOT is_command AND status <> 'erased' THEN {weight} ELSE 0 END)"
        f" OVER (PARTITION BY tenant_id, conversation_id ORDER BY seq) AS {name}"
        for name, weight in COLUMNS.items()
    )
    fresh = f"(SELECT id, {sums} FROM messages) AS fresh"  # noqa: S608 - our own names
    changed = ", ".join(f"{name} = fresh.{name}" for name in COLUMNS)
    op.execute(f"UPDATE messages SET {changed} FROM {fresh} WHERE messages.id = fresh.id")  # noqa: S608 - our own names
