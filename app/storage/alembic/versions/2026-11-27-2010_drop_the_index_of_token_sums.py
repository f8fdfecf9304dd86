"""No index on the running sums: the newest messages are read back from the end, by their positions."""

from __future__ import annotations

from alembic import op

revision = "202611272010"
down_revision = "202611272000"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.drop_index("ix_messages_token_sum", "messages", if_exists=True, postgresql_concurrently=True)
