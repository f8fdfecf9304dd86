"""The whole application over a real database, asked with keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx

from app.bootstrap import Container, Parts, compose
from app.core.model.records import Scope
from app.infrastructure.clock import SystemClock
from app.infrastructure.counters import LocalCounters
from app.main import create_app
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.admin.keys import ALL_SCOPES
from app.usecases.ports import Clock, Counters
from tests.fakes import FakeJobQueue, FakeModels, LocalTurnStreams, ScriptedChatModel, ScriptedSummarizer
from tests.integration.services import PollingBus, honest


class Keyed:
    """One process, and clients of it with keys of their own."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.app = create_app(container=container)

    async def key(self, tenant: str, scopes: frozenset[Scope] = ALL_SCOPES, **own: Any) -> tuple[UUID, str]:
        """A new key: its id, and its secret."""
        made, secret = await self.container.keys.create(tenant, "test", scopes, **own)
        return made.id, secret

    def client(self, secret: str | None = None) -> httpx.AsyncClient:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, timeout=30)


@asynccontextmanager
async def keyed(
    begin: UnitOfWorkFactory,
    *,
    chat: ScriptedChatModel | None = None,
    counters: Counters | None = None,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[Keyed]:
    """A process in open mode, in which keys are known all the same."""

    async def yes() -> bool:
        return True

    parts = Parts(
        uow=begin,
        bus=PollingBus(),
        queue=FakeJobQueue(),
        streams=LocalTurnStreams(),
        models=FakeModels(chat or ScriptedChatModel(), ScriptedSummarizer(honest)),
        clock=clock or SystemClock(),
        counters=counters or LocalCounters(lambda: 1_000_000.0),
        database_ok=yes,
        row_security=yes,
    )
    container = compose(Settings(_env_file=None, embedded=True, **settings), parts, "process:one")
    try:
        yield Keyed(container)
    finally:
        await container.close()
