"""What messages are found by, in a view of its own.

Under row-level security an operator of arrays never reaches its index in the table, since Postgres cannot know that it
keeps what it sees to itself. docs/decisions/0029 says what the view gives up.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import column, table
from sqlalchemy.orm import aliased

from app.storage.tables import MessageRow

_COLUMNS: Final = ("tenant_id", "conversation_id", "seq", "term_keys", "call_ids", "result_ids")
# Made once: each alias is adapted when first used.
HOLDER: Final[Any] = aliased(MessageRow, table("message_keys", *map(column, _COLUMNS)), adapt_on_names=True)
"""A message, by its keys."""
