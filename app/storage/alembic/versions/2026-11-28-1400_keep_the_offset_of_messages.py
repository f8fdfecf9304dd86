"""How far from UTC the clock was on which a message was said: its day is the day there."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611281400"
down_revision = "202611272010"


def upgrade() -> None:
    op.add_column("messages", sa.Column("utc_offset", sa.SmallInteger(), nullable=True))
