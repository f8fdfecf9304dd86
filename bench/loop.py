"""Measures how long the event loop's thread computes without a pause, request by request: at most 20 ms of CPU.

``python -m bench.loop [--small] [--write]`` starts the API in this process, with a PostgreSQL and a Valkey of its own,
and sends honest and hostile requests to every kind of route; compactions run as the worker runs them. For each it
prints the longest stretch of CPU time of the loop's thread, and if that is too long, where it was. Exit status 1 if a
stretch is too long.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx
import uvicorn

from app.bootstrap import build_container
from app.devserver import EmbeddedServers, Endpoints
from app.main import create_app
from app.settings import Settings
from app.storage.migrations import run_migrations
from bench.loop_locks import LockProbe
from bench.loop_probe import LIMIT_SECONDS, LoopProbe
from bench.loop_requests import FULL, GEMINI, SCRIPTED, SMALL, Sizes, Visitor
from bench.measurements import write
from tests.gemini_server import running_gemini
from tests.openai_server import running_openai
from tests.servers import unused_port

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "limits.md"
SHOWN: Final = 12
_PATIENCE: Final = 900.0


@dataclass(slots=True)
class Row:
    """The figures of the requests with one name."""

    label: str
    status: int
    milliseconds: float
    over: int
    where: str
    seconds: float
    locked: float
    """Milliseconds of CPU while a conversation was locked, in the longest transaction."""


class Visit:
    """Sends requests from a separate thread, and keeps the longest stretch of each name."""

    def __init__(
        self, url: str, probe: LoopProbe, locks: LockProbe, loop: asyncio.AbstractEventLoop, settings: Settings
    ) -> None:
        self.rows: dict[str, Row] = {}
        self._http = httpx.Client(base_url=url, timeout=_PATIENCE)
        self._probe = probe
        self._locks = locks
        self._loop = loop
        self._settings = settings

    def send(self, label: str | None, method: str, path: str, **given: Any) -> httpx.Response:
        """Send a request, and note what the loop computed meanwhile."""
        request = self._http.build_request(method, path, **given)
        answer: httpx.Response = self._noted(label, lambda: self._http.send(request), lambda answer: answer.status_code)
        return answer

    def compacted(self, id_: str) -> None:
        """Compact as the worker does, with a separate container on the same loop."""
        work = self._work(id_)
        self._noted("compaction in the worker", lambda: self._on_loop(work), lambda _: 0)

    async def _work(self, id_: str) -> None:
        container = await build_container(self._settings, "worker:bench")
        try:
            async with container.parts.uow(None) as uow:
                found = await uow.compactions.in_flight(UUID(id_))
            if found is not None:
                await container.verification.verify_after(await container.compaction.execute(found.id, ran_in="worker"))
        finally:
            await container.close()

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def _noted(self, label: str | None, act: Callable[[], Any], status: Callable[[Any], int]) -> Any:
        self._quiet()
        began = time.monotonic()
        answer = act()
        took = time.monotonic() - began
        self._quiet()
        longest, over = self._probe.taken()
        locked = self._locks.taken() * 1_000
        if label is None:
            return answer
        row = Row(label, status(answer), longest.seconds * 1_000, over, longest.where, took, locked)
        before = self.rows.get(label)
        if before is not None:
            before.locked = row.locked = max(before.locked, row.locked)
        if before is None or before.milliseconds < row.milliseconds:
            self.rows[label] = row
        mark = "!" if longest.seconds > LIMIT_SECONDS else " "
        print(
            f"{mark}{row.milliseconds:8.1f} ms {row.seconds:7.2f} s  {row.status} {label}  {row.where if over else ''}",
            flush=True,
        )
        return answer

    def _quiet(self) -> None:
        """Let the loop do the work that it postpones until after an answer."""
        self._on_loop(asyncio.sleep(0.02))


def main() -> int:
    """Serve, visit, print."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--small", action="store_true", help="Smaller ones, for a test.")
    read.add_argument("--write", action="store_true", help="Write the table into docs/limits.md.")
    given = read.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tl-") as folder,
        EmbeddedServers(Path(folder), durable=False) as servers,
        running_openai() as openai,
        running_gemini() as gemini,
    ):
        run_migrations(servers.database_url)
        providers = {"openai_base_url": openai.url, "google_base_url": gemini.url}
        rows, longest_look = measured(servers, providers, SMALL if given.small else FULL)
    table = _table(rows, longest_look)
    print(table)
    if given.write:
        write("loop", table, PAGE)
    return int(any(row.over for row in rows))


def _table(rows: Sequence[Row], longest_look: float) -> str:
    """A table of the slowest requests, and how many requests there were."""
    slow = sorted(rows, key=lambda row: -row.milliseconds)[:SHOWN]
    over = sum(row.milliseconds > LIMIT_SECONDS * 1_000 for row in rows)
    look = f"The interpreter's looks for garbage are left out; the longest took {longest_look * 1_000:.0f} ms."
    count = f"{len(rows)} kinds of requests, {over} of them with more than {LIMIT_SECONDS * 1_000:g} ms."
    lines = [
        f"{count} {look} The slowest:",
        "",
        "| request | longest stretch on the loop, ms of CPU | where, above the limit |",
        "|---|---|---|",
        *(f"| {row.label} | {row.milliseconds:.0f} | {_where(row)} |" for row in slow),
    ]
    locked = sorted(rows, key=lambda row: -row.locked)[: SHOWN // 2]
    lines += [
        "",
        "What the process computes in all, database statements too, while a transaction holds the conversation's row:",
        "",
        "| request | ms of CPU |",
        "|---|---|",
        *(f"| {row.label} | {row.locked:.0f} |" for row in locked),
    ]
    return "\n".join(lines)


def _where(row: Row) -> str:
    return f"`{row.where.partition(' < ')[0]}`" if row.where and row.over else ""


def measured(servers: Endpoints, providers: Mapping[str, Any], sizes: Sizes) -> tuple[list[Row], float]:
    """The rows of one visit, and the seconds of the longest garbage collection."""
    settings = Settings(
        database_url=servers.database_url,
        redis_url=servers.redis_url,
        openai_api_key="key",
        google_api_key="key",
        **providers,
        models=(SCRIPTED, GEMINI, "offline"),
        chat_model="offline",
        compaction_model="offline",
        auth_required=False,
        log_level="ERROR",
        watchdog_seconds=0,
    )
    return asyncio.run(_serving(settings, sizes))


async def _serving(settings: Settings, sizes: Sizes) -> tuple[list[Row], float]:
    port = unused_port()
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=port, log_level="error", loop="asyncio"))
    probe, locks = LoopProbe(), LockProbe()
    visit = Visit(f"http://127.0.0.1:{port}", probe, locks, asyncio.get_running_loop(), settings)
    done = asyncio.Event()
    failed: list[BaseException] = []

    def go() -> None:
        try:
            Visitor(visit.send, sizes, visit.compacted).visit()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)
        finally:
            loop.call_soon_threadsafe(done.set)

    loop = asyncio.get_running_loop()
    serving = asyncio.create_task(server.serve())
    await asyncio.to_thread(_wait_for, f"http://127.0.0.1:{port}/healthz")
    with probe.watching(), locks.watching():
        thread = threading.Thread(target=go, name="visitor")
        thread.start()
        await done.wait()
    thread.join()
    server.should_exit = True
    await serving
    if failed:
        raise failed[0]
    return list(visit.rows.values()), probe.longest_look


def _wait_for(url: str) -> None:
    while True:
        try:
            httpx.get(url).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
