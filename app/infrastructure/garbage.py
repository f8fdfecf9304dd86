"""When the interpreter looks for garbage in circles: a look at everything stops every thread, the loop's too."""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 5_000
"""New objects after which the youngest are looked at: under a millisecond."""
MIDDLE: Final = 20
OLD: Final = 100
"""Looks at the younger ones after which the older ones are looked at too."""


def settle() -> None:
    """Leave out for ever what is there by now, modules and tables, and look at the rest less often.

    Call it once, when a process is ready: before, each full look takes some tenths of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
