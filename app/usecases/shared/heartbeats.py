"""Heartbeats during work: they keep the work for this process, and end it if another process has taken it over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

Heartbeat = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
"""Runs during the work, and calls the given function if the work is lost."""


@asynccontextmanager
async def with_heartbeat(heartbeat: Heartbeat, lost: Callable[[], Exception]) -> AsyncIterator[None]:
    """Run a heartbeat while the body runs; if the work is lost, raise ``lost()`` into the body."""
    body, is_lost = asyncio.current_task(), False

    def lose() -> None:
        nonlocal is_lost
        is_lost = True
        if body is not None:
            body.cancel()

    beating = asyncio.create_task(heartbeat(lose))
    try:
        yield
    except asyncio.CancelledError:
        if not is_lost:
            raise
        if body is not None:
            body.uncancel()
        raise lost() from None
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
