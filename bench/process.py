"""A process of the service inside this one: the real services with a database, and a clock that is set here."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import httpx

from app.bootstrap import Container, build_container
from app.devserver import Endpoints
from app.infrastructure.clock import SystemClock
from app.main import create_app
from app.settings import Settings
from app.usecases.ports import Clock

OWNER: Final = "process:bench"
_TIMEOUT: Final = 120.0


class SteppingClock(SystemClock):
    """A clock that moves on by a second each time it is read; waiting takes real time."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The next second."""
        self._now += timedelta(seconds=1)
        return self._now


class StandingClock(SystemClock):
    """A clock that always shows the same time; waiting takes real time."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        """The fixed time."""
        return self._moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The services, and a client that reaches them over ASGI."""

    container: Container
    transport: httpx.ASGITransport
    http: httpx.AsyncClient


@contextlib.asynccontextmanager
async def running(servers: Endpoints, clock: Clock, **settings: Any) -> AsyncIterator[Process]:
    """Run a process with these servers. It has no worker: the caller has to run queued compactions."""
    chosen = Settings(
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        log_level="ERROR",
        **settings,
    )
    built = await build_container(chosen, OWNER)
    container = Container(chosen, replace(built.parts, clock=clock), OWNER)
    transport = httpx.ASGITransport(create_app(container=container))
    try:
        async with httpx.AsyncClient(base_url="http://localhost", transport=transport, timeout=_TIMEOUT) as http:
            yield Process(container=container, transport=transport, http=http)
    finally:
        await container.close()
