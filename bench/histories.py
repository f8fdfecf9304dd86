"""Measures operations on a conversation of years: 500 000 messages, next to 1 000 000 others, all made in SQL.

``python -m bench.histories [--messages 500000] [--conversations 1000000] [--data-dir DIR]`` makes the conversations
(this takes some minutes, and the disk space that it prints), ends a turn whose process died, appends a tool's result,
searches, reads statistics, erases two messages, and deletes the conversation. If an operation works in steps, the
longest is printed, since others wait for it. With ``--data-dir`` the database is kept, without the long conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.bootstrap import Container, build_container
from app.devserver import EmbeddedServers, Endpoints
from app.devserver.preflight import migrate as run_migrations
from app.settings import Settings
from app.storage.database import make_patient_engine
from app.storage.tables import TenantScoped
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.removing import SHORT
from bench.report import print_table, write_json

BATCH: Final = 50_000
"""How many rows one statement makes."""
MAX_STEP_MS: Final = 5_000.0
"""Milliseconds that a step of a long operation may take: others wait that long."""
CONTENT: Final = "'Crate ' || n || ' reached harbour ' || n % 97 || ' in the morning, as planned.'"
CALLS: Final = "n % 10 = 1"
RESULTS: Final = "n % 10 = 2"
"""The messages that are results of tools: a tenth of all; another tenth are calls."""

_CALL: Final = "json_build_object('type', 'tool_call', 'id', 'call_' || n, 'name', 'look', 'arguments', '{}'::json)"
_RESULT: Final = "json_build_object('type', 'tool_result', 'tool_call_id', 'call_' || n - 1, 'content', 'seen')"
MESSAGE: Final = {
    "id": "gen_random_uuid()",
    "seq": "n",
    "role": f"CASE WHEN {RESULTS} THEN 'tool' WHEN n % 2 = 1 THEN 'assistant' ELSE 'user' END",
    "content": f"CASE WHEN {CALLS} OR {RESULTS} THEN '' ELSE {CONTENT} END",
    "parts": (
        f"CASE WHEN {CALLS} THEN json_build_array({_CALL}) WHEN {RESULTS} THEN json_build_array({_RESULT})"
        " ELSE '[]'::json END"
    ),
    "call_ids": f"CASE WHEN {CALLS} THEN ARRAY['call_' || n] ELSE '{{}}'::text[] END",
    "result_ids": f"CASE WHEN {RESULTS} THEN ARRAY['call_' || n - 1] ELSE '{{}}'::text[] END",
    "is_protected": "false",
    "protected_reason": "'compressible'",
    "token_count": "20",
    "byte_length": "60",
    "message_sum": "n",
    "token_sum": "t.token_sum + 20 * (n - t.seq)",
    "byte_sum": "t.byte_sum + 60 * (n - t.seq)",
    "created_at": "t.created_at + n * interval '1 second'",
}
EVENT: Final = {
    "number": "n",
    "data": "jsonb_build_object('seq', n)",
    "occurred_at": "t.occurred_at + n * interval '1 second'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """One operation, in milliseconds."""

    operation: str
    request: float
    """How long its client waits."""
    steps: int = 0
    """In how many steps work is done afterwards …"""
    longest: float = 0.0
    """… how long the longest step takes, while others wait …"""
    rest: float = 0.0
    """… and how long all steps take."""


def copies(table: str, changes: dict[str, str], which: str) -> str:
    """An insert of copies of one row, for ``n`` from ``:first`` to ``:last``, with some columns changed."""
    (mapped,) = (one for one in TenantScoped.__subclasses__() if one.__tablename__ == table)
    names = [column.name for column in mapped.__table__.columns]  # type: ignore[attr-defined]
    quoted = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(changes.get(name, f't."{name}"') for name in names)
    return (
        f"INSERT INTO {table} ({quoted}) SELECT {values} FROM {table} t,"  # noqa: S608 - our own tables
        f" generate_series(cast(:first AS bigint), cast(:last AS bigint)) n WHERE {which}"
    )


async def lengthen(connection: AsyncConnection, conversation_id: UUID, messages: int) -> None:
    """Lengthen a conversation to so many messages, each with its event; sums and counters are right."""
    given = {"id": conversation_id}
    found = await connection.execute(text("SELECT last_seq, last_event FROM conversations WHERE id = :id"), given)
    last_seq, last_event = found.one()
    of = "t.conversation_id = :id AND t."
    for table, changes, which, start in (
        ("messages", MESSAGE, f"{of}seq = :start", last_seq),
        ("events", EVENT, f"{of}number = :start", last_event),
    ):
        statement = text(copies(table, changes, which))
        for first in range(start + 1, messages + 1, BATCH):
            span = {"first": first, "last": min(first + BATCH - 1, messages), "start": start}
            await connection.execute(statement, given | span)
    await connection.execute(
        text(
            "UPDATE conversations c SET last_seq = m.seq, last_message_id = m.id, last_event = m.seq,"
            " total_messages = m.message_sum, total_tokens = m.token_sum, total_bytes = m.byte_sum,"
            " trigger_tokens = NULL FROM messages m WHERE m.conversation_id = c.id AND c.id = :id AND m.seq = :last"
        ),
        given | {"last": messages},
    )


async def surround(connection: AsyncConnection, conversation_id: UUID, conversations: int) -> None:
    """Make so many copies of a conversation's row, without messages."""
    statement = text(copies("conversations", {"id": "gen_random_uuid()", "user_id": "'user ' || n"}, "t.id = :id"))
    for first in range(1, conversations + 1, BATCH):
        span = {"first": first, "last": min(first + BATCH - 1, conversations)}
        await connection.execute(statement, {"id": conversation_id} | span)


