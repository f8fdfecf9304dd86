"""What is being done to a conversation: compactions and turns."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op
from app.storage.constraints import in_conversation
from app.storage.migrations import create_partial_index

revision = "202611200920"
down_revision = "202611200910"

JSON = postgresql.JSONB()
MOMENT = sa.DateTime(timezone=True)
BIG = sa.BigInteger()
TEXTS = sa.ARRAY(sa.Text())


def upgrade() -> None:
    _compactions()
    _turns()


def downgrade() -> None:
    op.drop_table("turns")
    op.drop_table("compactions")


def _compactions() -> None:
    op.create_table(
        "compactions",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("ran_in", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String()),
        sa.Column("strategy", sa.String(), nullable=False),
        sa.Column("model", sa.String()),
        sa.Column("request", JSON, nullable=False),
        sa.Column("attempts", JSON, nullable=False),
        sa.Column("from_seq", BIG),
        sa.Column("to_seq", BIG),
        sa.Column("messages_covered", sa.Integer(), nullable=False),
        sa.Column("tokens_before", BIG),
        sa.Column("tokens_after", BIG),
        sa.Column("entries", JSON, nullable=False),
        sa.Column("state_version_before", BIG, nullable=False),
        sa.Column("state_version_after", BIG),
        sa.Column("usage", JSON, nullable=False),
        sa.Column("duration_ms", BIG),
        sa.Column("retry_of", sa.Uuid()),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("lease_until", MOMENT),
        sa.Column("owner", sa.String()),
        sa.Column("queued_at", MOMENT),
        sa.Column("sent_at", MOMENT),
        sa.Column("requested_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint(
            "(status = 'running') = (lease_token IS NOT NULL AND lease_until IS NOT NULL)",
            name=op.f("ck_compactions_lease"),
        ),
        sa.CheckConstraint("ran_in IN ('request', 'sweeper', 'turn', 'worker')", name=op.f("ck_compactions_ran_in")),
        sa.CheckConstraint(
            "status IN ('applied', 'failed', 'queued', 'rejected', 'running', 'skipped', 'superseded')",
            name=op.f("ck_compactions_status"),
        ),
        sa.CheckConstraint("claims >= 0", name=op.f("ck_compactions_claims")),
        in_conversation(),
    )
    op.create_index("ix_compactions_id", "compactions", ["id"])
    create_partial_index("ix_compactions_lease", "compactions", ["lease_until"], "status = 'running'")
    op.create_index("ix_compactions_of_conversation", "compactions", ["tenant_id", "conversation_id", "id"])
    op.create_index("ix_compactions_of_status", "compactions", ["tenant_id", "status", "id"])
    create_partial_index("ix_compactions_queued", "compactions", ["queued_at"], "status = 'queued'")
    create_partial_index(
        "uq_compactions_in_flight",
        "compactions",
        ["tenant_id", "conversation_id"],
        "status IN ('queued', 'running')",
        unique=True,
    )


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("reply_id", sa.Uuid()),
        sa.Column("compaction_id", sa.Uuid()),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.Column("interrupt_requested", sa.Boolean(), nullable=False),
        sa.Column("warnings", TEXTS, nullable=False),
        sa.Column("error_code", sa.String()),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint("status IN ('completed', 'failed', 'interrupted', 'running')", name=op.f("ck_turns_status")),
        in_conversation(),
    )
    create_partial_index("ix_turns_lease", "turns", ["lease_until"], "status = 'running'")
    op.create_index("ix_turns_of_conversation", "turns", ["tenant_id", "conversation_id", "id"])
    create_partial_index(
        "uq_turns_running", "turns", ["tenant_id", "conversation_id"], "status = 'running'", unique=True
    )
