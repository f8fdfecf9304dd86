"""Old versions of a state may be forgotten: their rows stay, for the segments that they made, and say nothing."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611221002"
down_revision = "202611221001"


def upgrade() -> None:
    op.add_column(
        "state_versions", sa.Column("is_forgotten", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
