"""What was done to a summary, with the state version that it led to."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611211500"
down_revision = "202611210900"


def upgrade() -> None:
    op.add_column(
        "state_versions", sa.Column("repairs", JSONB(), nullable=False, server_default=sa.text("'[]'::jsonb"))
    )
    op.alter_column("state_versions", "repairs", server_default=None)
