"""Writes whose results are not needed are sent together, and keep all their laws."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.anchors import AnchorStatus, Transition
from app.core.model.conversation import Sums
from app.core.model.errors import ConflictError, DependencyUnavailableError, NotFoundError
from app.core.model.records import IdempotencyRecord
from app.storage.connections import TenantConnection
from app.storage.database import make_engine
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from app.usecases.history import appending
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.integration.rows import START, anchor, connection_of, idempotent, message, stored
from tests.integration.services import Service

FINAL: Final[tuple[AnchorStatus, ...]] = ("resolved", "withdrawn", "superseded")
HOSTILE: Final = ("'; DROP TABLE messages; --", "\\'); COMMIT; --", "$1 $2", "%s {0}", '"\\"', "a" * 255)


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine with one connection only, so that each transaction follows another on it."""
    made = make_engine(database_url, pool_size=1, max_overflow=0)
    yield made
    await made.dispose()


@asynccontextmanager
async def heard(engine: AsyncEngine, tenant: UUID) -> AsyncIterator[list[str]]:
    """The messages to the server over the engine's one connection."""
    said: list[str] = []
    async with UnitOfWork(engine, tenant) as unit:
        connection = await connection_of(engine, unit.session)
        driver: Any = (await connection.get_raw_connection()).driver_connection

    def note(record: Any) -> None:
        said.append(record.query)

    driver.add_query_logger(note)
    yield said
    driver.remove_query_logger(note)


