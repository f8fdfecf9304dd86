"""The engine and the unit of work when something goes wrong: servers away, slow or cut off, and cancelled calls."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from unittest import mock
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import Enum, TextClause, bindparam, delete, event, func, select, text, type_coerce, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel import col
from structlog.testing import capture_logs

from app.core.model.errors import DatabaseReadOnlyError, DependencyUnavailableError, NotFoundError
from app.core.model.records import Work
from app.storage import connections, database, database_errors, tenancy
from app.storage.connections import TenantConnection
from app.storage.database import database_address, make_engine, make_patient_engine, ping
from app.storage.database_errors import translated
from app.storage.repositories import message_search
from app.storage.scoped_session import TenantSession
from app.storage.tables import ConversationRow, TenantRow
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from tests.cases import guarded
from tests.integration.rows import START, conversation, stored
from tests.servers import execute_sql, unused_port, with_role

pytestmark = pytest.mark.own_database  # connections are cut and kept busy on purpose

SLOW = select(func.pg_sleep(30)).select_from(ConversationRow)


def busy(engine: AsyncEngine) -> int:
    """The number of connections that are in use."""
    return engine.sync_engine.pool.checkedout()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine with one connection only, so that one that is not given back is missed at once."""
    made = make_engine(database_url, pool_size=1, max_overflow=0)
    yield made
    await made.dispose()


async def test_what_is_not_committed_is_gone(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    made = conversation(tenant)
    async with begin(tenant) as unit:
        await unit.conversations.add(made)
    with contextlib.suppress(ZeroDivisionError):
        async with begin(tenant) as unit:
            await unit.conversations.add(made)
            raise ZeroDivisionError
    async with begin(tenant) as unit:
        with pytest.raises(NotFoundError):
            await unit.conversations.get(made.id)


async def test_a_commit_is_seen_by_the_others_and_a_read_is_never_stale(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    made = await stored(begin, tenant)
    async with begin(tenant) as reader, begin(tenant) as writer:
        assert (await reader.conversations.get(made.id)).title is None
        await writer.conversations.update(made.id, title="new")
        assert (await reader.conversations.get(made.id)).title is None
        await writer.commit()
        assert (await reader.conversations.get(made.id)).title == "new"
        assert (await reader.conversations.lock(made.id)).title == "new"


async def test_a_cancelled_statement_gives_the_connection_back(narrow: AsyncEngine, tenant: UUID) -> None:
    begin = unit_of_work_factory(narrow)
    made = await stored(begin, tenant)
    inside = asyncio.Event()

    async def work() -> None:
        async with UnitOfWork(narrow, tenant) as unit:
            await unit.conversations.update(made.id, title="never")
            inside.set()
            await unit.session.execute(SLOW)

    task = asyncio.create_task(work())
    await inside.wait()
    await asyncio.sleep(0.05)
    assert busy(narrow) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5), begin(tenant) as unit:
        assert (await unit.conversations.get(made.id)).title is None
    assert busy(narrow) == 0


async def test_cancelled_again_while_leaving_it_still_gives_the_connection_back(
    narrow: AsyncEngine, tenant: UUID
) -> None:
    begin = unit_of_work_factory(narrow)
    made = await stored(begin, tenant)
    inside = asyncio.Event()
    connected: list[object] = []
    event.listen(narrow.sync_engine, "connect", lambda *made: connected.append(made))

    async def work() -> None:
        async with begin(tenant) as unit:
            await unit.conversations.update(made.id, title="never")
            inside.set()
            await asyncio.Event().wait()

    for pauses in range(6):
        inside.clear()
        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5), begin(tenant) as unit:
            assert (await unit.conversations.lock(made.id)).title is None
    assert busy(narrow) == 0
    assert connected == [], "it was rolled back and used again, not thrown away"


