"""An operation stops before and after each of its commits; another runs meanwhile; afterwards the invariants hold.

``test_interleavings`` draws what happens at once. Here every operation meets every other one at every such place, with
the first one either going on afterwards or dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import count, product
from typing import Any, Final, Literal
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import DomainError
from app.storage.connections import TenantConnection
from app.storage.database_errors import DATABASE_ERRORS
from app.storage.repositories.conversations import ConversationRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from tests.integration.services import Service
from tests.integration.test_interleavings import World

PATIENCE: Final = 30.0
IDLE_SECONDS: Final = 0.5
"""An operation that sends nothing for so long waits for the other one."""
OPERATIONS: Final = ("append", "chat", "compact", "erase", "restore", "pin", "change")
AFTER_DEATH: Final = ("chat", "compact", "sweep")
DAILY: Final = frozenset({("append", "append", "goes on"), ("restore", "erase", "goes on")})
WAITS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)

Fate = Literal["goes on", "dies"]


class Stop:
    """Where the first operation stops: before or after a commit."""

    def __init__(self, place: int) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self._place = place
        self._passed = 0

    async def pass_(self) -> None:
        """Note a place, and wait there if it is the one."""
        self._passed += 1
        if self._passed == self._place:
            self.reached.set()
            await self.go_on.wait()


stop_of_task: Final[ContextVar[Stop | None]] = ContextVar("stop_of_task", default=None)


@contextmanager
def stopping_at_commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have every commit of a task that has a stop pass it twice."""
    execute = TenantConnection.execute

    async def passing(connection: TenantConnection, query: str, *given: Any, **options: Any) -> str:
        stop = stop_of_task.get() if query.startswith("COMMIT") else None
        if stop is not None:
            await stop.pass_()
        done = await execute(connection, query, *given, **options)
        if stop is not None:
            await stop.pass_()
        return done

    with monkeypatch.context() as patched:
        patched.setattr(TenantConnection, "execute", passing)
        yield


class Pair(World):
    """A conversation with a state, in which two operations meet; nothing in it is drawn."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> None:
        super().__init__(begin, engine, tenant, 1)
        self.chance.uniform = lambda *_: 0.0  # type: ignore[method-assign]  # no model thinks for a while

    async def meet(self, first: str, second: str, place: int, fate: Fate) -> bool:
        """Run both. Returns whether the first operation has this place."""
        self._numbers = count(place * 1_000)  # a key of the tenant is for one place
        self.conversation_id = await self.service.conversation(sync_deadline=2.0)
        for _ in range(3):
            await self.append(self.service)
        await self.compact(self.service)
        await self.append(self.service)
        stop = Stop(place)
        going = asyncio.create_task(self._first(first, stop))
        reaching = asyncio.create_task(stop.reached.wait())
        await asyncio.wait({going, reaching}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        reaching.cancel()
        if not stop.reached.is_set():
            await going
            return False
        if fate == "dies":
            going.cancel()
        other = asyncio.create_task(self._refused_or_done(second, self.processes[1]))
        await self._done_or_waiting(other)
        stop.go_on.set()
        await asyncio.wait_for(asyncio.gather(going, other, return_exceptions=True), PATIENCE)
        for failed in (one for one in (going, other) if not one.cancelled() and one.exception()):
            raise AssertionError(f"{first} and {second}") from failed.exception()
        for process in self.processes:
            await self.sweep(process)
        return True

    async def compact(self, service: Service) -> None:
        asked = CompactInput(keep_tail_messages=2)
        await service.container.manual.compact(service.tenant, self.conversation_id, asked, timeout=5)

    async def sweep(self, service: Service) -> None:
        """A process for which every lease is over takes over and ends what it finds."""
        await self.let_time_pass(service)
        await self.work(service)

    async def _first(self, name: str, stop: Stop) -> None:
        stop_of_task.set(stop)
        await self._refused_or_done(name, self.processes[0])

    async def _refused_or_done(self, name: str, service: Service) -> None:
        try:
            await getattr(self, name)(service)
        except DomainError as error:
            if isinstance(error.__cause__, DATABASE_ERRORS):  # such as a deadlock
                raise

    async def _done_or_waiting(self, task: asyncio.Task[None]) -> None:
        """Wait until the task is done, or waits for a lock, or for whatever else the first operation has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                while not task.done() and not await self._somebody_waits():
                    await asyncio.wait({task}, timeout=0.01)

    async def _somebody_waits(self) -> bool:
        async with self.engine.connect() as connection:
            return bool((await connection.execute(WAITS)).scalar_one())


async def meet_everywhere(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, first: str, second: str, fate: Fate
) -> int:
    """Let two operations meet at each place of the first one; return how many places it has."""
    for place in count(1):
        pair = Pair(begin, engine, tenant)
        if not await pair.meet(first, second, place, fate):
            return place - 1
        await pair.check()
    raise AssertionError("the first operation never ends")


def _variants() -> list[Any]:
    going_on = product(OPERATIONS, (*OPERATIONS, "sweep"), ["goes on"])
    dying = product(OPERATIONS, AFTER_DEATH, ["dies"])
    return [pytest.param(*one, marks=() if one in DAILY else pytest.mark.long) for one in (*going_on, *dying)]


@pytest.mark.case("46")
@pytest.mark.parametrize(("first", "second", "fate"), _variants())
async def test_two_operations_meet_at_each_commit_of_the_first(
    begin: UnitOfWorkFactory,
    engine: AsyncEngine,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    second: str,
    fate: Fate,
) -> None:
    with stopping_at_commits(monkeypatch):
        places = await meet_everywhere(begin, engine, tenant, first, second, fate)
    assert places >= 2, "before and after a commit"


@pytest.mark.control("46")
async def test_control_operations_that_do_not_lock_the_conversation_undo_each_other(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConversationRepository, "lock", ConversationRepository.get)
    with stopping_at_commits(monkeypatch), pytest.raises(AssertionError, match="append and append"):
        await meet_everywhere(begin, engine, tenant, "append", "append", "goes on")
