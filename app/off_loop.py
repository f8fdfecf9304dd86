"""Runs large computations in threads, off the event loop; what is small is computed at once.

The loop's thread serves every request of the process, so that nothing on it may compute for longer than 20 ms. Threads
share the interpreter: what runs in one slows the loop a little and cannot be ended, so it has to be bounded by size.
Texts that take seconds go to processes (``app.infrastructure.processes``).
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

ON_LOOP: Final = 2_000
"""Bytes of text: the slowest of our patterns takes 9 µs for one (``python -m bench.loop``)."""
AN_ITEM: Final = 200
"""Bytes that an object counts for beside its text."""
A_POLICY: Final = 500
"""Bytes that resolving a conversation's policy counts for: about a millisecond."""
SLICE: Final = 50
"""Rows or objects that are made at a stretch; each takes 20 to 100 µs."""
SLICE_SECONDS: Final = 0.005
"""The most CPU seconds of a slice: single items may be large, such as messages of hundreds of parts."""
THREADS: Final = min(32, (os.cpu_count() or 1) + 4)
"""The threads of the loop's default executor."""
A_TENANT: Final = max(THREADS // 2, 1)
"""The most of these that one tenant may use, so that some are left for others."""


class WorkShares:
    """How much each tenant may have computed at once; who waits is served in order.

    One tenant has ``most`` places.
    """

    def __init__(self, most: int = A_TENANT) -> None:
        self._most = most
        self._shares: dict[UUID, tuple[asyncio.Semaphore, list[None]]] = {}

    @contextlib.asynccontextmanager
    async def held(self, tenant_id: UUID) -> AsyncIterator[None]:
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
    """Count what this task sends off the loop for that tenant from now on."""
    _acting.set((shares, tenant_id))


def act_for_nobody() -> None:
    """Count what this task sends off the loop for no tenant from now on."""
    _acting.set(None)


async def off_loop(work: Callable[[*Given], Result], *given: *Given, size: float = math.inf) -> Result:
    """Do it in a thread, or, where it is small, here.

    Args:
        work: Bounded: a thread cannot be ended.
        given: Its arguments.
        size: Bytes of the texts that it looks at, with ``AN_ITEM`` for each object; left out, it is large.
    """
    if size <= ON_LOOP:
        return work(*given)
    acting = _acting.get()
    if acting is None:
        return await asyncio.to_thread(work, *given)
    shares, tenant_id = acting
    async with shares.held(tenant_id):
        return await asyncio.to_thread(work, *given)


async def in_slices(make: Callable[[Item], Result], items: Collection[Item]) -> list[Result]:
    """Each item's result; between slices of them the loop does what else there is to do."""
    made: list[Result] = []
    began = thread_time()
    for number, item in enumerate(items):
        if number and (number % SLICE == 0 or thread_time() - began > SLICE_SECONDS):
            await asyncio.sleep(0)
            began = thread_time()
        made.append(make(item))
    return made
