"""Work that is abandoned when somebody asks to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

Value = TypeVar("Value")


async def unless_stopped(stop: asyncio.Event, work: Awaitable[Value]) -> Value | None:
    """The result of the work. If ``stop`` is set before it ends, the work is cancelled and the result is ``None``."""
    working, stopped = asyncio.ensure_future(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        stopped.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working
