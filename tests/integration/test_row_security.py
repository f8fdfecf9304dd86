"""The second protection: Postgres itself keeps tenants apart, also if the ORM's condition is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from asyncpg import PostgresError
from sqlalchemy import event, insert, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine
from structlog.testing import capture_logs

from app.devserver import Endpoints
from app.storage import tenancy
from app.storage.archive import BackupError
from app.storage.backup import back_up
from app.storage.database import NO_ROLE, is_protected, make_engine
from app.storage.migrations import run_migrations
from app.storage.row_security import DEFAULT_ROLE, SETTING
from app.storage.scoped_session import TenantSession
from app.storage.tables import EventRow, TenantScoped
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from tests.integration.rows import START, connection_of, make_tenant, stored
from tests.integration.test_tenancy import (
    ALL,
    CALLS,
    CONVERSATION,
    NoCriteria,
    check_a_stranger,
    dump,
    dumps,
    furnish,
    outcome,
)
from tests.servers import execute_sql, with_database, with_role, with_user

COUNT: Final = text("SELECT count(*) FROM conversations")
RIGHTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")


@pytest.fixture
def without_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the code that adds the tenant to what is read, changed or deleted."""
    monkeypatch.setattr(tenancy, "criteria", NoCriteria)


@pytest.mark.long
@pytest.mark.usefixtures("without_condition")
async def test_without_the_condition_a_stranger_finds_and_changes_nothing(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    await check_a_stranger(begin, engine)


@pytest.mark.long
@pytest.mark.usefixtures("without_condition")
async def test_without_the_condition_a_twin_acts_on_its_own_rows_only(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    mine, theirs = [await furnish(begin, owner) for owner in ("a", "b")]
    (before,) = await dumps(engine, theirs)
    for name, (call, _) in CALLS.items():
        async with UnitOfWork(engine, mine) as unit:
            answer = await call(unit)
            connection = await connection_of(engine, unit.session)
            await connection.execute(text("SET LOCAL ROLE NONE"))
            seen = await dump(connection, theirs)
        assert seen == before, name
        assert "'b'" not in repr(answer), name


@pytest.mark.usefixtures("without_condition")
async def test_control_without_the_policy_as_well_the_leak_is_seen(
    begin: UnitOfWorkFactory, engine: AsyncEngine, database_url: str
) -> None:
    """A control: it fails if the tests above could not fail."""
    owner, stranger = await furnish(begin, "a"), await make_tenant(begin, "stranger")
    before = await dumps(engine, owner)
    execute_sql(database_url, "ALTER TABLE conversations DISABLE ROW LEVEL SECURITY")
    try:
        for name in ("conversations.get", "conversations.page"):
            call, expected = CALLS[name]
            assert await outcome(begin, stranger, call) != expected, name
        assert await outcome(begin, stranger, CALLS["messages.between"][0]) == [], "that table has its policy still"
        await outcome(begin, stranger, CALLS["conversations.update"][0])
    finally:
        execute_sql(database_url, "ALTER TABLE conversations ENABLE ROW LEVEL SECURITY")
    assert await dumps(engine, owner) != before


async def test_a_row_of_another_tenant_is_not_taken(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    owner, stranger = await furnish(begin, "a"), await make_tenant(begin, "stranger")
    session = TenantSession(engine, None)  # the system scope, in which our code adds no tenant …
    connection = await connection_of(engine, session)
    await connection.execute(text(f"SET LOCAL {SETTING} = '{stranger}'"))  # … and Postgres reads for the stranger
    row = {"conversation_id": CONVERSATION, "number": 9, "type": "stolen", "data": {}, "occurred_at": START}
    with pytest.raises(DBAPIError, match="row-level security"):
        await session.execute(insert(EventRow).values(tenant_id=owner, **row))
    await session.close()


async def test_every_table_and_view_of_a_tenant_is_protected(engine: AsyncEngine) -> None:
    """The test fails for a table that is added without ``protect(table)`` in its migration."""
    async with engine.connect() as connection:
        named = await connection.execute(
            text("SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid WHERE c.relrowsecurity")
        )
        with_policy = set(named.scalars())
        viewed = await connection.execute(text("SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'"))
        await connection.execute(text(f"SET LOCAL ROLE {DEFAULT_ROLE}"))
        assert with_policy == set(TenantScoped.metadata.tables)
        assert all(SETTING in definition for _, definition in viewed)
        for table in with_policy:
            statement = text(f"SELECT {', '.join(f'has_table_privilege(:name, {right!r})' for right in RIGHTS)}")
            assert tuple((await connection.execute(statement, {"name": table})).one()) == (True,) * 4 + (False,), table


async def test_a_connection_that_no_session_uses_sees_nobody(begin: UnitOfWorkFactory, database_url: str) -> None:
    tenant = await furnish(begin, "a")
    plain = make_engine(database_url, pool_size=1, max_overflow=0)
    for scope, seen in ((tenant, 1), (None, 1), (uuid4(), 0)):
        async with UnitOfWork(plain, scope) as unit:
            found, _ = await unit.conversations.page(ALL, user_id=None)
            assert len(found) == seen
        async with plain.connect() as connection:
            assert (await connection.execute(COUNT)).scalar_one() == 0
            assert (await connection.exec_driver_sql("SELECT current_user::text")).scalar_one() == DEFAULT_ROLE
    await plain.dispose()


async def test_a_beginning_that_fails_leaves_the_connection_to_nobody(
    begin: UnitOfWorkFactory, tenant: UUID, database_url: str
) -> None:
    made = await stored(begin, tenant)
    narrow = make_engine(database_url, pool_size=1, max_overflow=0)
    async with UnitOfWork(narrow, tenant) as unit:
        assert await unit.conversations.get(made.id) == made

    def misspell(connection: Any, _record: object, _proxy: object) -> None:
        connection.driver_connection.role = "nobody_of_that_name"

    event.listen(narrow.sync_engine, "checkout", misspell)
    with pytest.raises(PostgresError, match="nobody_of_that_name"):
        async with UnitOfWork(narrow, tenant) as unit:
            await unit.conversations.get(made.id)
    event.remove(narrow.sync_engine, "checkout", misspell)
    async with UnitOfWork(narrow, tenant) as unit:
        assert await unit.conversations.get(made.id) == made
    await narrow.dispose()


async def test_the_beginning_is_one_message(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    """The whole exchange is BEGIN with role and tenant, the read itself, and ROLLBACK."""
    made = await stored(begin, tenant)
    said: list[str] = []
    async with UnitOfWork(engine, tenant) as unit:
        connection = await connection_of(engine, unit.session)
        driver: Any = (await connection.get_raw_connection()).driver_connection
        driver.add_query_logger(lambda record: said.append(record.query))
        await unit.conversations.get(made.id)
    begun, read, over = said
    assert begun.startswith("BEGIN")
    assert begun.endswith(f"; SET LOCAL ROLE {DEFAULT_ROLE}; SET LOCAL {SETTING} = '{tenant}';")
    assert read.startswith("SELECT")
    assert over == "ROLLBACK;"


class TestRoles:
    """The roles that users may take, on a server whose users are not all superusers."""

    @pytest.mark.long
    @pytest.mark.usefixtures("plain_logs")
    async def test_an_owner_that_may_not_make_the_role_works_and_is_told(self, servers: Endpoints) -> None:
        with owned_database(servers, "poor_owner") as url:
            refused = with_role(url, "never_made")
            run_migrations(refused)
            with capture_logs() as logs:
                assert not await is_protected(refused)
            assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["database.no_row_security"]
            assert await writes_and_reads(refused)

            execute_sql(servers.database_url, "GRANT throughline_app TO poor_owner")
            run_migrations(url)
            with capture_logs() as logs:
                assert await is_protected(url)
            assert logs == []
            assert await writes_and_reads(url)

    async def test_one_that_may_make_roles_makes_it_and_becomes_a_member(self, servers: Endpoints) -> None:
        with owned_database(servers, "rich_owner", "CREATEROLE") as url:
            own = with_role(url, "its_own_app")
            try:
                for _ in range(2):
                    run_migrations(own)
                assert await is_protected(own)
                assert await writes_and_reads(own)
            finally:
                execute_sql(url, "DROP OWNED BY its_own_app")
                execute_sql(url, "DROP ROLE its_own_app")

    async def test_a_user_that_owns_nothing_needs_to_act_as_nobody(self, servers: Endpoints, database_url: str) -> None:
        execute_sql(servers.database_url, f"CREATE ROLE plain_user LOGIN IN ROLE {DEFAULT_ROLE}")
        try:
            for role in (DEFAULT_ROLE, NO_ROLE):
                url = with_role(with_user(database_url, "plain_user"), role)
                assert await is_protected(url)
                assert await writes_and_reads(url)
            with pytest.raises(BackupError, match="owner"):
                await back_up(with_user(database_url, "plain_user"), BytesIO(), program="x", progress=lambda *_: None)
        finally:
            execute_sql(servers.database_url, "DROP ROLE plain_user")

    @pytest.mark.parametrize("name", ["Robert'); --", "Name", "a" * 64])
    def test_a_name_that_is_none_is_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="role must be a name"):
            make_engine(with_role("postgresql://x@/y", name))


@contextlib.contextmanager
def owned_database(servers: Endpoints, owner: str, *rights: str) -> Iterator[str]:
    """A database of a user who is not a superuser."""
    execute_sql(servers.database_url, f"CREATE ROLE {owner} LOGIN {' '.join(rights)}")
    execute_sql(servers.database_url, f"CREATE DATABASE {owner} OWNER {owner}")
    try:
        yield with_user(with_database(servers.database_url, owner), owner)
    finally:
        execute_sql(servers.database_url, f"DROP DATABASE {owner} WITH (FORCE)")
        execute_sql(servers.database_url, f"DROP ROLE {owner}")


async def writes_and_reads(url: str) -> bool:
    """Whether a service with this address can write and read."""
    made = make_engine(url, pool_size=1)
    begin = unit_of_work_factory(made)
    tenant = await make_tenant(begin, f"tenant {uuid4()}")
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        found = await unit.conversations.get(row.id)
    await made.dispose()
    return found == row
