"""Which contents a message refers to; the version before writes none, and its rows keep their data in ``parts``."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from alembic import op

revision = "202611221011"
down_revision = "202611221010"


def upgrade() -> None:
    contents = sa.Column("contents", ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False)
    op.add_column("messages", contents)
    op.execute(
        "CREATE TRIGGER release_contents_of_deleted AFTER DELETE ON messages"
        " FOR EACH ROW WHEN (OLD.contents <> '{}') EXECUTE FUNCTION release_contents()"
    )
    op.execute(
        "CREATE TRIGGER release_contents_of_changed BEFORE UPDATE OF status, contents ON messages"
        " FOR EACH ROW WHEN (OLD.contents <> '{}') EXECUTE FUNCTION release_contents()"
    )
