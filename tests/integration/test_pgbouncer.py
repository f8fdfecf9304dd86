"""The service behind a pooler, PgBouncer in transaction mode, which gives each transaction any free server."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import col

from app.core.model.conversation import Conversation, Sums
from app.core.model.errors import DependencyUnavailableError, NotFoundError
from app.core.model.records import Work
from app.devserver.privileges import choose_identity
from app.storage import database, tenancy
from app.storage.database import make_engine, row_security
from app.storage.migrations import run_migrations
from app.storage.tables import ConversationRow
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from tests.acceptance.service import running_service, until
from tests.integration.rows import START, append, conversation, idempotent, make_tenant, message, stored
from tests.integration.test_tenancy import NoCriteria
from tests.servers import unused_port

pytestmark = [pytest.mark.long, pytest.mark.own_database]

SERVERS: Final = 3
"""The pooler's connections to Postgres: fewer than its clients, so that they really share them."""
SHOWN: Final = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout", "jit", "TimeZone")


def program() -> Path:
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("needs the Debian package pgbouncer")
    return Path(found)


@pytest.fixture
def pooled_url(database_url: str, short_folder: Path) -> Iterator[str]:
    """The database behind a pooler."""
    pooler, address, port = program(), make_url(database_url), unused_port()
    if "host" not in address.query:
        pytest.skip("left out: TEST_DATABASE_URL names a server of its own")
    settings = short_folder / "pgbouncer.ini"
    settings.write_text(
        f"""[databases]
{address.database} = host={address.query["host"]} port=5432 user={address.username} pool_size={SERVERS}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
logfile = {short_folder}/pgbouncer.log
"""
    )
    short_folder.chmod(0o777)
    settings.chmod(0o644)
    process = subprocess.Popen(
        [*choose_identity(pooler).prefix, str(pooler), "-q", str(settings)], stderr=subprocess.DEVNULL
    )
    url = f"postgresql://{address.username}@127.0.0.1:{port}/{address.database}?sslmode=disable&pgbouncer=true"
    try:
        until(lambda: asyncio.run(answers(url)), what="the pooler")
        yield url
    finally:
        process.terminate()
        process.wait(10)


async def answers(url: str) -> bool:
    engine = make_engine(url, pool_size=1)
    try:
        return await database.ping(engine) == "ok"
    finally:
        await engine.dispose()


@pytest.fixture
async def pooled(pooled_url: str) -> AsyncIterator[AsyncEngine]:
    made = make_engine(pooled_url, pool_size=20, max_overflow=0)
    yield made
    await made.dispose()


