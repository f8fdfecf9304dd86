"""What belongs to a conversation that is deleted is gone with it, before its rows are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists
from sqlmodel import col

from app.storage.tables import ConversationRow


def living(table: Any) -> Any:
    """Whether the conversation of a row is there: for what is looked up without looking at the conversation.

    By tenant too, since the system scope adds none.
    """
    row = ConversationRow
    return exists().where(
        col(row.tenant_id) == table.tenant_id, col(row.id) == table.conversation_id, col(row.deleted_at).is_(None)
    )
