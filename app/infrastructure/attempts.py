"""Calls of a server that may be away: a call neither fails its caller nor makes it wait for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from app.circuit import Circuit

Result = TypeVar("Result")

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def attempt(
    call: Callable[[], Awaitable[Result]], circuit: Circuit, seconds: float, failed: str, **about: object
) -> Result | None:
    """The server's answer, or ``None`` if it is away. A failure is logged under the name ``failed``, with ``about``."""
    if not circuit.allows():
        return None
    try:
        async with asyncio.timeout(seconds):
            result = await call()
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller goes on without
        circuit.failed()
        _log.warning(failed, **about, error=type(error).__name__)
        return None
    except BaseException:
        circuit.abandoned()
        raise
    circuit.succeeded()
    return result