async def test_a_server_that_is_away(tenant: UUID) -> None:
    away = make_engine(f"postgresql://nobody@127.0.0.1:{unused_port()}/none")
    with pytest.raises(DependencyUnavailableError) as error:
        async with unit_of_work_factory(away)(tenant) as unit:
            await unit.conversations.get(uuid4())
    assert "nobody" not in error.value.detail
    assert error.value.retryable
    assert await ping(away) == "away"
    missing = make_engine("postgresql://nobody@/none?host=/nowhere/at/all")
    assert await ping(missing) == "away"
    await away.dispose()
    await missing.dispose()


async def test_the_isolation_of_the_server_is_not_ours(database_url: str) -> None:
    """In a stricter isolation a migration would wait for its own snapshot for ever."""
    shown = text("SELECT current_setting('transaction_isolation')")
    name = database_address(database_url).database
    execute_sql(database_url, f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    plain = create_async_engine(database_address(database_url))
    for engine, isolation in (
        (plain, "serializable"),  # the control
        (make_engine(database_url), "read committed"),
        (make_patient_engine(database_url), "read committed"),
    ):
        async with engine.connect() as connection:
            assert (await connection.execute(shown)).scalar_one() == isolation
        await engine.dispose()


async def test_a_server_that_accepts_and_never_answers(tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CONNECT_SECONDS", 0.8)
    monkeypatch.setattr(database, "PING_SECONDS", 0.3)
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: held.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    silent = make_engine(f"postgresql://nobody@127.0.0.1:{port}/none?ssl=disable")
    async with asyncio.timeout(30):  # it never answers
        assert await ping(silent) == "away"
        with pytest.raises(DependencyUnavailableError):
            async with unit_of_work_factory(silent)(tenant) as unit:
                await unit.conversations.get(uuid4())
    for writer in held:
        writer.close()
    server.close()
    await silent.dispose()


async def test_a_database_that_does_not_exist(database_url: str, tenant: UUID) -> None:
    nowhere = make_engine(database_url.replace("/test_", "/no_such_"))
    with pytest.raises(DependencyUnavailableError):
        async with unit_of_work_factory(nowhere)(tenant) as unit:
            await unit.conversations.get(uuid4())
    await nowhere.dispose()


def failing(state: str) -> TextClause:
    return text(f"DO $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '{state}'; END $$")


@pytest.mark.daily(1)
@pytest.mark.parametrize("state", ["XX000", "53100", "58030"])
async def test_a_server_that_is_ill_is_unavailable_and_the_log_says_so(state: str, narrow: AsyncEngine) -> None:
    with capture_logs() as logs, pytest.raises(DependencyUnavailableError) as error, translated():
        async with narrow.connect() as connection:
            await connection.execute(failing(state))
    assert error.value.retryable
    assert "secret" not in error.value.detail
    assert ("disk" in error.value.detail) == (state == "53100")
    assert logs == [{"event": "database.ill", "log_level": "error", "sqlstate": state}]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("28P01", "InvalidPasswordError"),
        pytest.param("55P03", "LockNotAvailableError", marks=pytest.mark.long),
        pytest.param("57014", "QueryCanceledError", marks=pytest.mark.long),
    ],
)
async def test_the_log_says_why_the_database_is_unavailable(state: str, error: str, narrow: AsyncEngine) -> None:
    with capture_logs() as logs, pytest.raises(DependencyUnavailableError), translated():
        async with narrow.connect() as connection:
            await connection.execute(failing(state))
    assert logs == [{"event": "database.unavailable", "log_level": "warning", "sqlstate": state, "error": error}]


async def test_the_log_says_that_nothing_listens(tenant: UUID) -> None:
    away = make_engine(f"postgresql://nobody@127.0.0.1:{unused_port()}/nowhere")
    with capture_logs() as logs, pytest.raises(DependencyUnavailableError):
        async with unit_of_work_factory(away)(tenant) as unit:
            await unit.conversations.get(uuid4())
    await away.dispose()
    refused = {"event": "database.unavailable", "log_level": "warning", "sqlstate": None}
    assert logs == [refused | {"error": "ConnectionRefusedError"}]


