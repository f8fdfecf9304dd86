"""Where in its conversation a turn began: clocks may disagree, and the order of ids with that of messages."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611272000"
down_revision = "202611251900"


def upgrade() -> None:
    op.add_column("turns", sa.Column("input_from_seq", sa.BigInteger(), nullable=True))
    op.add_column("turns", sa.Column("begun_at_seq", sa.BigInteger(), nullable=True))