async def test_tenants_stay_apart_while_they_share_servers(
    pooled: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ORM's condition is removed, so that only the settings of each transaction keep the tenants apart."""
    begin = unit_of_work_factory(pooled)
    assert await row_security(pooled)
    tenants = [await make_tenant(begin, name) for name in "abcdefgh"]
    for tenant in tenants:
        await furnish(begin, tenant)
    monkeypatch.setattr(tenancy, "criteria", NoCriteria)
    servers: set[int] = set()

    async def look(tenant: UUID | None, seen: set[UUID]) -> None:
        for _ in range(25):
            async with UnitOfWork(pooled, tenant) as unit:
                rows = await unit.session.rows(
                    select(col(ConversationRow.tenant_id), func.pg_backend_pid()).select_from(ConversationRow)
                )
                assert {row[0] for row in rows} == seen
                servers.update(row[1] for row in rows)

    await asyncio.gather(*(look(tenant, {tenant}) for tenant in tenants), look(None, set(tenants)))
    assert 1 < len(servers) <= SERVERS


async def furnish(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = conversation(tenant)
    async with begin(tenant) as unit:
        await unit.conversations.add(row)
        await append(unit, [message(row.id, number, content=f"said {number}") for number in range(1, 4)])
        await unit.commit()


async def test_writes_that_go_out_with_beginnings_and_ends_stay_apart_too(
    pooled: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of several statements, and single statements: here too the ORM's condition is removed."""
    begin = unit_of_work_factory(pooled)
    monkeypatch.setattr(tenancy, "criteria", NoCriteria)
    rows = [await stored(begin, await make_tenant(begin, name)) for name in "abcdef"]

    async def write(row: Conversation, stranger: Conversation) -> None:
        for seq in range(1, 16):
            async with begin(row.tenant_id) as unit:
                assert await unit.idempotency.claim(idempotent(f"key {seq}")) is None
                held = await unit.conversations.lock(row.id)
                await unit.messages.append([message(row.id, seq)], [Sums(messages=seq)])
                await unit.conversations.update_locked(held, last_seq=seq, last_event=held.last_event + 1)
                await unit.events.add_next(held, [("message.created", {"seq": seq})], START)
                await unit.idempotency.update(f"key {seq}", ref={"seq": seq}, status=201)
                await unit.commit()
            async with begin(row.tenant_id) as unit:
                with pytest.raises(NotFoundError):
                    await unit.conversations.update(stranger.id, title="stolen")
            async with begin(row.tenant_id) as unit:
                assert await unit.works.begin(work(row), seconds=60) is None

    await asyncio.gather(*(write(row, stranger) for row, stranger in zip(rows, [*rows[1:], rows[0]], strict=True)))
    for row in rows:
        async with begin(row.tenant_id) as unit:
            assert [one.seq for one in await unit.messages.between(row.id, 1, 99)] == list(range(1, 16))
            assert [one.number for one in await unit.events.after(row.id, 0, limit=99)] == list(range(1, 16))
            assert (await unit.conversations.get(row.id)).title is None
            for seq in range(1, 16):
                found = await unit.idempotency.get(f"key {seq}")
                assert found is not None
                assert found.ref == {"seq": seq}


def work(row: Conversation) -> Work:
    return Work(id=uuid4(), tenant_id=row.tenant_id, conversation_id=row.id, process=uuid4(), kind="append")


async def test_the_limits_to_time_hold_there_too(pooled: AsyncEngine) -> None:
    for _ in range(SERVERS * 2):
        async with pooled.connect() as connection:
            found = [(await connection.exec_driver_sql(f"SHOW {name}")).scalar_one() for name in SHOWN]
        assert found == ["30s", "30s", "10s", "off", "UTC"]


async def test_a_statement_that_takes_too_long_is_ended(pooled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "TIMEOUTS", {**database.TIMEOUTS, "statement_timeout": "200ms"})
    hasty = make_engine(pooled_url)
    begin = unit_of_work_factory(hasty)
    await furnish(begin, await make_tenant(begin, "hasty"))
    began = time.monotonic()
    async with UnitOfWork(hasty, None) as unit:
        with pytest.raises(DependencyUnavailableError):
            await unit.session.execute(select(func.pg_sleep(20)).select_from(ConversationRow))
    assert time.monotonic() - began < 10
    await hasty.dispose()


async def test_migrations_go_through_it(pooled_url: str, pooled: AsyncEngine) -> None:
    await asyncio.to_thread(run_migrations, pooled_url)
    assert await row_security(pooled)


def test_the_service_runs_behind_it(pooled_url: str, redis_url: str, short_folder: Path) -> None:
    with (
        running_service(short_folder, database_url=pooled_url, redis_url=redis_url) as service,
        service.client() as client,
    ):
        assert client.get("/readyz").json()["row_security"] == "on"
        made = client.post("/conversations", json={}).raise_for_status().json()
        for number in range(12):
            body = {"content": f"Remember that the number of shelf {number} is {number * 37}."}
            client.post(f"/conversations/{made['id']}/chat", json=body).raise_for_status()
        done = client.post(f"/conversations/{made['id']}/compact", json={}).raise_for_status().json()
        assert done["status"] in {"applied", "skipped"}
        found = client.get(f"/conversations/{made['id']}/messages?limit=100").raise_for_status().json()
        assert len(found["data"]) == 24
