"""A conversation is forked from another at a message, or not at all: it holds for the rows that were there, too."""

from __future__ import annotations

from alembic import op

revision = "202611220611"
down_revision = "202611220610"


def upgrade() -> None:
    op.execute("ALTER TABLE conversations VALIDATE CONSTRAINT ck_conversations_forked")
