"""The services over a real database, with fakes behind the ports for model, bus and queue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any
from uuid import UUID

from app.bootstrap import Container, Parts
from app.core.model.conversation import Conversation, Message, Usage
from app.core.model.errors import DependencyUnavailableError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction, Event, Page
from app.core.model.state import StateVersion
from app.infrastructure.clock import SystemClock
from app.settings import Settings
from app.storage.unit_of_work import Deliver, UnitOfWork, UnitOfWorkFactory
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import Embedder, TurnStreams
from tests.chosen_settings import chosen_settings
from tests.fakes import FakeJobQueue, FakeModels, LocalTurnStreams, ScriptedChatModel, SummaryEntry, well
from tests.fakes import ScriptedSummarizer as Summarizer

WORDS = "the shipment of {seq} crates reaches harbour number {seq} in the grey morning some wind from the west! "
"""An exclamation. If a user says it, the rules find its number as a critical fact."""


def proposal(request: SummaryRequest) -> Proposal:
    """An honest, short candidate about the span."""
    first, last = request.messages[0].seq, request.messages[-1].seq
    said = " ".join(message.content for message in request.messages)
    numbers = f" {first} to {last}" if f" {first} crates" in said and f" {last} crates" in said else ""
    text = json.dumps(
        {
            "logos": [{"text": f"Crates{numbers} reached their harbours", "from": [first, last], "replaces": []}],
            "pathos": [],
            "abstract": [],
            "conversation_summary": f"Shipments{numbers} arrived at their harbours in the morning.",
            "dropped": [],
        }
    )
    return Proposal(text=text, finish="stop", model="fake", usage=Usage(input_tokens=500, output_tokens=60))


async def honest(request: SummaryRequest) -> Proposal:
    """The default of the summarizer."""
    return proposal(request)


class Gate:
    """A summarizer that waits at a barrier until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, request: SummaryRequest) -> Proposal:
        self.reached.set()
        await self.go_on.wait()
        return proposal(request)


class PollingBus:
    """``EventBus`` with Redis away: nobody is woken, so that everybody looks at the database again and again.

    Waiting code looks five times as often as in the service, at most twenty times a second.
    """

    async def publish(self, events: Sequence[Event]) -> None:
        """Nothing to do: nobody is woken."""

    async def hint(self, conversation_id: UUID, word: str) -> None:
        """Nothing to do: nobody is woken."""

    @asynccontextmanager
    async def subscribe(self, conversation_id: UUID) -> AsyncIterator[PollingBus]:
        yield self

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the port's signature
        await asyncio.sleep(min(timeout, max(0.05, timeout / 5)))
        return False

    async def ping(self) -> bool:
        return False

    async def close(self) -> None:
        """Nothing to close."""


