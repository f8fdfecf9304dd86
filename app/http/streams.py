"""How many streams are open, and how long: the limits of whoever opened them.

A stream of a reply, which a ``POST`` asks for, counts as its running turn, and is no part of the open streams. All of
them end when their key does.
"""

from __future__ import annotations

import asyncio

from starlette.types import Scope

from app.bootstrap import Container
from app.usecases.ports import Place


async def take_place(scope: Scope) -> Place | None:
    """Count a stream, unless it is a reply's. Raises ``RateLimitedError``."""
    limits = _container(scope)
    return await limits.limits.take("open_streams") if limits and scope.get("method") in {"GET", None} else None


def give_place_back(scope: Scope, place: Place | None) -> None:
    """The stream is closed."""
    container = _container(scope)
    if container:
        container.limits.give_back(place)


async def stream_over(scope: Scope) -> None:
    """Return when it has to end: it is old, or its key is revoked or expired."""
    container = _container(scope)
    if container is None:
        await asyncio.Event().wait()
    else:
        await container.limits.stream_over(scope["state"]["principal"])


def _container(scope: Scope) -> Container | None:
    """None where nobody is known to ask."""
    if "principal" not in scope.get("state", {}):
        return None
    container: Container = scope["app"].state.container
    return container
