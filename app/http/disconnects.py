"""Ends the work for a request when its client closes the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientGoneError(Exception):
    """The client left before its answer was ready."""


async def until_client_gone(receive: Receive) -> None:
    """Return when the client has left; the rest of its body is read and dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_client_present(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """The result of the work, as long as the client waits for it.

    Raises:
        ClientGoneError: The client has left; the work was cancelled.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(until_client_gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGoneError
    finally:
        await cancel(working, leaving)


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; their errors are not raised."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
