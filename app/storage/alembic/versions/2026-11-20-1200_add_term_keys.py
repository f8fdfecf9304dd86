"""The word index over messages: for search, and for recall from long conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import context, op
from app.core.model.conversation import Message
from app.storage.repositories.term_keys import keys_of

revision = "202611201200"
down_revision = "202611201100"

KEYS = sa.ARRAY(sa.BigInteger())
BATCH = 1_000
MESSAGES = sa.table(
    "messages",
    sa.column("tenant_id", sa.Uuid()),
    sa.column("id", sa.Uuid()),
    sa.column("conversation_id", sa.Uuid()),
    sa.column("seq", sa.BigInteger()),
    sa.column("role", sa.String()),
    sa.column("content", sa.String()),
    sa.column("parts", postgresql.JSONB()),
    sa.column("status", sa.String()),
    sa.column("is_command", sa.Boolean()),
    sa.column("created_at", sa.DateTime(timezone=True)),
    sa.column("term_keys", KEYS),
)
NEEDED = tuple(column for column in MESSAGES.c if column.name not in {"tenant_id", "term_keys"})


def upgrade() -> None:
    op.add_column("messages", sa.Column("term_keys", KEYS, nullable=False, server_default=sa.text("'{}'")))
    op.alter_column("messages", "term_keys", server_default=None)
    if not context.is_offline_mode():  # a script of statements cannot read: run the migration instead
        _make_keys()
    op.create_index(
        "ix_messages_terms",
        "messages",
        ["term_keys"],
        postgresql_using="gin",
        postgresql_with={"gin_pending_list_limit": "512"},
    )


def downgrade() -> None:
    op.drop_index("ix_messages_terms", "messages")
    op.drop_column("messages", "term_keys")


def _make_keys() -> None:
    """The keys of what is there, in batches: all the texts at once may not fit into memory."""
    write = (
        sa.update(MESSAGES)
        .where(MESSAGES.c.tenant_id == sa.bindparam("of_tenant"), MESSAGES.c.id == sa.bindparam("of_message"))
        .values(term_keys=sa.bindparam("keys", type_=KEYS))
    )
    for rows in _batches():
        made = keys_of([_message(row) for row in rows])
        changes = [
            {"of_tenant": row["tenant_id"], "of_message": row["id"], "keys": keys}
            for row, keys in zip(rows, made, strict=True)
            if keys
        ]
        if changes:
            op.get_bind().execute(write, changes)


def _batches() -> Iterator[list[Mapping[str, Any]]]:
    place = sa.tuple_(MESSAGES.c.tenant_id, MESSAGES.c.id)
    statement = sa.select(MESSAGES.c.tenant_id, *NEEDED).order_by(MESSAGES.c.tenant_id, MESSAGES.c.id).limit(BATCH)
    rows = list(op.get_bind().execute(statement).mappings())
    while rows:
        yield rows
        last = rows[-1]
        rows = list(op.get_bind().execute(statement.where(place > (last["tenant_id"], last["id"]))).mappings())


def _message(row: Mapping[str, Any]) -> Message:
    given = {column.name: row[column.name] for column in NEEDED}
    return Message(**given | {"parts": tuple(row["parts"])})
