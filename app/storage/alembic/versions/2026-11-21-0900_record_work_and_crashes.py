"""What a process works on, and how often one ended while it worked on a conversation.

``works`` is unlogged: it is written for each piece of work and means nothing once the database itself has crashed.
"""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import in_conversation

revision = "202611210900"
down_revision = "202611201600"


def upgrade() -> None:
    op.create_table(
        "works",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("process", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "crashes",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("set_aside_at", sa.DateTime(timezone=True), nullable=True),
        in_conversation(),
    )
