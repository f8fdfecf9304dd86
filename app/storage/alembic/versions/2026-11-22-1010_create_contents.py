"""The data of media, each once for a tenant, with the number of its messages."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op
from app.storage.constraints import of_tenant

revision = "202611221010"
down_revision = "202611221002"

# In the database: whatever takes a message away (an erasure, a cascade, a process of the version before) counts down.
# The lock comes first, in one order for everybody.
RELEASE = (
    "CREATE FUNCTION release_contents() RETURNS trigger LANGUAGE plpgsql AS $$"
    " DECLARE gone text[];"
    " BEGIN"
    " IF TG_OP = 'DELETE' THEN gone := OLD.contents;"
    " ELSE"
    " IF NEW.status = 'erased' THEN NEW.contents := ARRAY[]::text[]; END IF;"
    " gone := ARRAY(SELECT unnest(OLD.contents) EXCEPT SELECT unnest(NEW.contents));"
    " END IF;"
    " PERFORM 1 FROM contents WHERE tenant_id = OLD.tenant_id AND sha256 = ANY(gone) ORDER BY sha256 FOR UPDATE;"
    " DELETE FROM contents WHERE tenant_id = OLD.tenant_id AND sha256 = ANY(gone) AND uses <= 1;"
    " UPDATE contents SET uses = uses - 1 WHERE tenant_id = OLD.tenant_id AND sha256 = ANY(gone);"
    " RETURN NEW;"
    " END $$"
)


def upgrade() -> None:
    op.create_table(
        "contents",
        sa.Column("tenant_id", sa.Uuid(), primary_key=True),
        sa.Column("sha256", sa.Text(), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("uses > 0", name="uses"),
        of_tenant(),
    )
    # Images and sounds are compressed already.
    op.execute("ALTER TABLE contents ALTER COLUMN data SET STORAGE EXTERNAL")
    op.execute(RELEASE)
