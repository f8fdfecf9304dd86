"""What grows only with time is forgotten, each kind on its own; for every table it is stated what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.retention import Retention
from app.storage.repositories.idempotency import IdempotencyRepository
from app.storage.tables import TenantScoped
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.history import retaining
from app.usecases.history.retaining import RetentionService
from tests.integration.test_tenancy import furnish

MONTH: Final = timedelta(days=30)
ALL: Final = Retention(events=MONTH, turns=MONTH, measures=MONTH, audit=MONTH)

BY_AGE: Final = {
    "idempotency_keys": "created_at",
    "chat_spending": "minute",
    "events": "occurred_at",
    "turns": "finished_at",
    "expansions": "created_at",
    "detail_calls": "called_at",
    "provider_cache_entries": "at",
    "audit": "occurred_at",
    "provider_caches": "last_used_at",
}
"""The tables whose rows the sweepers forget by their age, and the column with the age."""
BOUNDED: Final[Mapping[str, str]] = {
    "conversations": "a client makes and deletes them",
    "messages": "what was said: it goes with its conversation",
    "contents": "with the last message and file that has it",
    "embeddings": "one for each message",
    "files": "a hundred for each conversation",
    "provider_files": "until their end at the provider, two days",
    "state_versions": "what the oldest say is emptied when a new one is written",
    "segments": "by messages, which they tell of",
    "segment_levels": "four for each segment",
    "anchors": "by messages, in which they stand",
    "compactions": "by messages, and by failures, which become rarer",
    "verifications": "one for each version of a state",
    "provider_copies": "one for each reply of a stateful model",
    "provider_cache_members": "one for each conversation and model",
    "works": "while the work runs",
    "crashes": "one for each conversation",
    "erasures": "until nothing is left to be erased",
    "tenants": "an operator makes and deletes them",
    "api_keys": "likewise",
}


def test_every_table_says_what_bounds_it() -> None:
    assert not BY_AGE.keys() & BOUNDED.keys()
    assert BY_AGE.keys() | BOUNDED.keys() == TenantScoped.metadata.tables.keys()


async def counts(engine: AsyncEngine) -> dict[str, int]:
    """The number of rows in each table whose rows are forgotten by their age."""
    async with engine.connect() as connection:
        return {
            table: int((await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one())  # noqa: S608 - ours
            for table in BY_AGE
        }


async def age(engine: AsyncEngine, days: int) -> None:
    """Make every row this old, and end its work."""
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE turns SET status = 'completed', request = NULL"))
        for table, column in BY_AGE.items():
            moment = text(f"UPDATE {table} SET {column} = clock_timestamp() - make_interval(days => :days)")  # noqa: S608
            await connection.execute(moment, {"days": days})
        ended = "UPDATE provider_caches SET expires_at = clock_timestamp() - interval '1 second'"
        await connection.execute(text(ended))


async def test_each_kind_is_forgotten_when_it_is_old(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    for name in ("a", "b"):
        await furnish(begin, name)
    before = await counts(engine)
    assert min(before.values()) > 0

    await age(engine, 0)
    await RetentionService(begin, ALL).work()
    assert await counts(engine) == before, "the control: nothing is old yet"

    await age(engine, 31)
    await RetentionService(begin, Retention()).work()
    kept = await counts(engine)
    assert {table for table, count in kept.items() if not count} == {
        "idempotency_keys",
        "chat_spending",
        "provider_caches",
    }, "what has no period is kept"

    await RetentionService(begin, ALL).work()
    assert not any((await counts(engine)).values())


async def test_many_go_in_steps(begin: UnitOfWorkFactory, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c", "d"):
        await furnish(begin, name)
    await age(engine, 31)
    monkeypatch.setattr(retaining, "ROWS", 1)
    monkeypatch.setattr(retaining, "BATCHES", 3)
    before = await counts(engine)

    assert await RetentionService(begin, ALL).work(), "more is left"
    after = await counts(engine)
    assert {table: before[table] - after[table] for table in ("idempotency_keys", "chat_spending", "events")} == {
        "idempotency_keys": 3,
        "chat_spending": 3,
        "events": 3,
    }
    last = RetentionService(begin, Retention(events=MONTH))
    assert await last.work(), "one of each was left, but five caches"
    assert not await last.work(), "the control"


async def test_one_kind_that_fails_holds_up_no_other(
    begin: UnitOfWorkFactory, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> int:
        raise RuntimeError("the disk is full")

    await furnish(begin, "a")
    await age(engine, 31)
    with monkeypatch.context() as patched:
        patched.setattr(IdempotencyRepository, "forget_older_than", fail)
        await RetentionService(begin, ALL).work()
    left = await counts(engine)
    assert {table for table, count in left.items() if count} == {"idempotency_keys"}

    await RetentionService(begin, ALL).work()
    assert not any((await counts(engine)).values())