async def test_an_append_is_four_messages_to_the_server(
    narrow: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This also holds if it finds anchors, as in a folded conversation."""
    monkeypatch.setattr(appending, "defers_anchors", lambda _: False)
    begin = unit_of_work_factory(narrow)
    service, made = Service(begin, tenant), await stored(begin, tenant)

    async def append(conversation_id: UUID, key: str) -> None:
        draft = MessageDraft(role="user", content="We decided to use Jenkins for the builds.")
        idem = Idem(key=key, fingerprint="f")
        await service.container.messages.append(tenant, conversation_id, [draft], idem=idem)

    await append((await stored(begin, tenant)).id, "first")  # the first time the driver asks for the server's types
    async with heard(narrow, tenant) as said:
        await append(made.id, "second")
        await service.container.outbox.drain()  # the driver reports its last message a little later
    first = next(number for number, text in enumerate(said) if "INSERT INTO idempotency_keys" in text)
    last = next(number for number, text in enumerate(said) if "COMMIT" in text)
    claimed, locked, written, committed = said[first : last + 1]
    assert claimed.startswith("BEGIN")
    assert "FOR NO KEY UPDATE" in locked
    inserted = ("INTO messages", "INTO anchors", "INTO events")
    assert all(part in written for part in (*inserted, "UPDATE idempotency_keys", "UPDATE conversations"))
    assert committed == "COMMIT;"


async def test_a_heartbeat_is_one_message_to_the_server(narrow: AsyncEngine, tenant: UUID) -> None:
    begin = unit_of_work_factory(narrow)
    async with heard(narrow, tenant) as said:
        async with begin(None) as unit:
            await unit.works.renew(uuid4(), seconds=9)
        async with begin(None) as unit:  # the driver reports its last message a little later
            await unit.conversations.deleted(limit=1)
    assert "UPDATE works" in said[0], "nothing is sent before it"
    assert said[1].startswith("BEGIN"), "and nothing after it: this is the next transaction"


async def test_what_waits_is_there_for_every_later_read_of_its_transaction(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        await unit.messages.append([message(row.id, 1)], [Sums(messages=1)])
        assert [one.seq for one in await unit.messages.between(row.id, 1, 9)] == [1]
        await unit.events.add_many(row.id, [("message.created", {"seq": 1})], START)
        assert [one.number for one in await unit.events.after(row.id, 0, limit=9)] == [1]
        async with begin(tenant) as other:
            assert await other.messages.last(row.id) is None, "others see nothing before the commit"
        await unit.commit()
    async with begin(tenant) as unit:
        assert [one.seq for one in await unit.messages.between(row.id, 1, 9)] == [1]


async def test_what_waits_without_a_commit_is_never_written(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        await unit.conversations.lock(row.id)
        await unit.messages.append([message(row.id, 1)], [Sums(messages=1)])
    async with begin(tenant) as unit:
        assert await unit.messages.last(row.id) is None


@pytest.mark.parametrize("count", [1, 4, 5, 60])
async def test_however_many_there_are_all_are_written(begin: UnitOfWorkFactory, tenant: UUID, count: int) -> None:
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        for first in (1, count + 1):
            seqs = range(first, first + count)
            await unit.messages.append([message(row.id, seq) for seq in seqs], [Sums(messages=seq) for seq in seqs])
        await unit.conversations.update(row.id, last_seq=2 * count)
        await unit.commit()
    async with begin(tenant) as unit:
        said = await unit.messages.between(row.id, 1, 2 * count)
        assert [one.content for one in said] == [f"message {seq}" for seq in range(1, 2 * count + 1)]
        assert (await unit.conversations.get(row.id)).last_seq == 2 * count


async def test_a_commit_that_the_database_refuses_writes_nothing_and_leaves_a_sound_connection(
    narrow: AsyncEngine, tenant: UUID
) -> None:
    begin = unit_of_work_factory(narrow)
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        await unit.events.add_many(row.id, [("message.created", {"seq": 1})], START)
        await unit.commit()
    for _ in range(2):
        async with begin(tenant) as unit:
            known = await unit.conversations.get(row.id)
            assert await unit.idempotency.claim(idempotent("k")) is None
            taken = replace(known, last_event=0)
            await unit.events.add_next(taken, [("message.created", {"seq": 2})], START)
            await unit.idempotency.update("k", ref={}, status=201)
            with pytest.raises(ConflictError):
                await unit.commit()
    async with begin(tenant) as unit:
        assert await unit.idempotency.get("k") is None
        assert len(await unit.events.after(row.id, 0, limit=9)) == 1


async def test_a_claim_that_the_database_refuses_leaves_a_sound_connection(narrow: AsyncEngine) -> None:
    begin = unit_of_work_factory(narrow)
    with pytest.raises(NotFoundError):
        async with begin(uuid4()) as unit:
            await unit.idempotency.claim(idempotent("k"))
    async with begin(None) as unit:
        assert await unit.keys.any() in {True, False}


@pytest.mark.parametrize("key", HOSTILE)
async def test_a_key_is_only_ever_a_value(begin: UnitOfWorkFactory, tenant: UUID, key: str) -> None:
    """The key is written into the text that begins a transaction, and into the one that ends it."""
    record: IdempotencyRecord = idempotent(key, fingerprint=key, created_at=START)
    async with begin(tenant) as unit:
        assert await unit.idempotency.claim(record) is None
        await unit.idempotency.update(key, ref={"said": key}, status=201)
        await unit.commit()
    async with begin(tenant) as unit:
        again = await unit.idempotency.claim(record)
    assert again is not None
    assert (again.key, again.fingerprint, again.created_at) == (key, key, START)
    assert (again.ref, again.status) == ({"said": key}, 201)


async def test_who_goes_on_after_a_failure_commits_nothing_and_is_told(narrow: AsyncEngine, tenant: UUID) -> None:
    begin = unit_of_work_factory(narrow)
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        await unit.conversations.update(row.id, title="new")
        await unit.messages.append([message(uuid4(), 1)], [Sums(messages=1)])
        with pytest.raises(NotFoundError):
            await unit.messages.last(row.id)
        with pytest.raises(asyncpg.InFailedSQLTransactionError):
            await unit.commit()
        assert unit.committed_events == ()
    async with begin(tenant) as unit:
        assert (await unit.conversations.get(row.id)).title is None


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("said", "ending"), [*((said, "COMMIT;") for said in range(1, 5)), (4, "SELECT pg_sleep(0.1); COMMIT;")]
)
async def test_whenever_it_is_cancelled_all_is_written_or_nothing(
    said: int, ending: str, narrow: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller leaves after this many messages to the server, at different moments; the commit may come later."""
    begin, execute = unit_of_work_factory(narrow), asyncpg.Connection.execute

    async def end_late(self: asyncpg.Connection, query: str, *args: Any, **named: Any) -> Any:
        return await execute(self, query.replace(";COMMIT;", f";{ending}"), *args, **named)

    monkeypatch.setattr(asyncpg.Connection, "execute", end_late)
    known, is_said = await stored(begin, tenant), asyncio.Event()
    texts: list[str] = []
    cut_short: list[bool] = []

    async def write(key: str, seq: int) -> None:
        async with begin(tenant) as unit:
            assert await unit.idempotency.claim(idempotent(key)) is None
            held = await unit.conversations.lock(known.id)
            await unit.messages.append([message(known.id, seq)], [Sums(messages=seq)])
            await unit.conversations.update_locked(held, last_seq=seq, last_event=held.last_event + 1)
            await unit.events.add_next(held, [("message.created", {"seq": seq})], START)
            await unit.idempotency.update(key, ref={"seq": seq}, status=201)
            await unit.commit()

    def note(_connection: object, _cursor: object, text: str, *_: object) -> None:
        texts.append(text)
        if len(texts) == said:
            is_said.set()

    for pauses in (0, 1, 2, 3, 5, 9, 20, 50, 200):
        before, key = await written(begin, tenant, known.id), f"key {pauses}"
        texts.clear()
        is_said.clear()
        event.listen(narrow.sync_engine, "before_cursor_execute", note)
        task = asyncio.create_task(write(key, before[0] + 1))
        task.add_done_callback(lambda _: is_said.set())  # a task that fails before is reported, not waited for
        await is_said.wait()
        assert len(texts) >= said, task
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        event.remove(narrow.sync_engine, "before_cursor_execute", note)
        after = await written(begin, tenant, known.id)
        assert after in {before, (before[0] + 1,) * 3}, pauses
        async with begin(tenant) as unit:
            assert (await unit.idempotency.get(key) is not None) is (after != before)
        assert task.cancelled() or after != before, "what is acknowledged is written"
        cut_short.append(task.cancelled())
    assert cut_short[0], "some were cancelled"
    async with begin(uuid4()) as unit:
        assert not await unit.conversations.is_there(known.id), "no one else's scope is left in force"


async def written(begin: UnitOfWorkFactory, tenant: UUID, conversation_id: UUID) -> tuple[int, int, int]:
    """The numbers of messages, in all and as the conversation counts them, and of events, once no commit is running."""
    async with begin(tenant) as unit:
        row = await unit.conversations.lock(conversation_id)
        messages = await unit.messages.between(conversation_id, 1, 1_000)
        events = await unit.events.after(conversation_id, 0, limit=1_000)
    assert [one.number for one in events] == list(range(1, row.last_event + 1))
    return len(messages), row.last_seq, len(events)


async def test_of_two_changes_of_one_row_the_last_counts(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """In a single statement Postgres would make only one of the changes, and does not promise which."""
    row = await stored(begin, tenant)
    made = anchor(row.id, 1)
    async with begin(tenant) as unit:
        await unit.anchors.add([made])
        for status in FINAL:
            steps: list[AnchorStatus] = ["active", status]
            await unit.anchors.change(row.id, [Transition(anchor_id=made.id, status=one) for one in steps])
            await unit.conversations.update(row.id, title=status)
            assert (await unit.anchors.get(row.id, made.id)).status == status
        await unit.commit()


@pytest.mark.parametrize("last", ["ROLLBACK;", "COMMIT;"])
async def test_a_connection_whose_last_word_was_not_answered_is_thrown_away(
    last: str, narrow: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is in a transaction of that tenant, and nobody else could begin one on it."""
    begin, execute = unit_of_work_factory(narrow), TenantConnection.execute
    row = await stored(begin, tenant)

    async def silent(self: TenantConnection, query: str, *args: Any, **named: Any) -> str:
        if query == last:
            raise TimeoutError
        return await execute(self, query, *args, **named)

    with monkeypatch.context() as away:
        away.setattr(TenantConnection, "execute", silent)
        with pytest.raises(DependencyUnavailableError) if last == "COMMIT;" else nullcontext():
            async with begin(tenant) as unit:
                await unit.conversations.update(row.id, title="new")
                if last == "COMMIT;":
                    await unit.commit()
    async with begin(tenant) as unit:
        assert (await unit.conversations.get(row.id)).title is None
    async with begin(uuid4()) as unit:
        assert not await unit.conversations.is_there(row.id)
