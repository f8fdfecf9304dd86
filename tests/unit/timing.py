"""Work that grows in proportion to its size: CPU time at a quarter and at the whole, side by side in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from app.core.text.memo import forget

STEP = 4
"""How many times as large as the part the whole is."""

MAX_RATIO = 8.0
"""The most times as long as the part that the whole may take: linear work takes four, quadratic sixteen."""

MIN_SECONDS = 0.005
"""The least seconds that the part is taken to last: shorter times cannot be compared."""

ATTEMPTS = 4
"""The number of measurements; the least counts, since every disturbance only adds to a time."""


def assert_linear(read: Callable[[str], object], text: str) -> None:
    """Reading all of a text takes a few times as long as reading its first quarter."""
    shorter = count()  # each time a little less of it, so that no answer comes from a cache

    def reading(size: int) -> Callable[[], object]:
        part = text[: size - next(shorter)]
        return lambda: read(part)

    assert_linear_in(reading, len(text))


def assert_linear_in(make: Callable[[int], Callable[[], object]], size: int, *, most: float = MAX_RATIO) -> None:
    """Work of this size takes a few times as long as work of a quarter.

    Args:
        make: Prepares the work of a size, which is not timed, and returns it.
        size: Of the whole.
        most: Times as long as a quarter the whole may take.
    """
    part = whole = float("inf")
    for _ in range(ATTEMPTS):
        part = min(part, _seconds(make(size // STEP)), _seconds(make(size // STEP)))
        whole = min(whole, _seconds(make(size)))
        if whole <= most * max(part, MIN_SECONDS):
            return
    pytest.fail(f"the whole took {whole:.4f} s, {whole / part:.1f} times as long as a quarter of it, {part:.4f} s")


def _seconds(work: Callable[[], object]) -> float:
    forget()  # cached results of smaller texts would make it look faster
    began = time.process_time()
    work()
    return time.process_time() - began


def often(texts: Sequence[str]) -> list[Any]:
    """Variants of which a third are tried every day, and all in the long runs."""
    return [pytest.param(text, marks=[pytest.mark.long] if place % 3 else []) for place, text in enumerate(texts)]
