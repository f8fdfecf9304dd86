"""Makes the garbage collector run less often: a full collection stops every thread, the event loop's too."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 5_000
"""New objects between two collections of the youngest generation; each collection takes under a millisecond."""
MIDDLE: Final = 20
OLD: Final = 100
"""Collections of a younger generation between two of the next older one."""

_IMPORTED: Final = 50_000
_SELDOM: Final = 1_000


@contextmanager
def importing() -> Iterator[None]:
    """Collect hardly ever during the block, which imports modules: nearly all that they make stays."""
    before = gc.get_threshold()
    gc.set_threshold(_IMPORTED, MIDDLE, _SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def settle_garbage_collector() -> None:
    """Exempt all objects that exist now (modules, tables) from collection, and collect the others less often.

    Call it once, when a process is ready. It runs a full collection first, which takes some tenths of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
