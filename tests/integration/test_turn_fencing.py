"""A process stops in the middle of a turn until after its lease: others end the turn, and it adds nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Message
from app.core.model.errors import DependencyUnavailableError, DomainError, NotFoundError, TurnLostError
from app.core.model.model_io import ChatRequest, StepEvent, ToolCall
from app.core.model.records import Turn
from app.settings import Settings
from app.storage.connection_shares import ConnectionShares
from app.storage.repositories.turns import TurnRepository, as_turn
from app.storage.tables import TurnRow
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn import TurnRunner
from app.usecases.chat.turn_handle import ChatResult, TurnHandle
from app.usecases.chat.turn_watch import Watch
from app.usecases.compaction.manual import CompactInput
from app.usecases.shared.idempotency import Idem
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.integration.services import Gate, Service, opened_by

PATIENCE = 30.0
LOOK_UP = Reply(calls=(ToolCall(id="0", name="search_conversation", arguments={"query": "crates"}),))


class Machine:
    """Units of work of a process that can be stopped as by ``kill -STOP``: nothing of it reaches the database."""

    def __init__(self, begin: UnitOfWorkFactory) -> None:
        self._begin = begin
        self.goes = asyncio.Event()
        self.goes.set()
        self.open = 0

    async def stop(self) -> None:
        """Let nothing more reach the database, not even what was on its way."""
        self.goes.clear()
        while self.open:  # noqa: ASYNC110 - a moment
            await asyncio.sleep(0.001)

    def __call__(self, tenant_id: UUID | None) -> UnitOfWork:
        return opened_by(self._opened, self._begin(tenant_id))

    @asynccontextmanager
    async def _opened(self, unit: UnitOfWork) -> AsyncIterator[UnitOfWork]:
        await self.goes.wait()
        self.open += 1
        try:
            async with unit:
                yield unit
        finally:
            self.open -= 1


class Stopped:
    """Two processes over one database; the first one stops while its model thinks."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> None:
        self.engine = engine
        self.machine = Machine(begin)
        self.thinking, self.answer = asyncio.Event(), asyncio.Event()
        thinks = Reply(pieces=("Late",), meanwhile=self._think)
        self.model = ScriptedChatModel(thinks, "Too late.", profile=replace(FAKE_PROFILE, calls_tools=True))
        self.first = Service(self.machine, tenant, owner="process:first", chat=self.model)
        self.other = Service(begin, tenant, owner="process:other", chat=ScriptedChatModel("In time."))

    async def _think(self) -> None:
        self.thinking.set()
        await self.answer.wait()

    async def stop(self, conversation_id: UUID, **given: Any) -> TurnHandle:
        """Begin a turn, and stop the process in the middle of it, for longer than its lease."""
        handle = await self.first.container.chat.start(
            self.first.tenant, conversation_id, ChatInput(content="Where are the crates?"), **given
        )
        await asyncio.wait_for(self.thinking.wait(), PATIENCE)
        await self.machine.stop()
        async with self.engine.begin() as connection:
            await connection.execute(text("UPDATE turns SET lease_until = clock_timestamp() - interval '1 s'"))
        return handle

    async def again(self, conversation_id: UUID) -> ChatResult:
        """Ask the other process for the answer, as the client does."""
        handle = await self.other.container.chat.start(self.other.tenant, conversation_id, ChatInput())
        return await asyncio.wait_for(handle.result(), PATIENCE)

    async def messages(self, conversation_id: UUID) -> list[Message]:
        async with self.other.begin(self.other.tenant) as unit:
            return await unit.messages.between(conversation_id, 1, 1_000)

    async def endings(self, conversation_id: UUID) -> list[str]:
        return [event for event in await self.other.events(conversation_id) if event.startswith("reply.")]


