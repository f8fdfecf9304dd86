"""What a stateful chat model goes on from."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611201500"
down_revision = "202611201400"

COLUMNS = {"live_model": sa.String(), "live_response_id": sa.String(), "live_through_seq": sa.BigInteger()}


def upgrade() -> None:
    for name, type_ in COLUMNS.items():
        op.add_column("conversations", sa.Column(name, type_))
    op.create_check_constraint(
        op.f("ck_conversations_live"),
        "conversations",
        "num_nulls(live_model, live_response_id, live_through_seq) IN (0, 3)",
    )


def downgrade() -> None:
    op.drop_constraint(op.f("ck_conversations_live"), "conversations")
    for name in COLUMNS:
        op.drop_column("conversations", name)
