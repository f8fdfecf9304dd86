"""Looking after something while work on it goes on, and ending that work when it is another's by now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

Look = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
"""Runs beside the work; calls what it is given once the work is lost."""


@asynccontextmanager
async def beside(look: Look, lost: Callable[[], Exception]) -> AsyncIterator[None]:
    """Run a look while the body runs; once it says so, the error is raised into the body."""
    body, is_lost = asyncio.current_task(), False

    def lose() -> None:
        nonlocal is_lost
        is_lost = True
        if body is not None:
            body.cancel()

    looking = asyncio.create_task(look(lose))
    try:
        yield
    except asyncio.CancelledError:
        if not is_lost:
            raise
        if body is not None:
            body.uncancel()
        raise lost() from None
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
