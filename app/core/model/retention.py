"""For how long each kind of record is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """For how long each kind of record is kept; ``None`` = for ever."""

    events: timedelta | None = None
    turns: timedelta | None = None
    measures: timedelta | None = None
    audit: timedelta | None = None
