"""What a response said of its request, and the secret that seals input."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op

revision = "202611220600"
down_revision = "202611220511"


def upgrade() -> None:
    op.add_column("turns", sa.Column("request", JSONB(), nullable=True))
    op.add_column("tenants", sa.Column("sealing_secret", sa.LargeBinary(), nullable=True))
