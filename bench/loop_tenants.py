"""Measures how much longer the small requests of a quiet tenant take beside a noisy tenant, on one API process.

``python -m bench.loop_tenants [--rounds 8] [--write]`` starts an API process with a PostgreSQL and a Valkey. The noisy
tenant has forty clients, in a process of their own: a third send batches of thirty messages, a third search, a third
ask for contexts with a question, in a long conversation. A round times the quiet tenant's requests without them and
then with them. The ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

import httpx

from app.devserver import EmbeddedServers
from app.storage.migrations import run_migrations
from app.usecases.admin.keys import ALL_SCOPES
from bench.attack.target import UNLIMITED, make_keys
from bench.loop import PAGE
from bench.loop_neighbours import running_api
from bench.loop_requests import batch, talk, user
from bench.measurements import write

CLIENTS: Final = 40
KINDS: Final = ("batches", "searches", "contexts")
_LONG: Final = 400
_VISITS: Final = 5
_PATIENCE: Final = 300.0
_SETTLED: Final = 2.0
_CPU_OF_PROCESS: Final = 2
"""The kind of Linux's clocks of another process that counts CPU time in nanoseconds."""
_QUESTION: Final = "What did we decide about the lighthouse keeper and the cable of the crane?"


@dataclass(slots=True)
class Waited:
    """Milliseconds of the quiet tenant's requests: of time, and of the process's CPU meanwhile."""

    alone: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    beside: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    noisy: list[float] = field(default_factory=list)
    """How many requests of the noisy tenant were answered for each CPU second of the process."""

    def rows(self) -> Iterator[tuple[str, list[float]]]:
        """Per request: alone, beside and the median of the rounds' ratios; of time, then of CPU."""
        for name, alone in self.alone.items():
            found: list[float] = []
            for which in range(2):
                before, after = [one[which] for one in alone], [one[which] for one in self.beside[name]]
                ratio = statistics.median(one / other for one, other in zip(after, before, strict=True))
                found += [statistics.median(before), statistics.median(after), ratio]
            yield name, found


