"""Row-level security: Postgres looks at the tenant too.

It does not hold the owner of the tables, as whom an older version acts.
"""

from __future__ import annotations

from alembic import op
from app.storage.row_security import VISIBLE_ROWS, protection_sql

revision = "202611221200"
down_revision = "202611221011"

TABLES = (
    "tenants",
    "api_keys",
    "conversations",
    "messages",
    "state_versions",
    "segments",
    "segment_levels",
    "detail_calls",
    "expansions",
    "anchors",
    "compactions",
    "verifications",
    "turns",
    "events",
    "idempotency_keys",
    "works",
    "crashes",
    "audit",
    "chat_spending",
    "erasures",
    "provider_copies",
    "contents",
)


def upgrade() -> None:
    # It looks at the tenant itself, and with the rights of its owner: that leaves the indexes of arrays usable.
    op.execute(f"""
        CREATE OR REPLACE VIEW message_keys AS
        SELECT tenant_id, conversation_id, seq, term_keys, call_ids, result_ids FROM messages WHERE {VISIBLE_ROWS}
    """)  # noqa: S608 - our own constant
    with op.get_context().autocommit_block():
        for table in TABLES:
            op.execute(protection_sql(table))