class Service:
    """The services of one process."""

    def __init__(
        self,
        begin: UnitOfWorkFactory,
        tenant: UUID,
        *script: SummaryEntry,
        owner: str = "process:one",
        chat: ScriptedChatModel | None = None,
        fallbacks: Mapping[str, Summarizer] | None = None,
        settings: Settings | None = None,
        streams: TurnStreams | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.tenant = tenant
        self.begin = begin
        self.summarizer = Summarizer(*(script or (honest,)))
        self.chat_model = chat or ScriptedChatModel()
        self.queue = FakeJobQueue()
        parts = Parts(
            uow=begin,
            bus=PollingBus(),
            queue=self.queue,
            models=FakeModels(self.chat_model, self.summarizer, summarizers=fallbacks, embedder=embedder),
            clock=SystemClock(),
            database_state=well,
            row_security=_yes,
            streams=streams or LocalTurnStreams(),
        )
        self.container: Container = Container(settings or chosen_settings(), parts, owner)

    async def conversation(self, **policy: Any) -> UUID:
        given = NewConversation(policy={"context_window": 4_000} | policy)
        return (await self.container.conversations.create(self.tenant, given)).conversation.id

    async def say(self, conversation_id: UUID, count: int, *, words: int = 2) -> list[Message]:
        """Append this many messages, of users and assistants in turn."""
        start = (await self.row(conversation_id)).last_seq
        drafts = [
            MessageDraft(
                role="user" if seq % 2 else "assistant",
                content=WORDS.format(seq=seq) * words,
            )
            for seq in range(start + 1, start + count + 1)
        ]
        messages = await self.container.messages.append(self.tenant, conversation_id, drafts)
        await self.container.outbox.drain()
        return messages

    async def fill(self, conversation_id: UUID, tokens: int, *, step: int = 2, words: int = 2) -> None:
        """Append until the context has this many tokens: most of it in one batch, the last of it step by step."""
        most = 30 * words * step
        while (missing := tokens - (await self.row(conversation_id)).context_tokens) > 0:
            await self.say(conversation_id, max(1, missing // most) * step, words=words)

    async def row(self, conversation_id: UUID) -> Conversation:
        async with self.begin(self.tenant) as uow:
            return await uow.conversations.get(conversation_id)

    async def compactions(self, conversation_id: UUID) -> list[Compaction]:
        async with self.begin(self.tenant) as uow:
            rows, _ = await uow.compactions.page(Page(limit=100, order="asc"), conversation_id=conversation_id)
            return rows

    async def events(self, conversation_id: UUID) -> list[str]:
        async with self.begin(self.tenant) as uow:
            return [event.type for event in await uow.events.after(conversation_id, 0, limit=10_000)]


async def _yes() -> bool:
    return True


async def together(*works: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run all calls at once; an exception is a result."""
    return await asyncio.gather(*(work() for work in works), return_exceptions=True)


class _Opened:
    """A unit of work that is entered by another way. The one within delivers what it commits."""

    def __init__(self, around: AbstractAsyncContextManager[UnitOfWork], unit: UnitOfWork) -> None:
        self._around = around
        self._unit = unit
        self.conversations = unit.conversations

    @property
    def deliver(self) -> Deliver | None:
        return self._unit.deliver

    @deliver.setter
    def deliver(self, deliver: Deliver | None) -> None:
        self._unit.deliver = deliver

    async def __aenter__(self) -> UnitOfWork:
        return await self._around.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._around.__aexit__(kind, error, trace)


def opened_by(opening: Callable[[UnitOfWork], AbstractAsyncContextManager[UnitOfWork]], unit: UnitOfWork) -> UnitOfWork:
    """The unit of work, entered by ``opening``."""
    return _Opened(opening(unit), unit)  # type: ignore[return-value]  # it is used in ``async with`` only


class Outage:
    """Units of work that cannot begin for some time after ``begin`` was called."""

    def __init__(self, uow: UnitOfWorkFactory, seconds: float) -> None:
        self._uow = uow
        self._seconds = seconds
        self._is_away = False

    def __call__(self, tenant_id: UUID | None) -> UnitOfWork:
        return opened_by(self._opening, self._uow(tenant_id))

    def begin(self) -> None:
        self._is_away = True
        asyncio.get_running_loop().call_later(self._seconds, self.end)

    def end(self) -> None:
        self._is_away = False

    @asynccontextmanager
    async def _opening(self, unit: UnitOfWork) -> AsyncIterator[UnitOfWork]:
        if self._is_away:
            raise DependencyUnavailableError("the database is away")
        async with unit:
            yield unit


async def history(service: Service, conversation_id: UUID) -> list[Message]:
    """All messages of a conversation."""
    async with service.begin(service.tenant) as uow:
        return (await uow.messages.page(conversation_id, Page(limit=100, order="asc")))[0]


async def roles(service: Service, conversation_id: UUID) -> list[str]:
    return [message.role for message in await history(service, conversation_id)]


async def versions(service: Service, conversation_id: UUID) -> list[StateVersion]:
    """All versions of its state."""
    async with service.begin(service.tenant) as uow:
        return (await uow.states.page(conversation_id, Page(limit=100, order="asc")))[0]


async def block(service: Service, conversation_id: UUID) -> str:
    """The state block as it is served."""
    context = await service.container.context.assemble(service.tenant, conversation_id)
    return next((one.content for one in context.messages if one.content.startswith("<session_state>")), "")
