"""What the event loop's thread computes without a break takes at most 20 ms of its own CPU time, whatever is sent."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import event

from app.devserver import Endpoints
from app.storage import scoped_session
from app.storage.compiled import CompiledStatement
from app.storage.tables import MessageRow
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.history.messages import MessageService
from app.usecases.shared.warming import warm_up
from bench import growth
from bench.loop import Row, measured
from bench.loop_probe import LIMIT_SECONDS, LoopProbe
from bench.loop_requests import TINY, prose, talk
from tests.gemini_server import running_gemini
from tests.integration.rows import message, stored
from tests.integration.rows import talk as talk_of
from tests.integration.test_request_limits import serving
from tests.openai_server import running_openai

PLANTED = 0.05
MANY = 500


async def _visit(http: httpx.AsyncClient, bodies: dict[str, bytes]) -> None:
    headers = {"Content-Type": "application/json"}
    made = await http.post("/conversations", json={"system_prompt": "Be brief. " * 5_000})
    path = f"/conversations/{made.json()['id']}"
    for route, body in bodies.items():
        answer = await http.post(path + route.partition("#")[0], content=body, headers=headers)
        assert answer.status_code == 201, answer.text
    for route in ("/context?query=crane", "/messages?limit=100", "/anchors?limit=100"):
        assert (await http.get(path + route)).status_code == 200
    assert (await http.get("/conversations")).status_code == 200


async def test_no_request_keeps_the_loop_for_longer_than_its_limit(
    begin: UnitOfWorkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [{"type": "text", "text": "and more"}] * 60
    sent: dict[str, Any] = {
        "/messages": {"role": "user", "content": prose(12_000)},
        "/messages#quotes": {"role": "user", "content": "„" * 4_000},
        "/messages/batch": {"messages": talk(40, 200)},
        "/messages/batch#parts": {"messages": [{"role": "user", "content": "so", "parts": parts}] * 20},
    }
    bodies = {route: json.dumps(body).encode() for route, body in sent.items()}
    warm_up()
    probe = LoopProbe()
    async with serving(begin) as http:
        await _visit(http, bodies)  # for work that is done only once, such as compiling statements
        with probe.watching():
            await _visit(http, bodies)
            longest, over = probe.taken()
            assert over == 0, longest
            append = MessageService.append

            async def busy(*given: Any, **further: Any) -> Any:
                until = time.thread_time() + PLANTED
                while time.thread_time() < until:
                    pass
                return await append(*given, **further)

            monkeypatch.setattr(MessageService, "append", busy)
            await _visit(http, bodies)
            planted, over = probe.taken()
    assert over >= len(bodies)
    assert planted.seconds > PLANTED > LIMIT_SECONDS
    assert "busy" in planted.where


async def test_a_few_words_and_a_context_that_serves_them_all_take_no_thread(
    begin: UnitOfWorkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []
    to_thread = asyncio.to_thread

    async def noted(work: Any, *given: Any) -> Any:
        taken.append(work)
        return await to_thread(work, *given)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    async with serving(begin) as http:
        path = f"/conversations/{(await http.post('/conversations', json={})).json()['id']}"
        for said in growth.talk(12, seed=1):
            answer = await http.post(f"{path}/messages", json={"role": "user", "content": said.content})
            assert answer.status_code == 201, answer.text
        served = (await http.get(f"{path}/context")).json()["messages"]
        assert len(served) > 12
        assert taken == []
        await http.post(f"{path}/messages", json={"role": "user", "content": prose(12_000)})
        assert taken, "control"


@pytest.mark.long
def test_the_bench_finds_nothing(database_url: str, redis_url: str) -> None:
    with running_openai() as openai, running_gemini() as gemini:
        providers = {"openai_base_url": openai.url, "google_base_url": gemini.url}
        rows, _ = measured(Endpoints(database_url=database_url, redis_url=redis_url), providers, TINY)
    assert len(rows) > 60
    assert {row.label: row.where for row in rows if row.over and not is_compiled_once(row)} == {}


def is_compiled_once(row: Row) -> bool:
    """Whether the time was not a request's own work, but a statement that was compiled once for all."""
    return row.where.split(" ")[0].endswith(":_init_compiled")


async def test_a_look_for_garbage_is_no_part_of_a_stretch() -> None:
    kept = [[number] for number in range(300_000)]
    probe = LoopProbe()
    with probe.watching():
        asyncio.get_running_loop().call_soon(gc.collect)
        await asyncio.sleep(0)
        longest, _ = probe.taken()
    assert probe.longest_look > longest.seconds
    assert probe.longest_look > LIMIT_SECONDS / 20
    assert len(kept) == 300_000


async def looks_between_rows(begin: UnitOfWorkFactory, tenant: UUID, conversation_id: UUID) -> int:
    """How many times the loop did something else while rows were made of what was read."""
    made, seen = 0, set[int]()

    def count(*_: object) -> None:
        nonlocal made
        made += 1

    async def look() -> None:
        while True:
            seen.add(made)
            await asyncio.sleep(0)

    event.listen(MessageRow, "load", count)
    looking = asyncio.create_task(look())
    try:
        async with begin(tenant) as unit:
            await unit.messages.all_between(conversation_id, 1, MANY)
    finally:
        looking.cancel()
        event.remove(MessageRow, "load", count)
    return len(seen - {0, MANY})


async def test_rows_of_a_statement_that_is_built_once_are_made_in_parts(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await stored(begin, tenant)
    await talk_of(begin, tenant, [message(row.id, seq) for seq in range(1, MANY + 1)])
    make, made = CompiledStatement.scalar, 0

    def counted(statement: CompiledStatement, record: Any) -> Any:
        nonlocal made
        made += 1
        return make(statement, record)

    async def looks() -> int:
        nonlocal made
        made, seen = 0, set[int]()

        async def look() -> None:
            while True:
                seen.add(made)
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        async with begin(tenant) as unit:
            await unit.messages.between(row.id, 1, MANY)
        looking.cancel()
        return len(seen - {0, MANY})

    monkeypatch.setattr(CompiledStatement, "scalar", counted)
    monkeypatch.setattr(scoped_session, "SLICE_SECONDS", 0.0)
    assert await looks() > MANY / 20
    monkeypatch.setattr(scoped_session, "_ROWS_PER_CHECK", 2 * MANY)
    assert await looks() == 0


async def test_rows_are_made_in_parts(begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    row = await stored(begin, tenant)
    await talk_of(begin, tenant, [message(row.id, seq) for seq in range(1, MANY + 1)])
    monkeypatch.setattr(scoped_session, "SLICE_SECONDS", 0.0)
    assert await looks_between_rows(begin, tenant, row.id) > MANY / 20
    monkeypatch.setattr(scoped_session, "_ROWS_PER_CHECK", MANY)
    assert await looks_between_rows(begin, tenant, row.id) == 0
