"""Recent spending is counted without reading what was spent long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage.unit_of_work import UnitOfWorkFactory
from tests.integration.rows import compaction, stored

pytestmark = pytest.mark.own_database  # its plans depend on the statistics of its own rows

COPIES = text(
    "INSERT INTO compactions SELECT (jsonb_populate_record(c, jsonb_build_object("
    "'id', gen_random_uuid(), 'finished_at', now() - interval '1 day'))).* FROM compactions c, generate_series(1, 4000)"
    " WHERE c.id = :id"
)


@pytest.mark.long
async def test_an_index_finds_the_calls_of_the_last_hour(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    row = await stored(begin, tenant)
    async with begin(tenant) as uow:
        claimed = await uow.compactions.claim(compaction(row))
        assert claimed is not None
        await uow.compactions.update_locked(claimed.id, status="failed", finished_at=datetime.now(UTC))
        await uow.commit()
    asked: list[tuple[str, Any]] = []
    async with engine.begin() as connection:
        await connection.execute(COPIES, {"id": claimed.id})
        await connection.execute(text("ANALYZE compactions"))

    def keep(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        asked.append((statement, parameters))

    event.listen(engine.sync_engine, "before_cursor_execute", keep)
    try:
        async with begin(tenant) as uow:
            assert await uow.spending.metered_calls(timedelta(hours=1), row.id) == (0, 0)
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", keep)
    (statement, parameters) = next(one for one in asked if "jsonb_path_query_array" in one[0])
    async with engine.connect() as connection:
        plan = "\n".join((await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)).scalars())
        unbounded = statement.replace("compactions.finished_at >", "coalesce(compactions.finished_at, now()) >")
        control = "\n".join((await connection.exec_driver_sql(f"EXPLAIN {unbounded}", parameters)).scalars())

    by_time = ("ix_compactions_finished", "ix_compactions_ended")
    assert any(index in plan for index in by_time), plan
    assert not any(index in control for index in by_time), control
