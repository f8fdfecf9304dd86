"""The first message of a conversation in which anchors are still to be looked for; none where all were looked at."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611251900"
down_revision = "202611222040"


def upgrade() -> None:
    op.add_column("conversations", sa.Column("anchors_due_from", sa.BigInteger(), nullable=True))
