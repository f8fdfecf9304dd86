"""Where a forked conversation comes from; rows are checked by the next revision."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611220610"
down_revision = "202611220600"

FORKED = "num_nulls(forked_from, forked_through) IN (0, 2)"


def upgrade() -> None:
    op.add_column("conversations", sa.Column("forked_from", sa.Uuid(), nullable=True))
    op.add_column("conversations", sa.Column("forked_through", sa.BigInteger(), nullable=True))
    op.create_check_constraint(op.f("ck_conversations_forked"), "conversations", FORKED, postgresql_not_valid=True)
