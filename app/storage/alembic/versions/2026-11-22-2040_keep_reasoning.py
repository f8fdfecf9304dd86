"""What models showed of their thoughts stands beside their messages, and goes when a message's content is rewritten."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611222040"
down_revision = "202611222030"


def upgrade() -> None:
    op.add_column("messages", sa.Column("reasoning", sa.String(), server_default=sa.text("''"), nullable=False))
    # Only an erasure rewrites content. The version before knows nothing of reasoning, and may erase too.
    op.execute(
        "CREATE FUNCTION forget_reasoning() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.reasoning := ''; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER forget_reasoning BEFORE UPDATE OF content ON messages"
        " FOR EACH ROW WHEN (OLD.reasoning <> '') EXECUTE FUNCTION forget_reasoning()"
    )
