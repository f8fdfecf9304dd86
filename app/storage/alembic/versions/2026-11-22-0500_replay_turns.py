"""A turn's reply has its id from the start, and others may follow it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision = "202611220500"
down_revision = "202611220431"


def upgrade() -> None:
    op.add_column("turns", sa.Column("planned_reply_id", sa.Uuid(), nullable=True))
    op.add_column("turns", sa.Column("stream_key", sa.LargeBinary(), nullable=True))
    op.add_column("turns", sa.Column("followed_at", sa.DateTime(timezone=True), nullable=True))
    # The default stays: the version before does not write this column, and no row is written again for it.
    numbers = postgresql.ARRAY(sa.BigInteger())
    op.add_column("turns", sa.Column("recalled", numbers, nullable=False, server_default="{}"))
