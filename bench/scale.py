"""Tests whether a folded conversation of 100 000 messages behaves like one of 100, with the same requests in turn.

``python -m bench.scale [--messages 100000] [--repeats 9] [--data-dir DIR]`` starts servers of its own, imports two
made-up conversations in batches, folds them with the offline model as the worker does, and sends each the same
requests through the application. Times are compared with those of the short conversation and with a page of 100
messages read by its index, all in the same run. With ``--data-dir`` the conversations are kept for the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bootstrap import Container, build_container
from app.client import AsyncThroughline
from app.client import endpoints as api
from app.core.model.policies.budgets import budgets_of
from app.core.text.memo import forget
from app.core.text.words import words
from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.garbage import settle_garbage_collector
from app.main import create_app
from app.settings import Settings
from app.storage.database import make_engine
from app.storage.migrations import run_migrations
from app.usecases.compaction.manual import CompactInput
from bench.growth import talk
from bench.report import print_table, write_json
from bench.search import PAGE_BY_INDEX, Words
from tests.servers import as_owner

SMALL: Final = 100
"""Messages of the short conversation."""
KEPT: Final = 20
"""Messages after the state, in both conversations."""
ALIKE: Final = 4.0
"""A request to the long conversation may take at most so many times as long as to the short one (median)."""
WINDOW: Final = 32_000
POLICY: Final[dict[str, Any]] = {"context_window": WINDOW, "triggers": []}
_BATCH: Final = 1_000
_WAIT: Final = 60.0
_PLANTED: Final = 7  # the message that a question is about, in both
_STATED: Final = "The spare key of the lighthouse hangs behind the barometer, its tag reads KX-4417."
_QUESTION: Final = "Where does the spare key of the lighthouse hang, and what does its tag read?"
_ASKED: Final = 6  # words of the talk in a question

Request = Callable[[UUID], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Medians in milliseconds for one kind of request."""

    request: str
    small: float
    large: float
    page: float
    """The time of a page of messages by its index, read in turn with the requests."""

    @property
    def times(self) -> float:
        """The ratio of the long to the short conversation."""
        return self.large / self.small

    @property
    def pages(self) -> float:
        """The ratio of the long conversation to the indexed query."""
        return self.large / self.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A folded conversation."""

    id: UUID
    messages: int
    import_seconds: float
    fold_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What is served of the folded history."""

    messages: int
    state: int
    state_cap: int
    anchors: int
    anchors_cap: int | None
    digests: int
    context: int
    budget: int


def contents(count: int, seed: int = 3) -> Iterator[tuple[str, str]]:
    """Roles and texts: decisions, orders, names and numbers of ``bench.growth``, and words of Zipf's frequencies."""
    words, chosen = Words(seed), random.Random(seed)
    for message in talk(count, seed):
        text = f"{message.content} {words.content()}" if chosen.random() < 1 / 2 else message.content
        yield message.role, _STATED if message.seq == _PLANTED else text


def questions(seed: int = 3) -> tuple[str, ...]:
    """Questions about both conversations: each has words of another message, which may be common or rare.

    The other words of a question are function words, which are not looked for.
    """
    chosen = random.Random(seed)
    found = []
    for _, content in contents(SMALL, seed):
        some = sorted(set(words(content)))
        if len(some) >= _ASKED:
            one, two, *more, last = chosen.sample(some, _ASKED)
            found.append(f"What about {one} and {two}, and where were the {', '.join(more)} or {last}?")
    chosen.shuffle(found)
    return tuple(found)


