"""Two processes do whatever comes at random to one conversation, all at once; afterwards the invariants hold.

The order and the pauses are drawn by a seed. Tasks are cancelled in the middle, as when their process is killed, and
the time of the database passes by moving what it compares with its clock.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import DomainError
from app.core.model.model_io import ChatRequest, Proposal, StepEvent, SummaryRequest
from app.core.model.records import Page
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.chat_input import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.fakes import ScriptedChatModel
from tests.integration.services import WORDS, Service, proposal, versions

PATIENCE: Final = 60.0
STEPS: Final = 40
BEGINNING: Final = 30
"""So many characters of a message are those of no other."""
TABLES: Final = ("turns", "compactions")


class Slow(ScriptedChatModel):
    """A chat model that takes a random moment, and never says the same twice."""

    def __init__(self, chance: random.Random, numbers: Iterator[int]) -> None:
        super().__init__()
        self._chance = chance
        self._numbers = numbers

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        await asyncio.sleep(self._chance.uniform(0, 0.05))
        self._script._entries = [f"This is reply number {next(self._numbers)} of all."]
        async for event in super().step(request):
            yield event


class World:
    """One conversation, two processes, and what clients were told."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int) -> None:
        self.chance = random.Random(seed)
        self.engine = engine
        numbers = count(1)
        self.processes = [
            Service(begin, tenant, self._summary, owner=f"process:{name}", chat=Slow(self.chance, numbers))
            for name in ("one", "other")
        ]
        self.service = self.processes[0]
        self.acknowledged: dict[UUID, str] = {}
        self.erased: set[UUID] = set()
        self.replies: list[tuple[UUID, UUID]] = []
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self.conversation_id: UUID

    async def _summary(self, request: SummaryRequest) -> Proposal:
        await asyncio.sleep(self.chance.uniform(0, 0.15))
        return proposal(request)

    @property
    def any(self) -> Service:
        return self.chance.choice(self.processes)

    async def play(self) -> None:
        """Do the steps, then let everything come to rest."""
        self.conversation_id = await self.service.conversation(sync_deadline=2.0)
        await self.append(self.service)
        actions: list[Callable[[Service], Awaitable[None]]] = []
        actions += [self.append] * 5 + [self.chat] * 4 + [self.work] * 4 + [self.compact] * 2
        actions += [self.erase, self.restore, self.pin, self.change, self.let_time_pass, self.kill]
        for _ in range(STEPS):
            self._begin(self.chance.choice(actions), self.any)
            await asyncio.sleep(self.chance.uniform(0, 0.1))
        await asyncio.wait(self._tasks, timeout=PATIENCE)
        for _ in range(3):
            await self.let_time_pass(self.service)
            for process in self.processes:
                await self.work(process)

    def _begin(self, action: Callable[[Service], Awaitable[None]], service: Service) -> None:
        async def run() -> None:
            with suppress(DomainError):  # a refusal is an answer
                await action(service)

        task = asyncio.create_task(run())
        self._tasks.add(task)

    def _said(self) -> str:
        return WORDS.format(seq=next(self._numbers)) * 3

    async def append(self, service: Service) -> None:
        drafts = [MessageDraft(role="user" if n % 2 == 0 else "assistant", content=self._said()) for n in range(6)]
        for message in await service.container.messages.append(service.tenant, self.conversation_id, drafts):
            self.acknowledged[message.id] = message.content

    async def chat(self, service: Service) -> None:
        content = self._said() * 2
        idem = Idem(key=content, fingerprint="f")
        given = ChatInput(content=content)
        handle = await service.container.chat.start(service.tenant, self.conversation_id, given, idem=idem)
        done = await handle.result()
        self.acknowledged |= {one.id: one.content for one in (done.message, done.reply)}
        self.replies.append((done.message.id, done.reply.id))

    async def work(self, service: Service) -> None:
        """Sweep, and do what is queued, as a worker does."""
        await service.container.sweeper.sweep()
        for row in await service.compactions(self.conversation_id):
            if row.in_flight:
                await service.container.compaction.execute(row.id)

    async def compact(self, service: Service) -> None:
        asked = CompactInput(keep_tail_messages=self.chance.choice([0, 2, 5]))
        await service.container.manual.compact(service.tenant, self.conversation_id, asked, timeout=5)

    async def erase(self, service: Service) -> None:
        id_ = self.chance.choice(list(self.acknowledged))
        await service.container.erasure.erase(service.tenant, self.conversation_id, id_)
        self.erased.add(id_)

    async def restore(self, service: Service) -> None:
        last = (await service.row(self.conversation_id)).state_version
        if last:
            version = self.chance.randint(1, last)
            await service.container.states.restore(service.tenant, self.conversation_id, version)

    async def pin(self, service: Service) -> None:
        id_ = self.chance.choice(list(self.acknowledged))
        await service.container.pins.pin(service.tenant, self.conversation_id, id_)
        await asyncio.sleep(self.chance.uniform(0, 0.05))
        await service.container.pins.unpin(service.tenant, self.conversation_id, id_)

    async def change(self, service: Service) -> None:
        policy = {"policy": {"context_window": self.chance.choice([4_000, 5_000, 8_000]), "sync_deadline": 2.0}}
        await service.container.conversations.patch(service.tenant, self.conversation_id, policy)

    async def let_time_pass(self, _: Service) -> None:
        """Ten minutes pass: leases, pauses and waits of rows are over."""
        async with self.engine.begin() as connection:
            await connection.execute(text("UPDATE conversations SET quiet_until = quiet_until - interval '10 min'"))
            for table in TABLES:
                over = f"UPDATE {table} SET lease_until = lease_until - interval '10 min' WHERE status = 'running'"  # noqa: S608
                await connection.execute(text(over))
            waits = "UPDATE compactions SET queued_at = queued_at - interval '10 min' WHERE status = 'queued'"
            await connection.execute(text(waits))

    async def kill(self, _: Service) -> None:
        """Cancel something that runs, as if its process were killed."""
        running = [task for task in self._tasks if not task.done() and task is not asyncio.current_task()]
        if running:
            self.chance.choice(running).cancel()

    async def check(self) -> None:
        """Insist on the invariants (docs/failures.md)."""
        service, id_ = self.service, self.conversation_id
        row = await service.row(id_)
        async with service.begin(service.tenant) as uow:
            said = await uow.messages.between(id_, 1, row.last_seq + 99)
            events = await uow.events.after(id_, 0, limit=10_000)
            assert row.total == await uow.messages.sums_at(id_, row.last_seq)
            assert row.covered == await uow.messages.sums_at(id_, row.boundary_seq), "I5"
            assert await uow.turns.running(id_) is None, "nothing is stuck"
        assert [one.seq for one in said] == list(range(1, row.last_seq + 1)), "I2"
        assert [one.number for one in events] == list(range(1, row.last_event + 1)), "I2, of events"
        stored = {one.id: one for one in said}
        assert self.acknowledged.keys() <= stored.keys(), "I1"
        for message_id, content in self.acknowledged.items():
            is_there = stored[message_id].content == content
            assert is_there or stored[message_id].status == "erased", "I1"
        for asked, reply in self.replies:
            assert stored[asked].seq < stored[reply].seq
        assert len({reply for _, reply in self.replies}) == len(self.replies), "I8"
        await self._check_states(row)
        context = await service.container.context.assemble(service.tenant, id_)
        shown = {one.seq for one in context.messages if one.seq is not None}
        if context.truncated is None:
            tail = {one.seq for one in said if one.seq > row.boundary_seq and one.status == "complete"}
            assert tail <= shown, "I10"
        everything = str([one.content for one in context.messages]) + str(
            [one.state for one in await versions(service, id_)]
        )
        for message_id in self.erased & self.acknowledged.keys():
            assert self.acknowledged[message_id][:BEGINNING] not in everything, "I9"

    async def _check_states(self, row: Any) -> None:
        found = await versions(self.service, self.conversation_id)
        assert [one.version for one in found] == list(range(1, row.state_version + 1)), "I3"
        async with self.service.begin(self.service.tenant) as uow:
            page = Page(limit=100, order="asc")
            rows, _ = await uow.compactions.page(page, conversation_id=self.conversation_id)
        assert not [one for one in rows if one.in_flight], "nothing is stuck"
        applied = [one for one in rows if one.status == "applied"]
        for one in applied:
            if one.trigger != "erasure":
                assert (one.tokens_after or 0) < (one.tokens_before or 0), "I7"
        made = [one.state_version_after for one in applied]
        assert len(made) == len(set(made)), "I4"
        assert [one.type for one in await self._events()].count("compaction.applied") == len(applied)

    async def _events(self) -> Any:
        async with self.service.begin(self.service.tenant) as uow:
            return await uow.events.after(self.conversation_id, 0, limit=10_000)


@pytest.mark.case("46")
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 21)])
async def test_whatever_comes_at_once_the_invariants_hold(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int
) -> None:
    world = World(begin, engine, tenant, seed)
    await world.play()
    await world.check()
    assert len(world.acknowledged) > 12, "much was done"


PLANTED: Final = {
    "I1": "UPDATE messages SET content = 'else' WHERE status = 'complete'",
    "I2, of events": "DELETE FROM events WHERE number = 2",
    "I5": "UPDATE conversations SET covered_tokens = covered_tokens + 1",
    "nothing is stuck": "UPDATE compactions SET status = 'queued'"
    " WHERE id = (SELECT id FROM compactions ORDER BY id DESC LIMIT 1)",
}


@pytest.mark.long
@pytest.mark.control("46")
@pytest.mark.parametrize("law", PLANTED)
async def test_control_what_breaks_an_invariant_is_found(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, law: str
) -> None:
    world = World(begin, engine, tenant, 1)
    await world.play()
    async with engine.begin() as connection:
        await connection.execute(text(PLANTED[law]))
    with pytest.raises(AssertionError, match=law):
        await world.check()
