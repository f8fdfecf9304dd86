"""Makes the garbage collector run less often: a full collection stops every thread, the event loop's too."""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 5_000
"""New objects between two collections of the youngest generation; each collection takes under a millisecond."""
MIDDLE: Final = 20
OLD: Final = 100
"""Collections of a younger generation between two of the next older one."""


def settle_garbage_collector() -> None:
    """Exempt all objects that exist now (modules, tables) from collection, and collect the others less often.

    Call it once, when a process is ready. It runs a full collection first, which takes some tenths of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
