"""A condition of statements that several repositories share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists
from sqlmodel import col

from app.storage.tables import ConversationRow


def not_deleted(table: Any) -> Any:
    """Whether the conversation of a row is not deleted: its rows are removed only later.

    For queries that do not read the conversation itself. The tenant is compared too, since in the system scope no
    statement gets that condition by itself.
    """
    row = ConversationRow
    return exists().where(
        col(row.tenant_id) == table.tenant_id, col(row.id) == table.conversation_id, col(row.deleted_at).is_(None)
    )
