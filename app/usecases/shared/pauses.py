"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeVar

Pause = TypeVar("Pause", float, timedelta)

_MAX_DOUBLINGS: Final = 20
"""After this many doublings of the first pause, every longest pause is reached."""


def pause_after(failures: int, first: Pause, longest: Pause) -> Pause:
    """The first pause after one failure, twice as long after each further one in a row, up to the longest."""
    return min(first * (1 << min(failures - 1, _MAX_DOUBLINGS)), longest)
