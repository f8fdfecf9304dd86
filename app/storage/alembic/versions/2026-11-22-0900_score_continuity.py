"""What a conversation can still answer after a compaction, on the compaction: numbers by kind of question."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611220900"
down_revision = "202611220800"


def upgrade() -> None:
    op.add_column("compactions", sa.Column("continuity", JSONB(), nullable=True))
