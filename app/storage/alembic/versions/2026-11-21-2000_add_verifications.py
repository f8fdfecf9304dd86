"""What a model made of a version's claims, and who wrote the version; the verifications that wait, run and ended."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from alembic import op
from app.storage.constraints import in_conversation
from app.storage.migrations import create_partial_index

revision = "202611212000"
down_revision = "202611211500"

OPEN = "status IN ('queued', 'running')"
STATUS = "status IN ('done', 'failed', 'queued', 'running', 'skipped', 'stale')"
RULES = (
    ("verified", "verified IN ('exact', 'model', 'pending')"),
    ("made_by", "made_by IN ('compaction', 'erasure', 'restore', 'verification')"),
)
INDEXES = (
    ("ix_verifications_of_conversation", ["tenant_id", "conversation_id", "id"]),
    ("ix_verifications_of_late", ["tenant_id", "asked_at"]),
    ("ix_verifications_ended", ["finished_at"]),
)


def upgrade() -> None:
    # With a default that stays in the catalogue, no row is written again.
    op.add_column("state_versions", sa.Column("verified", sa.String(), nullable=False, server_default="exact"))
    op.add_column("state_versions", sa.Column("verification", JSONB(), nullable=True))
    op.add_column("state_versions", sa.Column("made_by", sa.String(), nullable=False, server_default="compaction"))
    for name, rule in RULES:
        op.create_check_constraint(op.f(f"ck_state_versions_{name}"), "state_versions", rule)
        op.alter_column("state_versions", name, server_default=None)
    op.create_table(
        "verifications",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(STATUS, name=op.f("ck_verifications_status")),
        in_conversation(),
    )
    create_partial_index("uq_verifications_open", "verifications", ["tenant_id", "conversation_id"], OPEN, unique=True)
    create_partial_index("ix_verifications_waiting", "verifications", ["after"], OPEN)
    for name, columns in INDEXES:
        op.create_index(name, "verifications", columns)
