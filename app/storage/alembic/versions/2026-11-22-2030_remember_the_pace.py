"""How a conversation went of late, for thresholds that follow it; the version before neither reads nor writes it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611222030"
down_revision = "202611222020"


def upgrade() -> None:
    op.add_column("conversations", sa.Column("pace", JSONB(), nullable=True))
