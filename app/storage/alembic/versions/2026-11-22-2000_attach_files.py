"""Files of conversations, and the copies of them that providers keep."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import in_conversation, of_tenant
from app.storage.migrations import create_partial_index
from app.storage.row_security import protection_sql

revision = "202611222000"
down_revision = "202611221200"

TABLES = ("files", "provider_files")
# In the database, as for the data of media: no way of deleting a conversation can forget it. The content's lock comes
# first, so that of two that go at once the second sees that the first has gone.
RELEASE = (
    "CREATE FUNCTION release_file() RETURNS trigger LANGUAGE plpgsql AS $$"
    " BEGIN"
    " PERFORM 1 FROM contents WHERE tenant_id = OLD.tenant_id AND sha256 = OLD.sha256 FOR UPDATE;"
    " DELETE FROM contents WHERE tenant_id = OLD.tenant_id AND sha256 = OLD.sha256 AND uses <= 1;"
    " UPDATE contents SET uses = uses - 1 WHERE tenant_id = OLD.tenant_id AND sha256 = OLD.sha256;"
    " IF NOT EXISTS (SELECT 1 FROM files WHERE tenant_id = OLD.tenant_id AND sha256 = OLD.sha256) THEN"
    " UPDATE provider_files SET delete_after = now()"
    " WHERE tenant_id = OLD.tenant_id AND sha256 = OLD.sha256 AND delete_after IS NULL;"
    " END IF;"
    " RETURN NULL;"
    " END $$"
)


def upgrade() -> None:
    op.create_table(
        "files",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("bytes > 0 AND tokens > 0", name="sizes"),
        in_conversation(),
    )
    op.create_index("ix_files_of_conversation", "files", ["tenant_id", "conversation_id", "id"])
    op.create_index("ix_files_of_content", "files", ["tenant_id", "sha256"])
    op.create_table(
        "provider_files",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("account", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delete_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        of_tenant(),
    )
    create_partial_index(
        "uq_provider_files_in_use",
        "provider_files",
        ["tenant_id", "account", "sha256"],
        "delete_after IS NULL",
        unique=True,
    )
    create_partial_index("ix_provider_files_wanted", "provider_files", ["delete_after"], "delete_after IS NOT NULL")
    op.create_index("ix_provider_files_expired", "provider_files", ["expires_at"])
    op.execute(RELEASE)
    op.execute("CREATE TRIGGER release_file AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION release_file()")
    for name in ("file_tokens", "file_bytes"):
        op.add_column("conversations", sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    for table in TABLES:  # new ones: nobody has a lock on them
        op.execute(protection_sql(table))