@pytest.fixture
def both(begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> Stopped:
    return Stopped(begin, engine, tenant)


@pytest.fixture
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply comes before a heartbeat notices the loss, so that only the fence in the database can stop it."""

    @asynccontextmanager
    async def unwatched(*_: object, **__: object) -> AsyncIterator[Watch]:
        yield Watch()

    monkeypatch.setattr("app.usecases.chat.turn.watched", unwatched)


async def ended(handle: TurnHandle) -> ChatResult:
    return await asyncio.wait_for(handle.result(), PATIENCE)


@pytest.mark.daily(2)
@pytest.mark.parametrize("ended_by", ["sweeper", "client"])
@pytest.mark.parametrize("noticed_by", ["heartbeat", "fence"])
async def test_a_turn_that_others_ended_stores_no_second_reply(
    both: Stopped, noticed_by: str, ended_by: str, request: pytest.FixtureRequest
) -> None:
    if noticed_by == "fence":
        request.getfixturevalue("nobody_looks")
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    if ended_by == "sweeper":
        await both.other.container.sweeper.sweep()
        assert await both.endings(conversation_id) == ["reply.failed"]
    result = await both.again(conversation_id)
    both.machine.goes.set()
    if noticed_by == "fence":
        both.answer.set()
    with pytest.raises(TurnLostError) as lost:
        await ended(handle)

    assert lost.value.extra["message_id"] == str(result.message.id)
    assert [message.content for message in await both.messages(conversation_id)] == [
        "Where are the crates?",
        "In time.",
    ]
    assert await both.endings(conversation_id) == ["reply.failed", "reply.completed"]


async def test_a_turn_that_a_failover_lost_does_not_say_that_its_message_is_stored(both: Stopped) -> None:
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    async with both.engine.begin() as connection:  # as after a failover to a replica without the last seconds
        await connection.execute(text("DELETE FROM turns"))
        await connection.execute(text("DELETE FROM messages"))
    both.machine.goes.set()
    with pytest.raises(TurnLostError, match=r"no longer has the message, .* send the message again"):
        await ended(handle)


async def unfenced(repository: TurnRepository, turn_id: UUID, **changes: Any) -> Turn | None:
    """``end`` without its fence: it sets the fields whatever the row says."""
    changes |= {"warnings": list(changes["warnings"])} if "warnings" in changes else {}
    row = await repository._session.first(
        update(TurnRow).where(TurnRow.id == turn_id).values(**changes).returning(TurnRow)  # type: ignore[arg-type]
    )
    return as_turn(row)


@pytest.mark.usefixtures("nobody_looks")
async def test_without_the_fence_there_are_two_replies(both: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnRepository, "end", unfenced)
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    await both.other.container.sweeper.sweep()
    await both.again(conversation_id)
    both.machine.goes.set()
    both.answer.set()
    await ended(handle)

    contents = [message.content for message in await both.messages(conversation_id)]
    assert contents == ["Where are the crates?", "In time.", "Late"]
    assert await both.endings(conversation_id) == ["reply.failed", "reply.completed", "reply.completed"]


@pytest.mark.daily(1)
@pytest.mark.usefixtures("nobody_looks")
@pytest.mark.parametrize("fenced", [True, False])
async def test_a_turn_that_others_ended_stores_no_call_of_a_tool(
    both: Stopped, monkeypatch: pytest.MonkeyPatch, *, fenced: bool
) -> None:
    """Without the check of the row, the call and its result would be stored after the other process's reply."""
    both.model._script._entries[0] = Reply(calls=LOOK_UP.calls, meanwhile=both._think)
    conversation_id = await both.other.conversation(context_window=16_000)
    await both.other.say(conversation_id, 40)
    await both.other.container.manual.compact(both.other.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    handle = await both.stop(conversation_id)
    await both.other.container.sweeper.sweep()
    await both.again(conversation_id)
    if not fenced:
        monkeypatch.setattr("app.usecases.chat.tool_loop._check_still_running", _says_nothing)
    both.machine.goes.set()
    both.answer.set()
    with pytest.raises(TurnLostError):
        await ended(handle)

    roles = [message.role for message in await both.messages(conversation_id)][40:]
    assert (roles == ["user", "assistant"]) is fenced
    assert await both.endings(conversation_id) == ["reply.failed", "reply.completed"]


async def _says_nothing(*_: object) -> None:
    """The guard, broken."""


async def test_a_process_that_goes_on_before_anybody_ended_its_turn_keeps_it(both: Stopped) -> None:
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    both.machine.goes.set()
    await asyncio.sleep(0.2)
    both.answer.set()

    assert (await ended(handle)).reply.content == "Late"
    assert await both.endings(conversation_id) == ["reply.completed"]


@pytest.mark.usefixtures("nobody_looks")
async def test_the_key_of_a_lost_turn_brings_the_reply_of_the_next_one(both: Stopped) -> None:
    key = Idem(key="k1", fingerprint="f")
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id, idem=key)
    given = ChatInput(content="Where are the crates?")
    again = await both.other.container.chat.start(both.other.tenant, conversation_id, given, idem=key)
    assert (await ended(again)).reply.content == "In time."
    both.machine.goes.set()
    both.answer.set()
    with pytest.raises(TurnLostError):
        await ended(handle)

    third = await both.other.container.chat.start(both.other.tenant, conversation_id, given, idem=key)
    assert (await ended(third)).reply.content == "In time."
    assert len(await both.messages(conversation_id)) == 2


@pytest.mark.usefixtures("nobody_looks")
async def test_a_failure_of_a_lost_turn_is_told_once(both: Stopped) -> None:
    both.model._script._entries[0] = Reply(error=RuntimeError("a defect"), meanwhile=both._think)
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    await both.other.container.sweeper.sweep()
    both.machine.goes.set()
    both.answer.set()
    with pytest.raises(DomainError, match="unexpectedly"):
        await ended(handle)

    assert await both.endings(conversation_id) == ["reply.failed"]


async def test_a_failure_that_cannot_be_recorded_is_told_all_the_same(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> int | None:
        raise ZeroDivisionError

    monkeypatch.setattr(TurnRunner, "_record_failure", broken)
    service = Service(begin, tenant, chat=ScriptedChatModel(Reply(error=RuntimeError("a defect"))))
    conversation_id = await service.conversation()
    handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content="Hello"))
    with pytest.raises(DomainError, match="unexpectedly"):
        await ended(handle)