class Bench:
    """Two conversations of one service."""

    def __init__(self, container: Container, client: AsyncThroughline, engine: AsyncEngine) -> None:
        self._container = container
        self._client = client
        self._engine = engine
        self._questions = questions()
        self._turned = 0

    async def build(self, messages: int) -> Built:
        """Import and fold a conversation of so many messages."""
        made = await self._client.send(api.create_conversation(policy=POLICY, title=f"{messages} messages"))
        began = time.perf_counter()
        batch: list[dict[str, Any]] = []
        for role, content in contents(messages):
            batch.append({"role": role, "content": content})
            if len(batch) == _BATCH:
                await self._client.send(api.append_many(made.id, batch))
                batch = []
        if batch:
            await self._client.send(api.append_many(made.id, batch))
        imported = time.perf_counter()
        await self.fold(made.id)
        return Built(
            id=made.id,
            messages=messages,
            import_seconds=round(imported - began, 1),
            fold_seconds=round(time.perf_counter() - imported, 1),
        )

    async def fold(self, conversation_id: UUID) -> None:
        """Fold all but the newest messages, in as many jobs as their time limit requires.

        Raises:
            RuntimeError: A job folded nothing although there was something to fold.
        """
        container, before = self._container, None
        tenant = (await container.keys.authenticate(None)).tenant_id
        await self._client.send(api.change_conversation(conversation_id, policy=POLICY))
        while (row := (await container.conversations.get(tenant, conversation_id)).conversation).last_seq:
            left = row.last_seq - row.boundary_seq
            print(f"{left} messages to fold", file=sys.stderr)
            if left <= 2 * KEPT:
                return
            reached = (row.boundary_seq, row.anchors_due_from)
            if reached == before:
                raise RuntimeError("nothing was folded")
            before = reached
            asked = CompactInput(keep_tail_messages=KEPT, wait=False)
            view = await container.manual.compact(tenant, conversation_id, asked, timeout=_WAIT)
            await container.compaction.execute(view.compaction.id)

    async def block(self, built: Built) -> Block:
        """What is served of the folded history, and its limits."""
        tenant = (await self._container.keys.authenticate(None)).tenant_id
        view = await self._container.conversations.get(tenant, built.id)
        budgets = budgets_of(view.policy, WINDOW)
        gauge = (await self._client.send(api.look_at_context(built.id))).gauge
        return Block(
            messages=built.messages,
            state=gauge.breakdown.state,
            state_cap=budgets.state_cap,
            anchors=gauge.breakdown.anchors,
            anchors_cap=budgets.anchor_tokens,
            digests=gauge.breakdown.digests,
            context=gauge.tokens,
            budget=gauge.budget,
        )

    async def measure(self, small: Built, large: Built, repeats: int) -> list[Took]:
        """Measure every request to both, in turn with each other and with the indexed query."""
        markers = {built.id: await self._marker(built.id) for built in (small, large)}
        found = []
        for name, request in self._requests(markers).items():
            times: defaultdict[str, list[float]] = defaultdict(list)
            for _ in range(repeats + 1):
                times["small"].append(await _timed(request(small.id)))
                times["large"].append(await _timed(request(large.id)))
                times["page"].append(await self._page(large))
            medians = {way: round(1_000 * statistics.median(values[1:]), 2) for way, values in times.items()}
            found.append(Took(request=name, **medians))
            print(f"{name}: {found[-1].times:.2f}", file=sys.stderr)
        return found

    def _requests(self, markers: Mapping[UUID, str]) -> dict[str, Request]:
        send = self._client.send
        return {
            "GET context": lambda at: send(api.look_at_context(at)),
            "POST context with a query": lambda at: send(api.context(at, 4_000, query=_QUESTION)),
            "POST context with a new query": lambda at: send(api.context(at, 4_000, query=self._another())),
            "POST context with a process's first query": self._first_query,
            "POST context with a larger budget": lambda at: send(api.context(at, 16_000)),
            "chat turn": lambda at: send(api.chat(at, self._another())),
            "expand a marker": lambda at: send(api.segment(at, markers[at], "full")),
            "search": lambda at: send(api.search(at, "spare key lighthouse").first),
            "list a page": lambda at: send(api.messages(at, order="asc", page_size=100).first),
            "segments": lambda at: send(api.segments(at, page_size=1).first),
            "anchors": lambda at: send(api.anchors(at).first),
            "states": lambda at: send(api.states(at, page_size=1).first),
            "compactions": lambda at: send(api.compactions(at, page_size=1).first),
            "stats": lambda at: send(api.stats(at)),
            "export begins": self._export_begins,
            "append 1 message": lambda at: send(api.append(at, "user", self._another())),
            "PATCH title": lambda at: send(api.change_conversation(at, title=self._another()[:80])),
            "PATCH policy: what is protected": lambda at: send(
                api.change_conversation(at, policy={**POLICY, "protect": self._protect()})
            ),
            "PATCH policy: the anchors' share": lambda at: send(
                api.change_conversation(at, policy={**POLICY, "anchor_share": 0.1 + self._turn() % 2 / 100})
            ),
            "append 100 messages": self._append_100,
        }

    def _turn(self) -> int:
        self._turned += 1
        return self._turned // 2

    def _another(self) -> str:
        """A question that was not asked yet."""
        return self._questions[self._turn() % len(self._questions)]

    def _first_query(self, at: UUID) -> Awaitable[object]:
        """Ask a new question of a process that has read nothing yet."""
        forget()
        return self._client.send(api.context(at, 4_000, query=self._another()))

    def _protect(self) -> list[str]:
        return [["turn_0", "goal"], ["turn_0", "goal", "goal_statements"]][self._turn() % 2]

    async def _append_100(self, at: UUID) -> None:
        batch = [{"role": role, "content": content} for role, content in contents(100, seed=self._turn())]
        await self._client.send(api.append_many(at, batch))

    async def _marker(self, conversation_id: UUID) -> str:
        """The segment of the message that the question is about."""
        page = await self._client.send(api.segments(conversation_id, order="asc").first)
        return page.data[0].segment_id

    async def _export_begins(self, conversation_id: UUID) -> None:
        """Export until the first message is in the file."""
        export = self._container.export
        tenant = (await self._container.keys.authenticate(None)).tenant_id
        view = await export.conversation(tenant, conversation_id)
        messages = export.messages(tenant, conversation_id, through_seq=view.conversation.last_seq)
        async with contextlib.aclosing(messages) as reading:  # type: ignore[type-var]
            async for _ in reading:
                return

    async def _page(self, built: Built) -> float:
        tenant = (await self._container.keys.authenticate(None)).tenant_id
        async with self._engine.connect() as connection:
            began = time.perf_counter()
            given = {"tenant": tenant, "id": built.id, "after": built.messages // 2}
            (await connection.execute(text(PAGE_BY_INDEX), given)).all()
            return time.perf_counter() - began


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


@contextlib.asynccontextmanager
async def bench_on(servers: Endpoints) -> AsyncIterator[Bench]:
    """Run a service with these servers, with the offline model and without keys."""
    settings = Settings(
        database_url=servers.database_url, redis_url=servers.redis_url, embedded=True, log_level="ERROR"
    )
    container = await build_container(settings)
    engine = as_owner(make_engine(servers.database_url))
    transport = httpx.ASGITransport(create_app(container=container))
    async with AsyncThroughline("http://localhost", transport=transport, timeout=600) as client:
        yield Bench(container, client, engine)
    await engine.dispose()
    await container.close()


async def run(servers: Endpoints, folder: Path, messages: int, repeats: int) -> tuple[list[Took], list[Block]]:
    """Build the long conversation if it does not exist yet, and measure."""
    async with bench_on(servers) as bench:
        large = await kept(bench, folder / f"scale-{messages}.json", messages)
        await bench.fold(large.id)  # folds what an earlier run in this folder appended
        built = [await bench.build(SMALL), large]  # a new short one: appended messages would matter in it
        await analyzed(servers)
        blocks = [await bench.block(each) for each in built]
        settle_garbage_collector()  # as a process that serves does when it is ready
        return await bench.measure(built[0], built[1], repeats), blocks


async def kept(bench: Bench, note: Path, messages: int) -> Built:
    """The conversation that this note names; it is made if there is no note."""
    if not await asyncio.to_thread(note.exists):
        built = await bench.build(messages)
        await asyncio.to_thread(note.write_text, json.dumps(asdict(built), default=str))
    known = json.loads(await asyncio.to_thread(note.read_text))
    print(
        f"{messages} messages: {known['import_seconds']} s to import, {known['fold_seconds']} s to fold",
        file=sys.stderr,
    )
    return Built(**known | {"id": UUID(known["id"])})


async def analyzed(servers: Endpoints) -> None:
    """Analyze the tables, as the database does by itself after a while."""
    engine = make_engine(servers.database_url)
    async with engine.connect() as connection:
        options = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await options.execute(text("SET statement_timeout = 0"))
        await options.execute(text("VACUUM ANALYZE"))
    await engine.dispose()


def main() -> int:
    """Measure, print, write; 1 when the long conversation does not behave as the short one."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=9, help="of each request; their median counts")
    parser.add_argument("--data-dir", type=Path, help="where the conversations stay for the next run")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl-")))
        folder.mkdir(parents=True, exist_ok=True)
        servers = stack.enter_context(EmbeddedServers(folder, durable=False))
        os.environ.pop("DATABASE_URL", None)
        run_migrations(servers.database_url)
        found, blocks = asyncio.run(run(servers, folder, asked.messages, asked.repeats))
    print_table(
        ["request", f"{SMALL}: ms", f"{asked.messages}: ms", "times", "a page by its index: ms", "times"],
        [
            [each.request, *map("{:.1f}".format, (each.small, each.large, each.times, each.page, each.pages))]
            for each in found
        ],
    )
    print()
    print_table(
        ["messages", "state", "cap", "anchors", "cap", "digests", "context", "budget"],
        [[str(value) for value in asdict(block).values()] for block in blocks],
    )
    within = all(block.state <= block.state_cap and block.context <= block.budget for block in blocks)
    write_json("scale", {"took": [asdict(each) for each in found], "blocks": [asdict(block) for block in blocks]})
    return 0 if within and all(each.times <= ALIKE for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
