"""What a response said of its request, where a forked conversation comes from, and the secret that seals input."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611220600"
down_revision = "202611220500"
branch_labels = None
depends_on = None

FORKED = "num_nulls(forked_from, forked_through) IN (0, 2)"


def upgrade() -> None:
    op.add_column("turns", sa.Column("request", JSONB(), nullable=True))
    op.add_column("conversations", sa.Column("forked_from", sa.Uuid(), nullable=True))
    op.add_column("conversations", sa.Column("forked_through", sa.BigInteger(), nullable=True))
    op.create_check_constraint(op.f("ck_conversations_forked"), "conversations", FORKED)
    op.add_column("tenants", sa.Column("sealing_secret", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("tenants", "sealing_secret")
    op.drop_constraint(op.f("ck_conversations_forked"), "conversations")
    op.drop_column("conversations", "forked_through")
    op.drop_column("conversations", "forked_from")
    op.drop_column("turns", "request")
