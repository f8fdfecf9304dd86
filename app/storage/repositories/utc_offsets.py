"""The offset from UTC with which the time of a message was given; the database stores moments without it.

Half past midnight in Moscow is still the day before in UTC, so "yesterday" is another day too.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, Final

from sqlalchemy import func, literal_column
from sqlmodel import col

from app.storage.tables import MessageRow

_MINUTE: Final = timedelta(minutes=1)
OWN_TIME: Final[Any] = func.timezone(
    func.make_interval(
        literal_column("0"),
        literal_column("0"),
        literal_column("0"),
        literal_column("0"),
        literal_column("0"),
        func.coalesce(col(MessageRow.utc_offset), literal_column("0")),
    ),
    col(MessageRow.created_at),
)
"""When a message was said, as the speaker's clock showed it, without an offset."""


def with_offset(moment: datetime, minutes: int | None) -> datetime:
    """The same moment on a clock with this offset."""
    return moment if minutes is None else moment.astimezone(_zone(minutes))


@cache
def _zone(minutes: int) -> timezone:
    return timezone(minutes * _MINUTE)
