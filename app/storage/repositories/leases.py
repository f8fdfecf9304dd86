"""Leases in database time: the clocks of the processes may disagree."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, DateTime, func, or_

from app.core.model.conversation import LONGEST_WAIT

_NOW: Final[ColumnElement[object]] = func.clock_timestamp(type_=DateTime(timezone=True))


def now() -> ColumnElement[object]:
    """The database's clock at this very statement; ``now()`` would be the start of the transaction."""
    return _NOW


def lease_end(seconds: float) -> ColumnElement[object]:
    """The end of a lease of that many seconds which is taken or prolonged now."""
    return now() + timedelta(seconds=seconds)


def is_over(until: Any) -> ColumnElement[bool]:
    """Whether what was put off until then is due; also where no time stands, or one that a wrong clock wrote."""
    return or_(until.is_(None), until <= now(), until > now() + LONGEST_WAIT)


def began() -> ColumnElement[object]:
    """When the transaction began: what moves within a statement no index can be searched for."""
    return func.transaction_timestamp(type_=DateTime(timezone=True))