LOST = asyncpg.InternalClientError("cannot switch to state 15; protocol is in the failed state")


async def test_a_new_connection_that_breaks_at_once_is_a_domain_error(tenant: UUID, narrow: AsyncEngine) -> None:
    with mock.patch.object(connections, "role_status", side_effect=LOST), pytest.raises(DependencyUnavailableError):
        async with unit_of_work_factory(narrow)(tenant) as unit:
            await unit.conversations.is_there(uuid4())
    assert busy(narrow) == 0
    async with unit_of_work_factory(narrow)(tenant) as unit:
        assert not await unit.conversations.is_there(uuid4())


async def test_a_connection_whose_driver_lost_the_thread_is_thrown_away(tenant: UUID, narrow: AsyncEngine) -> None:
    async with unit_of_work_factory(narrow)(tenant) as unit:
        await unit.conversations.is_there(uuid4())
    made: list[object] = []
    event.listen(narrow.sync_engine, "connect", lambda *_: made.append(None))
    with mock.patch.object(TenantConnection, "prepare", side_effect=LOST), pytest.raises(DependencyUnavailableError):
        async with unit_of_work_factory(narrow)(tenant) as unit:
            await unit.conversations.is_being_removed(uuid4())
    assert made == []
    async with unit_of_work_factory(narrow)(tenant) as unit:
        assert not await unit.conversations.is_there(uuid4())
    assert len(made) == 1


async def _lock(unit: UnitOfWork, made: UUID) -> None:
    await unit.conversations.lock(made)


async def _write_alone(unit: UnitOfWork, made: UUID) -> None:
    work = Work(id=made, tenant_id=unit.session.tenant_id or made, conversation_id=made, process=made, kind="append")
    await unit.works.begin(work, seconds=9)


async def _write_by_the_orm(unit: UnitOfWork, made: UUID) -> None:
    await unit.session.execute(delete(ConversationRow).where(col(ConversationRow.id) == made))


@pytest.mark.daily(2)
@pytest.mark.parametrize("write", [_lock, _write_alone, _write_by_the_orm])
@pytest.mark.parametrize("is_fresh", [False, True], ids=["old", "fresh"])
async def test_a_connection_that_takes_no_writes_is_unavailable_and_made_anew_unless_it_just_was(
    write: Callable[[UnitOfWork, UUID], Awaitable[None]],
    begin: UnitOfWorkFactory,
    tenant: UUID,
    narrow: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
    is_fresh: bool,  # noqa: FBT001 - pytest passes it by name
) -> None:
    """This is the state after a failover: the server of an open connection has become a replica."""
    if not is_fresh:
        monkeypatch.setattr(connections, "FRESH_SECONDS", 0)
    made = await stored(begin, tenant)
    async with narrow.connect() as connection:
        await connection.execute(text("SET default_transaction_read_only = on"))
        await connection.commit()
    assert await ping(narrow) == "read_only"
    async with unit_of_work_factory(narrow)(tenant) as unit:
        assert await unit.conversations.get(made.id) == made, "reads go on"
    with capture_logs() as logs, pytest.raises(DatabaseReadOnlyError) as error:
        async with unit_of_work_factory(narrow)(tenant) as unit:
            await write(unit, made.id)
    assert error.value.retryable
    assert {"event": "database.ill", "log_level": "error", "sqlstate": "25006"} in logs
    assert await ping(narrow) == ("read_only" if is_fresh else "ok"), "by the same connection, or by another one"


async def test_control_a_statement_that_is_wrong_is_a_defect_of_ours(narrow: AsyncEngine) -> None:
    with pytest.raises(DBAPIError), translated():
        async with narrow.connect() as connection:
            await connection.execute(failing("22012"))


OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def kill_others(engine: AsyncEngine) -> None:
    """Cut every other connection, and return when the server has ended them all."""
    async with engine.connect() as connection:
        await connection.execute(text(f"SELECT pg_terminate_backend(pid) {OTHERS}"))
        await connection.commit()
    await until_none(engine, OTHERS)


async def until_none(engine: AsyncEngine, rows: str) -> None:
    """Return when the server shows none of these rows; each look is a new transaction, so that it sees the present."""
    async with asyncio.timeout(30), engine.connect() as connection:
        while (await connection.execute(text(f"SELECT count(*) {rows}"))).scalar_one():
            await connection.rollback()
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_idle_connections_that_the_server_cut_are_never_noticed(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, narrow: AsyncEngine
) -> None:
    """Postgres is restarted between two requests, and the next request just works."""
    made = await stored(begin, tenant)
    assert await ping(narrow) == "ok"
    for _ in range(3):
        await kill_others(engine)
        await asyncio.sleep(0.1)
        async with unit_of_work_factory(narrow)(tenant) as unit:
            assert await unit.conversations.get(made.id) == made


async def test_a_connection_cut_in_the_middle_is_a_domain_error_and_then_over(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, narrow: AsyncEngine
) -> None:
    made = await stored(begin, tenant)

    async def sleep() -> None:
        async with UnitOfWork(narrow, tenant) as unit:
            await unit.session.execute(SLOW)

    task = asyncio.create_task(sleep())
    await until_none(engine, f"FROM (SELECT count(*) AS n {OTHERS} AND query LIKE '%pg_sleep%') AS asleep WHERE n = 0")
    await kill_others(engine)
    with pytest.raises(DependencyUnavailableError):
        await task
    async with unit_of_work_factory(narrow)(tenant) as unit:
        assert await unit.conversations.get(made.id) == made
    assert busy(narrow) == 0


async def test_a_transaction_cut_before_its_commit(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, narrow: AsyncEngine
) -> None:
    made = await stored(begin, tenant)
    async with unit_of_work_factory(narrow)(tenant) as unit:
        await unit.conversations.update(made.id, title="never")
        await unit.events.add(made.id, "x", {}, START)
        await kill_others(engine)
        await asyncio.sleep(0.1)
        with pytest.raises(DependencyUnavailableError):
            await unit.commit()
    assert unit.committed_events == ()
    assert busy(narrow) == 0
    async with begin(tenant) as unit:
        assert await unit.conversations.get(made.id) == made