async def test_a_conversation_that_was_deleted_meanwhile_is_not_found(both: Stopped) -> None:
    conversation_id = await both.other.conversation()
    handle = await both.stop(conversation_id)
    await both.other.container.conversations.delete(both.other.tenant, conversation_id)
    both.machine.goes.set()
    with pytest.raises(NotFoundError):
        await ended(handle)


async def test_a_commit_whose_answer_was_lost_is_not_repeated(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """The reply is stored, but the connection breaks before this is confirmed."""
    broken: list[UUID] = []

    def begin_(tenant_id: UUID | None) -> UnitOfWork:
        unit = begin(tenant_id)
        commit = unit.commit

        async def commit_and_break() -> None:
            ends = any(event.type == "reply.completed" for event in unit._added)
            await commit()
            if ends:
                broken.append(tenant)
                raise DependencyUnavailableError("the connection broke")

        unit.commit = commit_and_break  # type: ignore[method-assign]
        return unit

    service = Service(begin_, tenant)
    conversation_id = await service.conversation()
    handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content="Hello"))
    result = await ended(handle)

    assert broken == [tenant]
    assert result.reply.content == "All right."
    async with begin(tenant) as unit:
        assert [message.id for message in await unit.messages.between(conversation_id, 1, 9)] == [
            result.message.id,
            result.reply.id,
        ]
    assert [event for event in await service.events(conversation_id) if event.startswith("reply.")] == [
        "reply.completed"
    ]


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", ["turn", "compaction"])
async def test_work_goes_on_while_its_tenant_s_requests_take_all_connections(
    engine: AsyncEngine, tenant: UUID, kind: str
) -> None:
    """Otherwise a tenant with many requests would lose its running replies, though their processes live."""
    quick = Settings(lease_seconds=1.5, heartbeat_seconds=0.1, turn_heartbeat_seconds=0.1, watchdog_seconds=0)
    begin = unit_of_work_factory(engine, quick.timings, ConnectionShares(1, seconds=0.1))
    gate, model = Gate(), GatedChatModel()
    service = Service(begin, tenant, gate, chat=model, settings=quick)
    conversation_id = await service.conversation()
    work: Coroutine[Any, Any, Any]
    if kind == "turn":
        handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content="Hello"))
        work, reached, go_on = handle.result(), model.reached, model.go_on
    else:
        await service.say(conversation_id, 60)
        work, reached, go_on = service.container.compaction.execute(service.queue.ids[0]), gate.reached, gate.go_on
    running = asyncio.ensure_future(work)
    await asyncio.wait_for(reached.wait(), PATIENCE)
    async with begin(tenant) as uow:
        await uow.keys.all()
        for _ in range(4):
            await asyncio.sleep(0.6)
            await service.container.sweeper.sweep()
    go_on.set()
    done: Any = await asyncio.wait_for(running, PATIENCE)
    assert (done.reply.status if kind == "turn" else done.status) in {"complete", "applied"}


class GatedChatModel(ScriptedChatModel):
    """A chat model that answers once the test lets it."""

    def __init__(self) -> None:
        super().__init__("All right.")
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        self.reached.set()
        await self.go_on.wait()
        async for event in super().step(request):
            yield event
