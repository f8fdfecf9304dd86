"""A campaign of faults is at rest when also no sweeper will begin anything while the checker reads."""

from __future__ import annotations

import asyncio
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage.unit_of_work import UnitOfWorkFactory
from bench.chaos.rows import AT_REST_SECONDS, busy_connections, open_work
from tests.acceptance.chaos import Books
from tests.integration.services import Service

LATER = 60


async def test_a_pause_after_a_failure_is_no_rest_when_it_ends_soon(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, database_url: str
) -> None:
    service, books = Service(begin, tenant), Books(database_url)
    before = open_work(books)
    conversation_id = await service.conversation()
    await service.fill(conversation_id, 2_500)
    (row,) = await service.compactions(conversation_id)
    while_queued = open_work(books)
    async with begin(None) as uow:
        await uow.compactions.update_locked(row.id, status="failed", reason="provider_error")
        await uow.commit()

    assert while_queued == before + 2, "the queued row, and the conversation at its trigger"
    for seconds, more in [(AT_REST_SECONDS - 10, 1), (AT_REST_SECONDS + LATER, 0)]:
        await _pause(engine, conversation_id, seconds)
        assert open_work(books) == before + more


async def test_who_waits_for_whom_is_told(engine: AsyncEngine, database_url: str) -> None:
    books = Books(database_url)
    assert not any("LOCK TABLE" in line for line in busy_connections(books))
    async with engine.begin() as holder:
        await holder.execute(text("LOCK TABLE compactions"))
        holder_pid = (await holder.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        async with asyncio.TaskGroup() as group:
            group.create_task(_wait_for_compactions(engine))
            async with asyncio.timeout(10):
                while not any(f"behind=[{holder_pid}]" in line for line in busy_connections(books)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            await holder.rollback()


async def _wait_for_compactions(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("LOCK TABLE compactions"))


async def _pause(engine: AsyncEngine, conversation_id: UUID, seconds: int) -> None:
    statement = "UPDATE conversations SET quiet_until = now() + make_interval(secs => :seconds) WHERE id = :id"
    async with engine.begin() as connection:
        await connection.execute(text(statement), {"seconds": seconds, "id": conversation_id})
