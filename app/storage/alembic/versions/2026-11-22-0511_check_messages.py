"""The words for a message's status hold for the rows that were there, too."""

from __future__ import annotations

from alembic import op

revision = "202611220511"
down_revision = "202611220510"


def upgrade() -> None:
    op.execute("ALTER TABLE messages VALIDATE CONSTRAINT ck_messages_status")
