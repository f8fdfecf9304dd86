"""The whole application over a real database, with requests that carry keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx

from app.bootstrap import Container, Parts
from app.core.model.records import Scope
from app.infrastructure.clock import SystemClock
from app.infrastructure.counters import LocalCounters
from app.main import create_app
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.admin.keys import ALL_SCOPES
from app.usecases.ports import Clock, Counters
from tests.chosen_settings import chosen_settings
from tests.fakes import FakeJobQueue, FakeModels, LocalTurnStreams, ScriptedChatModel, ScriptedSummarizer, well
from tests.integration.services import PollingBus, honest


class Keyed:
    """One process, and clients with keys of their own."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.app = create_app(container=container)

    async def key(self, tenant: str, scopes: frozenset[Scope] = ALL_SCOPES, **own: Any) -> tuple[UUID, str]:
        """Create a key, and return its id and its secret."""
        made, secret = await self.container.keys.create(tenant, "test", scopes, **own)
        return made.id, secret

    def client(self, secret: str | None = None) -> httpx.AsyncClient:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, timeout=30)

    @asynccontextmanager
    async def socket(self, secret: str) -> AsyncIterator[Socket]:
        """Open a WebSocket with a key at ``/v1/responses``."""
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]
        scope = {
            "type": "websocket",
            "path": "/v1/responses",
            "headers": headers,
            "query_string": b"",
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        socket = Socket()
        serving = asyncio.create_task(self.app(scope, socket.sent.get, socket.tell))
        await socket.sent.put({"type": "websocket.connect"})
        try:
            yield socket
        finally:
            await socket.sent.put({"type": "websocket.disconnect", "code": 1000})
            await serving


class Socket:
    """The messages that a client of a WebSocket sends, and those that it is sent."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.is_gone = False
        """Whether the client has left, which only a sender notices at first."""

    async def tell(self, message: Any) -> None:
        """Take a message from the server."""
        if self.is_gone:
            raise OSError
        await self.told.put(message)

    async def send(self, **body: Any) -> None:
        """Send a request."""
        text = json.dumps({"type": "response.create", "model": "throughline", "input": "hello", **body})
        await self.sent.put({"type": "websocket.receive", "text": text})

    async def next(self) -> dict[str, Any]:
        """The next message that the client is sent, in the form of ASGI."""
        async with asyncio.timeout(20):
            found: dict[str, Any] = await self.told.get()
            return found

    async def ask(self, **body: Any) -> dict[str, Any]:
        """Send a request, and return its last event."""
        await self.send(**body)
        while True:
            event: dict[str, Any] = json.loads((await self.next())["text"])
            if event["type"] in {"response.completed", "response.failed", "error"}:
                return event


@asynccontextmanager
async def keyed(
    begin: UnitOfWorkFactory,
    *,
    chat: ScriptedChatModel | None = None,
    counters: Counters | None = None,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[Keyed]:
    """A process in open mode, which knows keys all the same."""

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
        database_state=well,
        row_security=yes,
    )
    container = Container(chosen_settings(embedded=True, **settings), parts, "process:one")
    try:
        yield Keyed(container)
    finally:
        await container.close()
