"""Measures whether six clients that send heavy batches slow a seventh: with threads and with processes, in turn.

``python -m bench.loop_neighbours [--rounds 12] [--write]`` starts an API process for each of the two ways, with a
PostgreSQL and a Valkey. A round times the seventh client's small append and page without the six and then with them.
The ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from app.devserver import EmbeddedServers
from app.storage.migrations import run_migrations
from bench.loop import PAGE
from bench.loop_requests import batch, talk, user
from bench.measurements import write
from tests.servers import unused_port

CLIENTS: Final = 6
WAYS: Final = {"threads": "0", "processes": "2"}
_START: Final = 300.0
_VISITS: Final = 5
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True)
class Waited:
    """Seconds of the seventh client in each round."""

    alone: list[float]
    with_neighbour: list[float]
    batches: int

    @property
    def ratio(self) -> float:
        """How many times as long the seventh client waits with the six."""
        return statistics.median(one / other for one, other in zip(self.with_neighbour, self.alone, strict=True))


def main() -> int:
    """Measure both ways, print."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--rounds", type=int, default=12)
    read.add_argument("--write", action="store_true", help="Write the table into docs/limits.md.")
    given = read.parse_args()
    lines = [
        "| long texts are read in | alone, ms | beside the six, ms | ratio | batches meanwhile |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        run_migrations(servers.database_url)
        for way, processes in WAYS.items():
            settings = {
                "DATABASE_URL": servers.database_url,
                "REDIS_URL": servers.redis_url,
                "THROUGHLINE_WORK_PROCESSES": processes,
            }
            with running_api(settings) as (url, _):
                waited = _measured(url, given.rounds)
            alone, with_neighbour = (
                1_000 * statistics.median(times) for times in (waited.alone, waited.with_neighbour)
            )
            lines.append(f"| {way} | {alone:.0f} | {with_neighbour:.0f} | {waited.ratio:.1f} | {waited.batches} |")
            print(lines[-1], flush=True)
    table = "\n".join(lines)
    print(table)
    if given.write:
        write("neighbours", table, PAGE)
    return 0


def _measured(url: str, rounds: int) -> Waited:
    waited: tuple[list[float], list[float]] = ([], [])
    going, ended = threading.Event(), threading.Event()
    sent: list[int] = []
    heavy = [threading.Thread(target=_send, args=(url, number, going, ended, sent)) for number in range(CLIENTS)]
    for thread in heavy:
        thread.start()
    with httpx.Client(base_url=url, timeout=_PATIENCE) as http:
        id_ = http.post("/conversations", json={}).json()["id"]
        _visit(http, id_)
        for _ in range(rounds):
            waited[0].append(_visit(http, id_))
            going.set()
            time.sleep(1.0)
            waited[1].append(_visit(http, id_))
            going.clear()
            time.sleep(1.0)
        ended.set()
        going.set()
    for thread in heavy:
        thread.join()
    return Waited(*waited, batches=len(sent))


def _visit(http: httpx.Client, id_: str) -> float:
    """The median seconds of an append and a page."""
    times = []
    for _ in range(_VISITS):
        began = time.monotonic()
        http.post(f"/conversations/{id_}/messages", json=user("And then?")).raise_for_status()
        http.get(f"/conversations/{id_}/messages?limit=5").raise_for_status()
        times.append(time.monotonic() - began)
    return statistics.median(times)


def _send(url: str, number: int, going: threading.Event, ended: threading.Event, sent: list[int]) -> None:
    body = batch(talk(20, 1_000, seed=number))
    with httpx.Client(base_url=url, timeout=_PATIENCE) as http:
        while going.wait() and not ended.is_set():
            id_ = http.post("/conversations", json={}).json()["id"]
            http.post(f"/conversations/{id_}/messages/batch", json=body).raise_for_status()
            sent.append(number)


@contextmanager
def running_api(settings: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Run an API process; yields its address and its process id."""
    port = str(unused_port())
    argv = [sys.executable, "-m", "uvicorn", "app.main:create_app", "--factory", "--port", port, "--log-level", "error"]
    environment = {**os.environ, "THROUGHLINE_AUTH_REQUIRED": "false", "THROUGHLINE_LOG_LEVEL": "ERROR", **settings}
    with subprocess.Popen(argv, env=environment) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url)
            yield url, process.pid
        finally:
            process.terminate()


def _wait(url: str) -> None:
    deadline = time.monotonic() + _START
    while True:
        try:
            httpx.get(f"{url}/healthz").raise_for_status()
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
