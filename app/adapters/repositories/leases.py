"""Leases, reckoned in database time: the clocks of the processes may disagree."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, DateTime, func

# Three heartbeats of 3 s: one may be late and one may fail; a dead holder blocks a turn no longer than this.
LEASE = timedelta(seconds=9)


def now() -> ColumnElement[object]:
    """The database's clock at this very statement; ``now()`` would be the start of the transaction."""
    return func.clock_timestamp(type_=DateTime(timezone=True))


def lease_end() -> ColumnElement[object]:
    """When a lease taken or prolonged now is over."""
    return now() + LEASE
