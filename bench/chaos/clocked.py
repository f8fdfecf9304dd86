"""Runs a module with a clock that can be set: ``python -m bench.chaos.clocked MODULE ARGUMENTS…``.

The processes of a campaign run under it. The clock of the service (``SystemClock.now``) is off by the seconds in the
file that ``CHAOS_CLOCK`` names. Times of the database, waiting and monotonic times stay right.
"""

from __future__ import annotations

import os
import runpy
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from app.infrastructure.clock import SystemClock

VARIABLE: Final = "CHAOS_CLOCK"


def offset(file: Path) -> timedelta:
    """By how much the clock is off; 0 until it is set."""
    try:
        return timedelta(seconds=float(file.read_text() or 0))
    except OSError:
        return timedelta(0)


def main() -> None:
    """Run the module as if it had been started itself."""
    file = Path(os.environ[VARIABLE])

    def now(_: SystemClock) -> datetime:
        return datetime.now(UTC) + offset(file)

    setattr(SystemClock, "now", now)  # noqa: B010 - a method is put in another's place, on purpose
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
