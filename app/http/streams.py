"""The limits of streams: how many a key may have open, and for how long.

The stream of a reply, which a ``POST`` requests, counts as a running turn and not as an open stream. All streams end
when their key does.
"""

from __future__ import annotations

import asyncio

from starlette.types import Scope

from app.bootstrap import Container


async def count_stream(scope: Scope) -> None:
    """Count a stream until its request ends, unless it is the stream of a reply. Raises ``RateLimitedError``."""
    container = _container(scope)
    if container and scope["method"] == "GET":
        await container.limits.hold("open_streams")


async def stream_over(scope: Scope) -> None:
    """Return when the stream has to end: it is too old, or its key is revoked or expired."""
    container = _container(scope)
    if container is None:
        await asyncio.Event().wait()
    else:
        await container.limits.stream_over(scope["state"]["principal"])


def _container(scope: Scope) -> Container | None:
    # Without a principal there is no key to check.
    if "principal" not in scope.get("state", {}):
        return None
    container: Container = scope["app"].state.container
    return container
