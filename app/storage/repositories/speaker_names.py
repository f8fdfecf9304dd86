"""The SQL that reads the name of a message's speaker from its metadata."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Text, case, func, literal_column
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from app.core.text.speakers import MAX_NAME_LENGTH
from app.storage.tables import MessageRow

_READ: Final[ColumnElement[Any]] = literal_column(str(4 * MAX_NAME_LENGTH))
"""The number of characters that are read: more than is ever served of a name."""
_KEY: Final[ColumnElement[Any]] = literal_column("'name'")
_IS_TEXT: Final = func.jsonb_typeof(col(MessageRow.meta).op("->", return_type=JSONB())(_KEY)) == literal_column(
    "'string'"
)
_NAME: Final = func.left(col(MessageRow.meta).op("->>", return_type=Text())(_KEY), _READ)
SPEAKER_NAME: Final = case((_IS_TEXT, _NAME), else_=literal_column("''")).label("said_by")
"""The name as it was given; empty if there is none or it is not a text."""
