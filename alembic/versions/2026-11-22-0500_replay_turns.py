"""A turn's reply has its id from the start, others may follow it, and a reply that was made again stays stored."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "202611220500"
down_revision = "202611212230"
branch_labels = None
depends_on = None

STATUS = "status IN ('complete', 'erased', 'interrupted', 'superseded')"
# What was recalled for a turn stood with the key that the client sent, where it sent one.
RECALLED_BEFORE = """
    UPDATE turns SET recalled = ARRAY(SELECT jsonb_array_elements_text(keys.ref -> 'recalled')::bigint)
    FROM idempotency_keys AS keys
    WHERE keys.tenant_id = turns.tenant_id AND keys.ref ? 'recalled' AND keys.ref ->> 'turn_id' = turns.id::text
"""
STATUS_BEFORE = "status IN ('complete', 'erased', 'interrupted')"


def upgrade() -> None:
    op.add_column("turns", sa.Column("planned_reply_id", sa.Uuid(), nullable=True))
    op.add_column("turns", sa.Column("followed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("turns", sa.Column("stream_key", sa.LargeBinary(), nullable=True))
    # With a default that stays in the catalogue, no row is written again for it.
    numbers = postgresql.ARRAY(sa.BigInteger())
    op.add_column("turns", sa.Column("recalled", numbers, nullable=False, server_default="{}"))
    op.alter_column("turns", "recalled", server_default=None)
    op.execute(RECALLED_BEFORE)
    op.drop_constraint(op.f("ck_messages_status"), "messages")
    op.create_check_constraint(op.f("ck_messages_status"), "messages", STATUS)


def downgrade() -> None:
    # A reply that was made again was said once: an earlier version knows no other word for it.
    op.execute("UPDATE messages SET status = 'complete' WHERE status = 'superseded'")
    op.drop_constraint(op.f("ck_messages_status"), "messages")
    op.create_check_constraint(op.f("ck_messages_status"), "messages", STATUS_BEFORE)
    for name in ("recalled", "stream_key", "followed_at", "planned_reply_id"):
        op.drop_column("turns", name)