def main() -> int:
    """Measure, print."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--rounds", type=int, default=8)
    read.add_argument("--seconds", type=float, default=4.0, help="Of noise before the quiet tenant asks.")
    read.add_argument("--clients", type=int, default=CLIENTS)
    read.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    read.add_argument("--write", action="store_true", help="Write the table into docs/limits.md.")
    given = read.parse_args()
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        run_migrations(servers.database_url)
        wanted = {name: (name, ALL_SCOPES, None) for name in ("quiet", "noisy")}
        keys = make_keys(servers.database_url, servers.redis_url, wanted)
        settings = {
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "THROUGHLINE_AUTH_REQUIRED": "true",
            "THROUGHLINE_TENANT_LIMITS": UNLIMITED,
            "THROUGHLINE_KEY_LIMITS": UNLIMITED,
        }
        with running_api(settings) as (url, pid):
            waited = _measured(url, pid, keys, given)
    lines = [
        "| the quiet tenant's request | alone, ms | beside, ms | ratio | CPU alone, ms | CPU beside, ms | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (*times, ratio, computed, meanwhile, more) in waited.rows():
        first, second = (f"{one:.0f}" for one in times)
        lines.append(f"| {name} | {first} | {second} | {ratio:.1f} | {computed:.0f} | {meanwhile:.0f} | {more:.1f} |")
    table = "\n".join(lines)
    print(f"{table}\n\nThe noisy tenant had {statistics.median(waited.noisy):.0f} requests answered per CPU second.")
    if given.write:
        write("tenants", table, PAGE)
    return 0


def _measured(url: str, pid: int, keys: dict[str, str], given: argparse.Namespace) -> Waited:
    waited = Waited()
    context = multiprocessing.get_context("spawn")
    going, ended, answered = context.Event(), context.Event(), context.Value("L", 0)
    long = _long_conversation(url, keys["noisy"])
    noise = context.Process(
        target=_make_noise, args=(url, keys["noisy"], long, given.clients, given.kinds, going, ended, answered)
    )
    noise.start()
    try:
        with httpx.Client(base_url=url, timeout=_PATIENCE, headers=_headers(keys["quiet"])) as http:
            id_ = http.post("/conversations", json={}).json()["id"]
            http.post(f"/conversations/{id_}/messages/batch", json=batch(talk(20, 200))).raise_for_status()
            _visit(http, id_, pid)
            with _noisy(going):
                while answered.value < given.clients:  # its process has begun, and the first uses are made
                    time.sleep(0.1)
            for _ in range(given.rounds):
                time.sleep(_SETTLED)
                _note(waited.alone, _visit(http, id_, pid))
                with _noisy(going):
                    time.sleep(given.seconds)
                    before, began = answered.value, _cpu_seconds(pid)
                    _note(waited.beside, _visit(http, id_, pid))
                    waited.noisy.append((answered.value - before) / (_cpu_seconds(pid) - began))
    finally:
        ended.set()
        going.set()
        noise.join()
    return waited


def _long_conversation(url: str, key: str) -> str:
    with httpx.Client(base_url=url, timeout=_PATIENCE, headers=_headers(key)) as http:
        id_ = str(http.post("/conversations", json={}).json()["id"])
        for part in range(_LONG // 100):
            more = batch(talk(100, 600, seed=part))
            http.post(f"/conversations/{id_}/messages/batch", json=more).raise_for_status()
    return id_


@contextmanager
def _noisy(going: Event) -> Iterator[None]:
    going.set()
    try:
        yield
    finally:
        going.clear()


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _note(into: dict[str, list[tuple[float, float]]], times: dict[str, tuple[float, float]]) -> None:
    for name, took in times.items():
        into.setdefault(name, []).append(took)


def _visit(http: httpx.Client, id_: str, pid: int) -> dict[str, tuple[float, float]]:
    """The median milliseconds of each kind of small request: of time, and of CPU of the process meanwhile."""
    times: dict[str, list[tuple[float, float]]] = {}

    def timed(name: str, method: str, path: str, **further: Any) -> None:
        began, computed = time.monotonic(), _cpu_seconds(pid)
        http.request(method, path, **further).raise_for_status()
        took, meanwhile = time.monotonic() - began, _cpu_seconds(pid) - computed
        times.setdefault(name, []).append((1_000 * took, 1_000 * meanwhile))

    for number in range(_VISITS):
        timed("append", "POST", f"/conversations/{id_}/messages", json=user(f"And then, {number}?"))
        timed("page", "GET", f"/conversations/{id_}/messages?limit=5")
        timed("context", "GET", f"/conversations/{id_}/context")
        timed("chat", "POST", f"/conversations/{id_}/chat", json={"content": "What is next?"})
    return {
        name: (statistics.median(took for took, _ in seen), statistics.median(meanwhile for _, meanwhile in seen))
        for name, seen in times.items()
    }


def _cpu_seconds(pid: int) -> float:
    """The CPU time that a process has had so far, in all of its threads."""
    return time.clock_gettime(~pid << 3 | _CPU_OF_PROCESS)


def _make_noise(
    url: str, key: str, long: str, clients: int, kinds: list[str], going: Event, ended: Event, answered: Any
) -> None:
    def keep_sending(number: int) -> None:
        with httpx.Client(base_url=url, timeout=_PATIENCE, headers=_headers(key)) as http:
            kind = kinds[number % len(kinds)]
            body = batch(talk(30, 300, seed=number))
            going.wait()
            id_ = http.post("/conversations", json={}).json()["id"] if kind == "batches" else long
            while going.wait() and not ended.is_set():
                if kind == "batches":
                    sent = http.post(f"/conversations/{id_}/messages/batch", json=body)
                elif kind == "searches":
                    sent = http.get(f"/conversations/{id_}/search", params={"q": "lighthouse keeper"})
                else:
                    sent = http.post(f"/conversations/{id_}/context", json={"query": _QUESTION})
                if sent.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    sent.raise_for_status()
                with answered.get_lock():
                    answered.value += 1

    threads = [threading.Thread(target=keep_sending, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
