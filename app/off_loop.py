"""Runs large computations in threads, off the event loop; small ones are computed at once.

The loop's thread serves every request of the process, so nothing on it may compute for longer than 20 ms. Threads share
the interpreter: work in a thread slows the loop a little and cannot be ended, so its size has to be bounded. Texts that
take seconds go to processes (``app.infrastructure.processes``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextvars import ContextVar
from time import thread_time
from typing import Final, TypeVar, TypeVarTuple
from uuid import UUID

Result = TypeVar("Result")
Item = TypeVar("Item")
Given = TypeVarTuple("Given")

MAX_BYTES_ON_LOOP: Final = 2_000
"""The most bytes of text that are processed on the loop: the slowest pattern takes 9 µs per byte (``python -m
bench.loop``).
"""
BYTES_PER_ITEM: Final = 200
"""How many bytes an object counts for in addition to its text."""
BYTES_PER_POLICY: Final = 500
"""How many bytes resolving a conversation's policy counts for: about a millisecond."""
SLICE: Final = 50
"""How many rows or objects are made without a pause; each takes 20 to 100 µs."""
SLICE_SECONDS: Final = 0.005
"""The most CPU seconds of a slice, since single items may be large, such as messages with hundreds of parts."""
THREADS: Final = min(32, (os.cpu_count() or 1) + 4)
"""The threads of the loop's default executor."""
THREADS_PER_TENANT: Final = max(THREADS // 2, 1)
"""The most of these threads that one tenant may use, so that some are left for others."""


class WorkShares:
    """Limits how much each tenant may have computed at once; waiting callers are served in order.

    One tenant has ``most`` places.
    """

    def __init__(self, most: int = THREADS_PER_TENANT) -> None:
        self._most = most
        self._shares: dict[UUID, tuple[asyncio.Semaphore, list[None]]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Hold one of the tenant's places within the block."""
        free, holders = self._shares.setdefault(tenant_id, (asyncio.Semaphore(self._most), []))
        holders.append(None)
        try:
            async with free:
                yield
        finally:
            holders.pop()
            if not holders:
                self._shares.pop(tenant_id, None)


_acting: Final[ContextVar[tuple[WorkShares, UUID] | None]] = ContextVar("acting", default=None)


def act_for(shares: WorkShares, tenant_id: UUID) -> None:
    """From now on, count the work that this task sends off the loop for that tenant."""
    _acting.set((shares, tenant_id))


def act_for_no_tenant() -> None:
    """From now on, count the work that this task sends off the loop for no tenant."""
    _acting.set(None)


async def off_loop(work: Callable[[*Given], Result], *given: *Given, size: float = math.inf) -> Result:
    """Run a function in a thread, or at once if the work is small.

    Args:
        work: The function. Its time has to be bounded, since a thread cannot be ended.
        given: Its arguments.
        size: Bytes of the texts that it reads, plus ``BYTES_PER_ITEM`` for each object; if left out, the work counts as
            large.
    """
    if size <= MAX_BYTES_ON_LOOP:
        return work(*given)
    acting = _acting.get()
    if acting is None:
        return await asyncio.to_thread(work, *given)
    shares, tenant_id = acting
    async with shares.hold(tenant_id):
        return await asyncio.to_thread(work, *given)


async def in_slices(make: Callable[[Item], Result], items: Collection[Item]) -> list[Result]:
    """The result for each item. Between slices of items, other tasks of the event loop may run."""
    made: list[Result] = []
    began = thread_time()
    for number, item in enumerate(items):
        if number and (number % SLICE == 0 or thread_time() - began > SLICE_SECONDS):
            await asyncio.sleep(0)
            began = thread_time()
        made.append(make(item))
    return made
