"""Indexes by which long histories are looked into: tool calls, quotes, old events, and what is left to do."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from alembic import op

revision = "202611221001"
down_revision = "202611221000"

INDEXES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "ix_messages_tool_calls": (
        "messages",
        [sa.text("(array_append(call_ids || result_ids, conversation_id::text))")],
        {
            "postgresql_using": "gin",
            "postgresql_with": {"gin_pending_list_limit": "512"},
            "postgresql_where": sa.text("call_ids <> '{}'::text[] OR result_ids <> '{}'::text[]"),
        },
    ),
    "ix_messages_quoting": (
        "messages",
        ["tenant_id", "conversation_id", "seq"],
        {"postgresql_where": sa.text("strpos(parts::text, '\"quotes\"') > 0")},
    ),
    "ix_messages_commands": (
        "messages",
        ["tenant_id", "conversation_id", "seq"],
        {"postgresql_where": sa.text("is_command")},
    ),
    "ix_events_occurred_at": (
        "events",
        ["occurred_at"],
        {"postgresql_using": "brin", "postgresql_with": {"autosummarize": "on"}},
    ),
    "ix_conversations_deleted": (
        "conversations",
        ["deleted_at"],
        {"postgresql_where": sa.text("deleted_at IS NOT NULL")},
    ),
    "ix_conversations_stale_sums": (
        "conversations",
        ["id"],
        {"postgresql_where": sa.text("stale_sums_to IS NOT NULL")},
    ),
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for name, (table, columns, options) in INDEXES.items():
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)  # what a try before left undone
            op.create_index(name, table, columns, postgresql_concurrently=True, **options)
