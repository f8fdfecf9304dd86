"""Moments and leases by the clock of the database, since the clocks of the processes may disagree."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, DateTime, func, or_

from app.core.model.conversation import MAX_WAIT

_NOW: Final[ColumnElement[object]] = func.clock_timestamp(type_=DateTime(timezone=True))


def now() -> ColumnElement[object]:
    """The database's clock during this statement; ``now()`` would be the start of the transaction."""
    return _NOW


def lease_end(seconds: float) -> ColumnElement[object]:
    """The end of a lease of that many seconds that is taken or prolonged now."""
    return now() + timedelta(seconds=seconds)


def times_from_now(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The values to be stored, with each time span as the moment that it leads to from now on."""
    return {name: now() + item if isinstance(item, timedelta) else item for name, item in changes.items()}


def is_over(until: Any) -> ColumnElement[bool]:
    """Whether a time until which something was put off is over.

    A missing time, or one set by a wrong clock, counts as over.
    """
    return or_(until.is_(None), until <= now(), until > now() + MAX_WAIT)


def transaction_start() -> ColumnElement[object]:
    """The start of the transaction: an index cannot be searched for a time that changes during the statement."""
    return func.transaction_timestamp(type_=DateTime(timezone=True))
