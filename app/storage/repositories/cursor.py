"""Cursors for paging: the key of the last row of a page as an opaque word."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, Field, TypeAdapter
from sqlalchemy import Select, tuple_

from app.core.model.errors import InvalidInputError
from app.core.model.records import Page

Key = TypeVar("Key", bound=tuple[Any, ...])
Row = TypeVar("Row")

# The range of bigint in Postgres; a cursor with a number beyond it was not made here.
Number = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)]
BY_NUMBER = TypeAdapter(tuple[Number])
BY_PLACE = TypeAdapter(tuple[Number, Number, UUID])
BY_ID = TypeAdapter(tuple[UUID])
BY_TIME_AND_ID = TypeAdapter(tuple[AwareDatetime, UUID])
# The longest real cursor has under 150 characters. A longer text was not made here, and is cut so that it cannot be
# read.
MAX_CURSOR_LENGTH = 300


def encode(key: tuple[Any, ...]) -> str:
    """Url-safe base64 of a small JSON array."""
    return urlsafe_b64encode(TypeAdapter(tuple[Any, ...]).dump_json(key)).rstrip(b"=").decode()


def decode(cursor: str, kind: TypeAdapter[Key]) -> Key:
    """The key that :func:`encode` was given. Raises ``InvalidInputError`` naming ``after``."""
    try:
        raw = urlsafe_b64decode(cursor[:MAX_CURSOR_LENGTH].encode("ascii") + b"=" * (-len(cursor) % 4))
        key = kind.validate_json(raw)
        _check_times_in_utc(key)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError.of("after", "not a cursor of this list; use next_cursor of a page before") from error
    return key


def _check_times_in_utc(key: tuple[Any, ...]) -> None:
    for value in key:
        if isinstance(value, datetime):
            value.astimezone(UTC)


def select_page(statement: Select[Any], page: Page, columns: Sequence[Any], kind: TypeAdapter[Any]) -> Select[Any]:
    """The statement in the page's order, after its cursor, with one row more than requested; see :func:`cut_page`."""
    ascending = page.order == "asc"
    if page.after is not None:
        key, after = tuple_(*columns), decode(page.after, kind)
        statement = statement.where(key > after if ascending else key < after)
    order = (column.asc() if ascending else column.desc() for column in columns)
    return statement.order_by(*order).limit(page.limit + 1)


def cut_page(rows: Sequence[Row], limit: int, key: Callable[[Row], tuple[Any, ...]]) -> tuple[list[Row], str | None]:
    """A page from up to ``limit + 1`` rows; the additional row shows that there is more."""
    kept = list(rows[:limit])
    return kept, encode(key(kept[-1])) if len(rows) > limit and kept else None
