"""How large rows are in bytes, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, any_, case, cast, func, literal_column, select
from sqlmodel import col

from app.core.model.records import Page
from app.core.text.budget import each_fitting, first_fitting
from app.storage.repositories.cursor import cut_page
from app.storage.tables import ContentRow, MessageRow

PAGE_BYTES: Final = 8_000_000
"""The most bytes of one page of messages, conversations or states, unless its first one alone has more."""
READ_BYTES: Final = 16_000_000
"""The most bytes of messages that are read at once: for recall, a search or an erasure."""
_BASE64_GROWTH: Final = 4 / 3


def count_fitting(sizes: Sequence[int], limit: int) -> int:
    """How many of the first sizes fit together into the limit."""
    return len(first_fitting(sizes, limit, int))


def cut_to_fit(heads: Sequence[Any], page: Page, key: Callable[[Any], tuple[Any, ...]]) -> tuple[list[Any], str | None]:
    """Like ``cut_page``, but with at most ``PAGE_BYTES``, and at least one row. Each head has its ``bytes``."""
    return cut_page(heads, max(count_fitting([head.bytes for head in heads[: page.limit]], PAGE_BYTES), 1), key)


def fitting_seqs(sizes: Sequence[tuple[int, int]], limit: int) -> list[int]:
    """The first numbers of the pairs whose sizes fit together; a pair that does not fit is skipped."""
    return [seq for seq, _ in each_fitting(sizes, limit, lambda pair: pair[1])]


def text_bytes() -> Any:
    """The approximate bytes of a message's texts, found without reading or unpacking them.

    A message's weight in bytes includes its content, and its parts as JSON, but not a tool's content that repeats its
    result.
    """
    row = MessageRow
    content = func.octet_length(col(row.content))
    counted = case((col(row.role) == "tool", 0), else_=content)
    return content + func.greatest(col(row.byte_length) - counted, func.pg_column_size(col(row.parts)))


def shown_bytes() -> Any:
    """The approximate bytes of a message as it is shown, with the data of its media and its reasoning."""
    row = MessageRow
    data = (
        select(func.coalesce(func.sum(col(ContentRow.size)), 0) * _BASE64_GROWTH)
        .where(col(ContentRow.tenant_id) == col(row.tenant_id), col(ContentRow.sha256) == any_(col(row.contents)))
        .correlate(row)
        .scalar_subquery()
    )
    has_none = col(row.contents) == literal_column("'{}'::text[]")
    shown = text_bytes() + func.octet_length(col(row.reasoning))
    return cast(shown + case((has_none, 0), else_=data), BigInteger)
