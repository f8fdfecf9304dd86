"""The SQL view by which messages are found by their keys: word stems and ids of tool calls.

Under row-level security an operator on arrays cannot use its index in the table, since Postgres does not know that the
operator leaks nothing. docs/decisions/0029 says what the view gives up.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import column, select, table
from sqlalchemy.orm import aliased

from app.storage.tables import MessageRow

_COLUMNS: Final = ("tenant_id", "conversation_id", "seq", "term_keys", "call_ids", "result_ids")
# Made only once, since each alias is adapted when it is first used.
_VIEW: Final = table("message_keys", *map(column, _COLUMNS))
KEY_HOLDER: Final[Any] = aliased(MessageRow, _VIEW, adapt_on_names=True)
"""A message that is found by its keys."""


def holder_of(keys: Any, of: Any) -> Any:
    """A message that has all of these keys, which are an array of columns ``of`` a surrounding query.

    It is found by the keys alone, since a key belongs to one conversation. The kept plan expects few messages per
    conversation; with another index it would read all messages of a long one, once for each row of ``of``. OFFSET 0
    keeps other conditions from using an index.
    """
    found = select(_VIEW).where(_VIEW.c.term_keys.op("@>")(keys)).correlate(of).offset(0)
    return aliased(MessageRow, found.subquery(), adapt_on_names=True)
