"""Vectors of messages, how far each conversation has them, and the calls that make them."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.row_security import protection_sql

revision = "202611222020"
down_revision = "202611222010"

MOMENT = sa.DateTime(timezone=True)
PURPOSES = "purpose IN ('detail', 'embedding')"
COLUMNS = (
    "embedded_model VARCHAR",
    "embedded_seq BIGINT DEFAULT 0 NOT NULL",
    "embed_after TIMESTAMP WITH TIME ZONE",
)
INDEXES = {
    "ix_conversations_unembedded": ("embed_after", "boundary_seq > embedded_seq"),
    "ix_conversations_embedded": ("embedded_model", "embedded_model IS NOT NULL"),
}
# In the database: whatever changes what a message says (an erasure, a process of the version before) takes its vector.
RELEASE = (
    "CREATE FUNCTION release_embeddings() RETURNS trigger LANGUAGE plpgsql AS $$"
    " BEGIN"
    " DELETE FROM embeddings WHERE tenant_id = OLD.tenant_id AND conversation_id = OLD.conversation_id"
    " AND seq = OLD.seq;"
    " RETURN NULL;"
    " END $$"
)
CHANGED = (
    "OLD.content IS DISTINCT FROM NEW.content OR OLD.status IS DISTINCT FROM NEW.status"
    " OR OLD.parts::text IS DISTINCT FROM NEW.parts::text"
)


def upgrade() -> None:
    # Each large table by itself, so that no lock on one waits for another; again is no harm.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE detail_calls ADD COLUMN IF NOT EXISTS purpose VARCHAR DEFAULT 'detail' NOT NULL")
        op.execute("ALTER TABLE detail_calls DROP CONSTRAINT IF EXISTS ck_detail_calls_purpose")
        # Without looking at the rows that are there: all of them have the default.
        op.execute(f"ALTER TABLE detail_calls ADD CONSTRAINT ck_detail_calls_purpose CHECK ({PURPOSES}) NOT VALID")
    with op.get_context().autocommit_block():
        for column in COLUMNS:
            op.execute(f"ALTER TABLE conversations ADD COLUMN IF NOT EXISTS {column}")
        for name, (column, condition) in INDEXES.items():
            op.drop_index(name, "conversations", if_exists=True, postgresql_concurrently=True)
            op.create_index(
                name, "conversations", [column], postgresql_concurrently=True, postgresql_where=sa.text(condition)
            )
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE detail_calls VALIDATE CONSTRAINT ck_detail_calls_purpose")
    op.create_table(
        "embeddings",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("octet_length(sha256) = 32", name="sha256"),
        sa.CheckConstraint("dimensions > 0 AND octet_length(vector) = 4 * dimensions", name="vector"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id", "seq"],
            ["messages.tenant_id", "messages.conversation_id", "messages.seq"],
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_embeddings_of_text", "embeddings", ["tenant_id", "model", "sha256"])
    op.execute("ALTER TABLE embeddings ALTER COLUMN vector SET STORAGE EXTERNAL")  # nothing in it can be compressed
    op.execute(protection_sql("embeddings"))
    op.execute(RELEASE)
    op.execute(
        "CREATE TRIGGER release_embeddings_of_changed AFTER UPDATE OF content, parts, status ON messages"
        f" FOR EACH ROW WHEN ({CHANGED}) EXECUTE FUNCTION release_embeddings()"
    )
