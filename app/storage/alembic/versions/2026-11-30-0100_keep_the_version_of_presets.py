"""The version of its preset with which a conversation was made: a later change of the preset leaves it as it is."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611300100"
down_revision = "202611281400"


def upgrade() -> None:
    op.add_column(
        "conversations", sa.Column("preset_version", sa.Integer(), server_default=sa.text("1"), nullable=False)
    )
