"""Runs a module in which an hour of pauses takes two minutes: ``python -m bench.outage_scaled MODULE ARGUMENTS…``.

Only the pauses after failures of compactions are shortened here; everything else that has to be shorter is a setting.
"""

from __future__ import annotations

import runpy
import sys
from datetime import timedelta
from typing import Final

from app.usecases.compaction import claiming

FACTOR: Final = 30
"""How many times shorter pauses are."""


def main() -> None:
    """Run the module as if it had been started itself."""
    for name, value in list(vars(claiming).items()):
        if isinstance(value, timedelta):
            setattr(claiming, name, value / FACTOR)
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