@guarded("35-pool")
async def test_a_pool_that_is_exhausted(
    narrow: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Control: if nobody knew this error, it would be a defect (a 500), and no client would try again."""
    if not is_guarded:
        monkeypatch.setattr(database_errors, "PoolTimeoutError", ZeroDivisionError)
    monkeypatch.setattr(narrow.sync_engine.pool, "_timeout", 0.2)
    begin = unit_of_work_factory(narrow)
    made = await stored(begin, tenant)
    async with begin(tenant) as holder:
        await holder.conversations.get(made.id)
        async with begin(tenant) as waiter:
            with pytest.raises(DependencyUnavailableError if is_guarded else PoolTimeoutError):
                await waiter.conversations.get(made.id)
    async with begin(tenant) as unit:
        assert await unit.conversations.get(made.id) == made


async def test_timeouts_of_the_server_are_set(engine: AsyncEngine) -> None:
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "timezone")
    async with engine.connect() as connection:
        shown = [(await connection.exec_driver_sql(f"SHOW {name}")).scalar_one() for name in names]
    assert shown == ["30s", "30s", "10s", "UTC"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
async def test_a_statement_that_takes_too_long_is_a_domain_error(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, limit: str
) -> None:
    made = await stored(begin, tenant)

    def impatient(connection: object, *_rest: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]
        cursor.execute(f"SET {limit} = '100ms'")
        cursor.close()

    await engine.dispose()
    event.listen(engine.sync_engine, "connect", impatient)
    async with begin(tenant) as holder:
        await holder.conversations.lock(made.id)
        async with begin(tenant) as waiter:
            with pytest.raises(DependencyUnavailableError):
                await waiter.conversations.lock(made.id)


async def test_our_own_defects_are_not_dressed_up(engine: AsyncEngine, tenant: UUID) -> None:
    """A value that does not fit its column does not count as an outage."""
    session = TenantSession(engine, tenant)
    with pytest.raises(DBAPIError):
        await session.execute(select(ConversationRow).where(col(ConversationRow.last_seq) == 2**70))
    await session.close()


async def test_a_defect_in_a_later_statement_is_not_dressed_up_either(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    """All statements of a transaction but the first go to the driver itself."""
    made = await stored(begin, tenant)
    wrong: Any = "no number"
    async with begin(tenant) as unit:
        await unit.conversations.get(made.id)
        with pytest.raises(asyncpg.DataError):
            await unit.events.after(made.id, wrong, limit=1)
    assert busy(engine) == 0


async def test_a_row_that_the_server_quotes_comes_into_no_log(database_url: str, tenant: UUID) -> None:
    """The server quotes rows that break a rule where row-level security is not active, as without a role."""
    engine = make_engine(with_role(database_url, "none"))
    wrong = update(TenantRow).values(name="CANARY", created_at=None)
    async with unit_of_work_factory(engine)(tenant) as unit:
        with pytest.raises(DBAPIError) as caught:
            await unit.session.execute(wrong)
    async with engine.connect() as connection:
        with pytest.raises(DBAPIError) as control:
            await connection.execute(wrong)
    await engine.dispose()

    assert "CANARY" in "".join(traceback.format_exception(control.value))
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


async def test_a_connection_that_is_cut_between_two_statements(
    begin: UnitOfWorkFactory, engine: AsyncEngine, narrow: AsyncEngine, tenant: UUID
) -> None:
    made = await stored(begin, tenant)
    async with unit_of_work_factory(narrow)(tenant) as unit:
        await unit.conversations.get(made.id)
        await kill_others(engine)
        with pytest.raises(DependencyUnavailableError):
            await unit.conversations.get(made.id)
    async with unit_of_work_factory(narrow)(tenant) as unit:
        assert await unit.conversations.get(made.id) == made
    assert busy(narrow) == 0


async def test_one_moment_is_seen_by_statements_that_are_built_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    made = await stored(begin, tenant)
    async with begin(tenant) as looking:
        await looking.session.use_snapshot()
        before = await looking.conversations.get(made.id)
        async with begin(tenant) as writing:
            await writing.conversations.update(made.id, title="later")
            await writing.commit()
        assert await looking.conversations.get(made.id) == before


async def test_records_are_given_only_of_columns_that_the_driver_reads(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    made = await stored(begin, tenant)
    async with begin(tenant) as unit:
        assert list(await unit.session.records(message_search._ALL, of=made.id)) == []
        converted = select(type_coerce(col(ConversationRow.title), Enum("a")))
        converted = converted.where(col(ConversationRow.id) == bindparam("of"))
        tenancy.keep_compiled(converted)
        with pytest.raises(ValueError, match="a column"):
            await unit.session.records(converted, of=made.id)


async def test_behind_a_pooler_no_statement_is_prepared_by_name(
    database_url: str, begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    made = await stored(begin, tenant)
    pooled = make_engine(f"{database_url}&pgbouncer=true" if "?" in database_url else f"{database_url}?pgbouncer=true")
    async with unit_of_work_factory(pooled)(tenant) as unit:
        for _ in range(3):
            assert await unit.conversations.get(made.id) == made
    async with pooled.connect() as connection:
        left = await connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements")
        assert left.scalar_one() <= 1  # this statement's own connection
    await pooled.dispose()
