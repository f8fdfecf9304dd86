"""The n-th call of the database, of Redis or of a model fails, for every n: nothing is lost, doubled or half done.

Whoever gets an error tries again, as clients do; what nobody tries again, the sweeper does. Failure cases 31 and 36.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final, Literal
from uuid import UUID

import asyncpg
import pytest
import redis
from redis.asyncio.connection import AbstractConnection
from redis.connection import AbstractConnection as BlockingConnection
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bootstrap import Container
from app.core.model.errors import DependencyUnavailableError, DomainError, ModelUnavailableError
from app.core.model.model_io import ChatRequest, Proposal, StepEvent, SummaryRequest
from app.infrastructure import event_bus
from app.infrastructure.event_bus import RedisEventBus
from app.infrastructure.job_queue import CeleryJobQueue
from app.infrastructure.turn_streams import RedisTurnStreams
from app.storage.connections import TenantConnection
from app.storage.scoped_session import TenantSession
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.chat_input import ChatInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.chosen_settings import chosen_settings
from tests.fakes import ScriptedChatModel
from tests.integration.services import WORDS, Service, history, proposal

PATIENCE: Final = 30.0
JUMP: Final = WORDS.format(seq=99) * 30
"""A message that lifts a conversation above the inline threshold."""
When = Literal["before", "after"]
SENDING: Final = ("execute", "fetch", "executemany", "prepare")
"""The methods of a connection that send something to the server and wait for its answer."""
TRIES: Final = 8


class Cuts:
    """Counts the messages to the database, and cuts the connection at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._at, self._when, self._numbers = 0, "before", count(1)
        self.was_reached = False
        for name in SENDING:
            monkeypatch.setattr(TenantConnection, name, self._counted(getattr(TenantConnection, name)))

    def arm(self, at: int, when: When) -> None:
        """Cut the connection at this message: before it is sent, or before its answer is read."""
        self._at, self._when, self._numbers, self.was_reached = at, when, count(1), False

    def _counted(self, send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def sent(connection: TenantConnection, *given: Any, **named: Any) -> Any:
            is_now = self._at > 0 and next(self._numbers) == self._at
            self.was_reached = self.was_reached or is_now
            if is_now and self._when == "before":
                connection.terminate()
            answer = await send(connection, *given, **named)
            if is_now:
                connection.terminate()
                raise asyncpg.ConnectionDoesNotExistError("cut")
            return answer

        return sent


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    return Cuts(monkeypatch)


async def until_done(what: Callable[[], Awaitable[Any]], recover: Callable[[], Awaitable[None]]) -> Any:
    """Call again as long as the error says that it may help."""
    for _ in range(TRIES):
        try:
            return await asyncio.wait_for(what(), PATIENCE)
        except DomainError as error:
            if not error.retryable:
                raise
            await recover()
    raise AssertionError("it never worked")


async def check_numbers(service: Service, conversation_id: UUID) -> None:
    """Insist that messages and events are numbered without a gap, and that the conversation knows how many."""
    said = await history(service, conversation_id)
    row = await service.row(conversation_id)
    assert [one.seq for one in said] == list(range(1, row.last_seq + 1))
    async with service.begin(service.tenant) as uow:
        events = await uow.events.after(conversation_id, 0, limit=1_000)
    assert [one.number for one in events] == list(range(1, row.last_event + 1))


async def append_at(service: Service, cuts: Cuts, at: int, when: When, *, is_keyed: bool = True) -> bool:
    """Append with the connection cut at this message; returns whether there was such a message."""
    conversation_id = await service.conversation()
    await service.say(conversation_id, 2)
    draft = MessageDraft(role="user", content="Only once.")
    idem = Idem(key=f"{at} {when}", fingerprint="f") if is_keyed else None

    async def append() -> Any:
        return await service.container.messages.append(service.tenant, conversation_id, [draft], idem=idem)

    async def recover() -> None:
        pass

    cuts.arm(at, when)
    (acknowledged,) = await until_done(append, recover)
    await service.container.outbox.drain()
    was_reached = cuts.was_reached
    cuts.arm(0, when)
    stored = (await history(service, conversation_id))[2:]
    assert [one.id for one in stored] == [acknowledged.id], "what is acknowledged is stored, once"
    await check_numbers(service, conversation_id)
    return was_reached


async def append_at_each(service: Service, cuts: Cuts, when: When, *, is_keyed: bool = True) -> int:
    """Append as often as an append has messages, each time with another one cut; returns how many there are."""
    for at in count(1):
        if not await append_at(service, cuts, at, when, is_keyed=is_keyed):
            break
    return at - 1


@pytest.mark.case("31-append", "31-postgres", "31-response", "36-database")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_append_survives_whatever_message_to_the_database_fails(
    begin: UnitOfWorkFactory, tenant: UUID, cuts: Cuts, when: When
) -> None:
    assert await append_at_each(Service(begin, tenant), cuts, when) >= 4


@pytest.mark.long
@pytest.mark.control("31-append", "31-postgres", "36-database")
async def test_control_whoever_answers_without_its_commit_loses_messages(
    begin: UnitOfWorkFactory, tenant: UUID, cuts: Cuts, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = TenantSession.commit

    async def hopeful(session: TenantSession) -> None:
        with suppress(DependencyUnavailableError):
            await commit(session)

    monkeypatch.setattr(TenantSession, "commit", hopeful)
    with pytest.raises(AssertionError, match="what is acknowledged is stored"):
        await append_at_each(Service(begin, tenant), cuts, "before")


@pytest.mark.long
@pytest.mark.control("31-response")
async def test_control_without_a_key_it_is_stored_twice(begin: UnitOfWorkFactory, tenant: UUID, cuts: Cuts) -> None:
    with pytest.raises(AssertionError, match="what is acknowledged is stored, once"):
        await append_at_each(Service(begin, tenant), cuts, "after", is_keyed=False)


async def let_leases_end(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        for table in ("turns", "compactions"):
            over = f"UPDATE {table} SET lease_until = clock_timestamp() - interval '1 s' WHERE status = 'running'"  # noqa: S608
            await connection.execute(text(over))


async def near_the_threshold(service: Service) -> UUID:
    """A conversation whose next turn is compacted before the model is asked."""
    conversation_id = await service.conversation()
    await service.fill(conversation_id, 2_000, words=6)
    return conversation_id


async def chat_at(service: Service, engine: AsyncEngine, cuts: Cuts, at: int, when: When) -> bool:
    conversation_id = await near_the_threshold(service)
    before = len(await history(service, conversation_id))
    given, idem = ChatInput(content=JUMP), Idem(key=f"{at} {when}", fingerprint="f")

    async def chat() -> Any:
        return await (await service.container.chat.start(service.tenant, conversation_id, given, idem=idem)).result()

    async def recover() -> None:
        """The dead turn's lease ends, and the next sweep finds what is left."""
        await let_leases_end(engine)
        await service.container.sweeper.sweep()

    cuts.arm(at, when)
    done = await until_done(chat, recover)
    await service.container.outbox.drain()
    was_reached = cuts.was_reached
    cuts.arm(0, when)
    said = await history(service, conversation_id)
    assert [one.id for one in said[before:]] == [done.message.id, done.reply.id]
    await recover()
    for row in await service.compactions(conversation_id):
        if row.in_flight:
            await service.container.compaction.execute(row.id)
    rows = await service.compactions(conversation_id)
    assert [row.status for row in rows if row.status == "applied"] == ["applied"]
    assert (await service.row(conversation_id)).state_version == 1
    assert (await service.events(conversation_id)).count("compaction.applied") == 1
    assert (await service.events(conversation_id)).count("reply.completed") == 1
    await check_numbers(service, conversation_id)
    return was_reached


@pytest.mark.long
@pytest.mark.case("36-database")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_turn_with_its_compaction_survives_whatever_message_to_the_database_fails(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, cuts: Cuts, when: When
) -> None:
    for at in count(1):
        if not await chat_at(Service(begin, tenant), engine, cuts, at, when):
            break
    assert at > 20, "there are messages to fail"


# --- Redis


class Refusals:
    """Counts what is sent to Redis, by the loop's clients and the broker's, and fails one call and its repetition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._at, self._times, self._numbers = 0, 2, count(1)
        self.was_reached = False
        send, connect = AbstractConnection.send_packed_command, BlockingConnection.send_packed_command

        async def sent(connection: AbstractConnection, *given: Any, **named: Any) -> None:
            self._fail_now()
            await send(connection, *given, **named)

        def sent_by_thread(connection: BlockingConnection, *given: Any, **named: Any) -> None:
            self._fail_now()
            connect(connection, *given, **named)  # type: ignore[no-untyped-call]  # the library has no types

        monkeypatch.setattr(AbstractConnection, "send_packed_command", sent)
        monkeypatch.setattr(BlockingConnection, "send_packed_command", sent_by_thread)

    def arm(self, at: int, *, times: int = 2) -> None:
        """Fail this call, and those that follow it: its repetition, or more."""
        self._at, self._times, self._numbers, self.was_reached = at, times, count(1), False

    def _fail_now(self) -> None:
        if self._at > 0 and 0 <= next(self._numbers) - self._at < self._times:
            self.was_reached = True
            raise redis.ConnectionError("cut")


def over_redis(begin: UnitOfWorkFactory, tenant: UUID, redis_url: str) -> Service:
    """The services of a process with the real bus, streams and queue."""
    service = Service(begin, tenant)
    parts = replace(
        service.container.parts,
        bus=RedisEventBus(redis_url),
        streams=RedisTurnStreams(redis_url),
        queue=CeleryJobQueue(redis_url),
    )
    service.container = Container(chosen_settings(), parts, "process:one")
    return service


async def close(service: Service) -> None:
    parts: Any = service.container.parts
    await service.container.outbox.drain()
    await service.container.chat.close(1)
    for one in (parts.bus, parts.streams, parts.queue):
        await one.close()


async def used_with_redis_failing(service: Service, refusals: Refusals, at: int) -> bool:
    """Append, and chat with a compaction, while this call of Redis fails; nobody tries again."""
    conversation_id = await near_the_threshold(service)
    await service.container.outbox.drain()
    before = len(await history(service, conversation_id))
    refusals.arm(at)
    draft = MessageDraft(role="user", content="Here are more.")
    await service.container.messages.append(service.tenant, conversation_id, [draft])
    given = ChatInput(content=JUMP)
    handle = await service.container.chat.start(service.tenant, conversation_id, given)
    done = await asyncio.wait_for(handle.result(), PATIENCE)
    await service.container.outbox.drain()
    was_reached = refusals.was_reached
    refusals.arm(0)
    said = (await history(service, conversation_id))[before:]
    assert [one.content for one in said] == ["Here are more.", given.content, "All right."]
    assert done.compaction is not None
    assert done.compaction.compaction.status == "applied"
    await check_numbers(service, conversation_id)
    return was_reached


@pytest.mark.long
@pytest.mark.case("36-redis")
async def test_whatever_call_of_redis_fails_nobody_notices(
    begin: UnitOfWorkFactory, tenant: UUID, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch)
    for at in count(1):
        service = over_redis(begin, tenant, redis_url)
        was_reached = await used_with_redis_failing(service, refusals, at)
        await close(service)
        if not was_reached:
            break
    assert at > 10, "there are calls to fail"


@pytest.mark.case("36-redis")
async def test_a_call_of_redis_that_fails_is_not_noticed(
    begin: UnitOfWorkFactory, tenant: UUID, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = over_redis(begin, tenant, redis_url)
    assert await used_with_redis_failing(service, Refusals(monkeypatch), 6)
    await close(service)


@pytest.mark.long
@pytest.mark.control("36-redis")
async def test_control_without_the_guard_around_it_a_compaction_fails(
    begin: UnitOfWorkFactory, tenant: UUID, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unguarded(call: Callable[[], Awaitable[Any]], *_: Any, **__: Any) -> Any:
        return await call()

    monkeypatch.setattr(event_bus, "attempt", unguarded)
    service = over_redis(begin, tenant, redis_url)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    (row,) = await service.compactions(conversation_id)
    Refusals(monkeypatch).arm(1, times=1_000)
    with pytest.raises(redis.ConnectionError):
        await service.container.compaction.execute(row.id)
    await close(service)


# --- the model


class Failing:
    """Counts the calls of both models, and lets one of them fail."""

    def __init__(self, begin: UnitOfWorkFactory, tenant: UUID, at: int) -> None:
        self._numbers, self._at = count(1), at
        self.was_reached = False
        self.service = Service(begin, tenant, self._summary, chat=_Counted(self))
        self._chat_calls = 0

    def fail_now(self) -> None:
        if next(self._numbers) == self._at:
            self.was_reached = True
            raise ModelUnavailableError("server_error")

    async def _summary(self, request: SummaryRequest) -> Proposal:
        self.fail_now()
        return proposal(request)


class _Counted(ScriptedChatModel):
    def __init__(self, failing: Failing) -> None:
        super().__init__()
        self._failing = failing

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        self._failing.fail_now()
        async for event in super().step(request):
            yield event


async def talked_with_a_failing_call(begin: UnitOfWorkFactory, tenant: UUID, at: int) -> bool:
    """Hold a talk of some turns and compactions; a turn that failed is asked for again, under its key."""
    failing = Failing(begin, tenant, at)
    service = failing.service
    conversation_id = await near_the_threshold(service)
    before = len(await history(service, conversation_id))
    asked = [WORDS.format(seq=100 + number) * 11 for number in range(4)]
    for number, content in enumerate(asked):
        idem = Idem(key=f"{at} {number}", fingerprint="f")

        async def chat(content: str = content, idem: Idem = idem) -> Any:
            given = ChatInput(content=content)
            handle = await service.container.chat.start(tenant, conversation_id, given, idem=idem)
            return await handle.result()

        async def recover() -> None:
            pass

        await until_done(chat, recover)
    said = [one.content for one in (await history(service, conversation_id))[before:]]
    assert said == [words for content in asked for words in (content, "All right.")], "each is answered once, in order"
    assert "applied" in [row.status for row in await service.compactions(conversation_id)]
    await check_numbers(service, conversation_id)
    return failing.was_reached


@pytest.mark.long
@pytest.mark.case("36-model")
async def test_whatever_call_of_a_model_fails_the_talk_goes_on(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    for at in count(1):
        if not await talked_with_a_failing_call(begin, tenant, at):
            break
    assert at > 5, "there are calls to fail"


@pytest.mark.long
@pytest.mark.control("36-model")
async def test_control_an_error_that_is_not_known_as_the_model_s_ends_the_talk(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: Failing) -> None:
        raise RuntimeError

    monkeypatch.setattr(Failing, "fail_now", unknown)
    with pytest.raises(DomainError, match="unexpectedly"):
        await talked_with_a_failing_call(begin, tenant, 1)