async def take(work: Callable[[], Awaitable[Any]]) -> float:
    """The milliseconds that the work takes."""
    began = time.perf_counter()
    await work()
    return 1_000 * (time.perf_counter() - began)


class Bench:
    """A service with a database that has a long conversation among many."""

    def __init__(self, container: Container, engine: AsyncEngine, tenant: UUID) -> None:
        self._container = container
        self._engine = engine
        self._tenant = tenant

    async def make(self, messages: int, conversations: int) -> UUID:
        """Make the long conversation and the others; return the id of the long one."""
        service = self._container.conversations
        seed = (await service.create(self._tenant, NewConversation(title="short"))).conversation.id
        long = (
            await service.create(self._tenant, NewConversation(title="long", policy={"max_tokens": -1}))
        ).conversation
        await self._container.messages.append(
            self._tenant,
            long.id,
            [MessageDraft(role="user", content="Crate 1 reached harbour 1 in the morning, as planned.")],
        )
        async with self._engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            there = (await plain.execute(text("SELECT count(*) FROM conversations"))).scalar_one()
            await surround(plain, seed, max(conversations - int(there), 0))
            await lengthen(plain, long.id, messages)
            await plain.execute(text("VACUUM ANALYZE"))
            size = (await plain.execute(text("SELECT pg_database_size(current_database())"))).scalar_one()
        print(f"{messages} messages in one of {conversations} conversations: {int(size) / 1e9:.2f} GB", file=sys.stderr)
        return long.id

    async def measure(self, conversation_id: UUID, messages: int) -> list[Took]:
        """Measure every operation, the deletion last."""
        return [
            await self._recover(),
            await self._once("append a tool's result", lambda: self._append_result(conversation_id)),
            await self._search(conversation_id, "words that stand everywhere", '"morning crate harbour planned"'),
            await self._search(conversation_id, "eight phrases without a stem", '"," "." "e" "a" "r" "h" "0" "?"'),
            await self._once("stats", lambda: self._container.stats.conversation(self._tenant, conversation_id)),
            await self._once("stats of the tenant", lambda: self._container.stats.service(self._tenant)),
            await self._in_steps("erase the first message", lambda: self._erase(conversation_id, 1)),
            await self._in_steps("erase one in the middle", lambda: self._erase(conversation_id, messages // 2)),
            await self._in_steps(
                "delete the conversation", lambda: self._container.conversations.delete(self._tenant, conversation_id)
            ),
        ]

    async def _once(self, name: str, work: Callable[[], Awaitable[Any]]) -> Took:
        await work()
        took = Took(operation=name, request=await take(work))
        print(f"{name}: {took.request:.0f} ms", file=sys.stderr)
        return took

    async def _in_steps(self, name: str, work: Callable[[], Awaitable[Any]]) -> Took:
        request = await take(work)
        steps: list[float] = []
        left = True

        async def step() -> None:
            nonlocal left
            left = await self._container.removal.work()

        while left:
            steps.append(await take(step))
        took = Took(operation=name, request=request, steps=len(steps), longest=max(steps), rest=sum(steps))
        print(f"{name}: {took.request:.0f} ms, {len(steps)} steps, {took.longest:.0f} ms at most", file=sys.stderr)
        return took

    async def _recover(self) -> Took:
        """Recover a conversation whose compaction's process died, among all the others."""
        service = self._container.conversations
        crashed = (await service.create(self._tenant, NewConversation())).conversation.id
        turn = (
            "INSERT INTO turns (tenant_id, id, conversation_id, message_id, status, lease_until, interrupt_requested,"
        )
        turn += " warnings, started_at) VALUES (:tenant, gen_random_uuid(), :id, gen_random_uuid(), 'running',"
        turn += " now() - interval '1 minute', false, '{}', now())"

        async def crash_and_sweep() -> None:
            async with self._engine.begin() as connection:
                await connection.execute(text(turn), {"tenant": self._tenant, "id": crashed})
            await self._container.sweeper.sweep()

        return await self._once("sweep, ending a dead turn", crash_and_sweep)

    async def _append_result(self, conversation_id: UUID) -> None:
        id_ = f"call_of_{random.getrandbits(60)}"
        call = {"type": "tool_call", "id": id_, "name": "look", "arguments": {}}
        result = {"type": "tool_result", "tool_call_id": id_, "content": "seen"}
        append = self._container.messages.append
        await append(self._tenant, conversation_id, [MessageDraft(role="assistant", content="", parts=(call,))])
        await append(self._tenant, conversation_id, [MessageDraft(role="tool", content="", parts=(result,))])

    async def _search(self, conversation_id: UUID, name: str, query: str) -> Took:
        find = self._container.search.find
        return await self._once(f"search: {name}", lambda: find(self._tenant, conversation_id, query, limit=20))

    async def _erase(self, conversation_id: UUID, seq: int) -> None:
        async with self._container.parts.uow(self._tenant) as uow:
            message = await uow.messages.at_seq(conversation_id, seq)
        await self._container.erasure.erase(self._tenant, conversation_id, message.id)


async def run(servers: Endpoints, messages: int, conversations: int) -> list[Took]:
    """Make, and measure."""
    settings = Settings(
        database_url=servers.database_url, redis_url=servers.redis_url, embedded=True, log_level="ERROR"
    )
    container, engine = await build_container(settings), make_patient_engine(servers.database_url)
    try:
        tenant = (await container.keys.authenticate(None)).tenant_id
        bench = Bench(container, engine, tenant)
        return await bench.measure(await bench.make(messages, conversations), messages)
    finally:
        await engine.dispose()
        await container.close()


def main() -> int:
    """Make, measure, print, write; 1 when somebody would wait longer than ``MAX_STEP_MS``."""
    parser = argparse.ArgumentParser(prog="python -m bench.histories", description=__doc__)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--conversations", type=int, default=1_000_000)
    parser.add_argument("--data-dir", type=Path, help="where the database stays for the next run")
    asked = parser.parse_args()
    if asked.messages <= SHORT:
        parser.error(f"--messages: a conversation of {SHORT} messages is removed at once, take more")
    with contextlib.ExitStack() as stack:
        folder = asked.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl-")))
        folder.mkdir(parents=True, exist_ok=True)
        servers = stack.enter_context(EmbeddedServers(folder, durable=False))
        os.environ.pop("DATABASE_URL", None)
        run_migrations(servers.database_url)
        found = asyncio.run(run(servers, asked.messages, asked.conversations))
    print_table(
        ["operation", "its client waits: ms", "steps", "longest: ms", "all: s"],
        [
            [one.operation, f"{one.request:.0f}", str(one.steps), f"{one.longest:.0f}", f"{one.rest / 1_000:.1f}"]
            for one in found
        ],
    )
    write_json("histories", {"messages": asked.messages, "took": [asdict(one) for one in found]})
    return 0 if all(max(one.request, one.longest) <= MAX_STEP_MS for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
