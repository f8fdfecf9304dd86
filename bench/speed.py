"""Measures how fast the service is, as ratios to other programs that are measured in turn with it in the same run.

``python -m bench.speed [--quick] [--messages 100000] [--rounds 40]`` measures three things:

* two appends and a context over HTTP, with each service as separate processes on one database: Throughline, an honest
  bare service and a naive one (``bench.bare``), in conversations of ten messages; Throughline also in conversations of
  forty that are folded up to the last two, where an append looks for anchors at once;
* the offline fold of a hundred messages, compared with a fixed piece of plain Python;
* a context, and a context with a question that is new each time, in a folded conversation of 100 000 messages (10 000
  with ``--quick``) compared with one of 1 000, and each with a question compared with the piece of plain Python
  (``bench/figures/pieces.py`` measures the same for commit 150b694). The short conversations of the rounds over HTTP
  are kept in the database, as in real use: the plans that Postgres keeps are made for the average conversation, and
  have to be good for a long one too.

A ratio is the median over all rounds of one round's ratio, with the 95 % interval of that median (order statistics);
the ratio of the shortest times is also printed. Times are wall times or, where it says CPU, CPU times: of the service's
process without the database's (Linux only), or of this process for contexts and folds. Wall times depend on what else
runs on the machine, and with much other work so do their ratios; CPU times hardly do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx
from sqlalchemy.engine import make_url

from app.client import AsyncThroughline
from app.client import endpoints as api
from app.core.state.apply import AppliedCandidate
from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.clock import SystemClock
from app.infrastructure.garbage import settle_garbage_collector
from app.storage.database import make_engine
from app.storage.migrations import run_migrations
from app.usecases.admin.keys import hash_of
from bench.fixture.served import keys_of
from bench.growth import compact, talk
from bench.process import running
from bench.report import print_table, write_json
from bench.scale import Bench, analyzed
from tests.acceptance.service import Process, Service, running_service
from tests.servers import ROOT, unused_port

OURS: Final = "ours"
FOLDED_OURS: Final = "ours, folded"
BARE: Final = ("honest", "naive")
ROLES: Final = ("user", "assistant")
PREFILLED: Final = 10
"""Messages of a conversation before two more are appended."""
EARLIER: Final = 30
"""Further messages before those in folded conversations: a fold of only a few may not be smaller than they."""
FOLDED: Final = 100
"""Messages of one fold."""
SMALL: Final = 1_000
LARGE: Final = 100_000
QUICK: Final = 10_000
BUDGET: Final = 4_000
"""Tokens of a context with a question."""
AMPLE: Final = 16_000
"""Tokens of a context with more room for folded messages than the conversation's own context has."""
_WARM: Final = 3  # rounds that do not count
_FOLDS: Final = 15
_CONTEXTS: Final = 15
_PIECE: Final = 12  # repetitions of the plain Python, which then takes a few hundredths of a second
_PIECE_NAME: Final = "piece"
_QUANTILE: Final = 1.96
_TENANT: Final = "00000000-0000-7000-8000-000000000001"
_ADD_KEY: Final = "INSERT INTO honest.api_keys (secret_hash, tenant_id, scopes) VALUES ($1, $2, '{read,write}')"
_SECRET: Final = "bench"  # noqa: S105 - of a bare service that nobody else reaches
_PLACES: Final = ("harbour", "bakery", "workshop", "gallery", "orchard", "station", "library", "garage")

CPU: Final = " (CPU)"
PARTS: Final[dict[str, str]] = {
    "all": "two appends and a context",
    "cpu": f"two appends and a context{CPU}",
    "appends": "appends",
    "context": "context",
}
"""The timed parts of a visit over HTTP, by name."""

Times = Mapping[str, Sequence[float]]
"""The seconds of each round, by what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long one thing takes as another."""

    name: str
    ratio: float
    low: float
    high: float
    """The upper end of the 95 % interval; ``low`` is the lower end."""
    ms: float
    """The median of the first thing, in milliseconds."""
    against_ms: float
    """The median of the second thing, in milliseconds."""
    least: float
    """The ratio of the shortest times of both, which other work on the machine lengthens least."""
    least_ms: float
    against_least_ms: float


def ratio_of(name: str, times: Sequence[float], against: Sequence[float]) -> Ratio:
    """The ratio of times that were measured in turn. Raises ``ValueError`` if the numbers of rounds differ."""
    ratios = sorted(one / other for one, other in zip(times, against, strict=True))
    low, high = interval(len(ratios))
    return Ratio(
        name=name,
        ratio=round(statistics.median(ratios), 3),
        low=round(ratios[low], 3),
        high=round(ratios[high], 3),
        ms=round(1_000 * statistics.median(times), 2),
        against_ms=round(1_000 * statistics.median(against), 2),
        least=round(min(times) / min(against), 3),
        least_ms=round(1_000 * min(times), 2),
        against_least_ms=round(1_000 * min(against), 2),
    )


def interval(count: int) -> tuple[int, int]:
    """The indexes of the sorted values between which the median lies with 95 % probability."""
    reach = math.floor((count - _QUANTILE * math.sqrt(count)) / 2)
    low = max(reach, 0)
    return low, count - 1 - low


# --- over HTTP


class Bare:
    """A bare service as a process."""

    def __init__(self, name: str, folder: Path, database_url: str) -> None:
        port = unused_port()
        self.url = f"http://127.0.0.1:{port}"
        factory = ("uvicorn", f"bench.bare.{name}:create_app", "--factory", "--host", "127.0.0.1", "--port", str(port))
        argv = (sys.executable, "-m", *factory, "--log-level", "warning", "--no-access-log")
        env = {**os.environ, "DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)}
        self.process = Process(name, argv, env, folder, self._answers)

    def client(self) -> httpx.Client:
        """A client with the key."""
        headers = {"Authorization": f"Bearer {_SECRET}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def _answers(self, _: Process) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/openapi.json", timeout=2, trust_env=False).is_success
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """A running service."""

    http: httpx.Client
    pid: int

    def cpu(self) -> float:
        """The CPU seconds that all threads of its process have used."""
        return sum(map(_ran, Path(f"/proc/{self.pid}/task").iterdir())) / 1e9


def _ran(task: Path) -> int:
    """The CPU nanoseconds of a thread; 0 if it has just ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return int((task / "schedstat").read_text().split()[0])
    return 0


@contextlib.contextmanager
def services(servers: Endpoints, folder: Path) -> Iterator[dict[str, Visited]]:
    """Run all three services as processes with one database."""
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(
            running_service(folder, database_url=servers.database_url, redis_url=servers.redis_url, worker=False)
        )
        bare = {name: Bare(name, folder, servers.database_url) for name in BARE}
        for each in bare.values():
            each.process.start()
            stack.callback(each.process.stop)
        asyncio.run(_add_key(servers.database_url))
        opened = {
            **dict.fromkeys(
                (OURS, FOLDED_OURS), Visited(http=stack.enter_context(_client(ours, servers)), pid=ours.api.pid)
            ),
            **{
                name: Visited(http=stack.enter_context(each.client()), pid=each.process.pid)
                for name, each in bare.items()
            },
        }
        for name in (OURS, BARE[0]):
            check_repetition(opened[name].http)
        yield opened


def check_repetition(client: httpx.Client) -> None:
    """Raise ``RuntimeError`` if an append that is sent twice is stored twice, which the service claims to prevent."""
    at = f"/conversations/{_good(client.post('/conversations', json={})).json()['id']}"
    ids = {_append(client, at, "Once.", f"once-{at}")["id"] for _ in range(2)}
    served = _good(client.get(f"{at}/context")).json()["messages"]
    if len(ids) != 1 or sum(message["content"] == "Once." for message in served) != 1:
        raise RuntimeError("an append that was sent twice is stored twice")


def _client(ours: Service, servers: Endpoints) -> httpx.Client:
    async def key() -> str:
        async with running(servers, SystemClock(), embedded=True) as process:
            return (await keys_of(process, ["bench"]))["bench"]

    return ours.client(asyncio.run(key()))


async def _add_key(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    connection = await asyncpg.connect(url)
    await connection.execute(_ADD_KEY, hash_of(_SECRET), _TENANT)
    await connection.close()


def over_http(visited: Mapping[str, Visited], rounds: int) -> dict[str, dict[str, list[float]]]:
    """The seconds of two appends, of a context and of both, by service, measured in turn."""
    found = {name: defaultdict[str, list[float]](list) for name in visited}
    for number in range(rounds + _WARM):
        messages = [message.content for message in talk(PREFILLED + 2, seed=1_000 + number)]
        order = list(visited)[number % len(visited) :] + list(visited)[: number % len(visited)]
        for name in order:
            took = _visit(visited[name], messages, f"{name}-{number}")
            if number >= _WARM:
                for part, seconds in took.items():
                    found[name][part].append(seconds)
    return {name: dict(parts) for name, parts in found.items()}


def _visit(service: Visited, messages: Sequence[str], key: str) -> dict[str, float]:
    """Fill a new conversation, then time its requests."""
    client = service.http
    body: dict[str, Any] | None = {"policy": {"triggers": []}} if key.startswith(OURS) else None
    at = f"/conversations/{_good(client.post('/conversations', json=body)).json()['id']}"
    is_folded = key.startswith(FOLDED_OURS)
    for number, message in enumerate(talk(EARLIER, seed=1) if is_folded else ()):
        _append(client, at, message.content, f"{key}-earlier-{number}", role=ROLES[number % 2])
    for number, content in enumerate(messages[:PREFILLED]):
        _append(client, at, content, f"{key}-{number}", role=ROLES[number % 2])
    if is_folded:
        _fold(client, at)
    cpu, began = service.cpu(), time.perf_counter()
    for number, content in enumerate(messages[PREFILLED:], PREFILLED):
        _append(client, at, content, f"{key}-{number}", role=ROLES[number % 2])
    appended = time.perf_counter()
    served = _good(client.get(f"{at}/context")).json()["messages"]
    ended = time.perf_counter()
    if not is_folded and len(served) < len(messages):
        raise RuntimeError(f"{len(served)} of {len(messages)} messages are served")
    parts = {"appends": appended - began, "context": ended - appended, "all": ended - began}
    return {**parts, "cpu": service.cpu() - cpu}


def _fold(client: httpx.Client, at: str) -> None:
    """Fold the conversation. Raises ``RuntimeError`` if nothing is folded."""
    status = _good(client.post(f"{at}/compact", json={"keep_tail_messages": 2})).json()["status"]
    if status != "applied":
        raise RuntimeError(f"a compaction ended as {status}")


def _append(client: httpx.Client, at: str, content: str, key: str, *, role: str = ROLES[0]) -> dict[str, Any]:
    body = {"role": role, "content": content}
    found: dict[str, Any] = _good(client.post(f"{at}/messages", json=body, headers={"Idempotency-Key": key})).json()
    return found


def _good(response: httpx.Response) -> httpx.Response:
    if not response.is_success:
        raise RuntimeError(f"{response.status_code} {response.text}")
    return response


# --- the fold


def folds(rounds: int = _FOLDS) -> Times:
    """Times of folds of texts that are new each time, measured in turn with a fixed piece of plain Python."""
    settle_garbage_collector()  # as the worker does that folds
    found: dict[str, list[float]] = {"fold": [], _PIECE_NAME: []}
    text = " ".join(message.content for message in talk(FOLDED, seed=1))
    for number in range(rounds + 1):
        span = talk(FOLDED, seed=2_000 + number)
        gc.collect()
        seconds, applied = _took(lambda span=span: compact(span))  # type: ignore[misc]  # bound where it is made
        if not isinstance(applied, AppliedCandidate):
            raise RuntimeError(f"refused: {applied}")  # noqa: TRY004 - a reason word is an answer, not a wrong type
        plain, _ = _took(lambda: _piece(text))
        if number:  # the first fold is left out: it compiles patterns
            found["fold"].append(seconds)
            found[_PIECE_NAME].append(plain)
    return found


def _took(work: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


def _piece(text: str) -> int:
    """A piece of plain Python on text (tokens, counted and sorted), whose time varies as that of any pure code does."""
    total = 0
    for _ in range(_PIECE):
        counted = Counter(re.findall(r"\w+", text.lower()))
        total += len(sorted(counted, key=lambda word: (-counted[word], word)))
    return total


# --- long conversations


async def contexts(servers: Endpoints, sizes: Sequence[int], rounds: int = _CONTEXTS) -> dict[str, Times]:
    """The seconds of each round, by kind of request and number of messages, measured in turn."""
    async with running(servers, SystemClock(), embedded=True) as process:
        engine = make_engine(servers.database_url)
        async with AsyncThroughline("http://localhost", transport=process.transport, timeout=600) as client:
            bench = Bench(process.container, client, engine)
            built = {size: await bench.build(size) for size in sizes}
            await analyzed(servers)
            settle_garbage_collector()  # as a process that serves does when it is ready
            numbers = itertools.count()
            requests: dict[str, Callable[[int], Awaitable[object]]] = {
                "context": lambda size: client.send(api.look_at_context(built[size].id)),
                "ample": lambda size: client.send(api.context(built[size].id, AMPLE)),
                "question": lambda size: client.send(
                    api.context(built[size].id, BUDGET, query=question(next(numbers)))
                ),
            }
            found = {name: await _in_turns(ask, sizes, rounds) for name, ask in requests.items()}
        await engine.dispose()
    return found


async def _in_turns(ask: Callable[[int], Awaitable[object]], sizes: Sequence[int], rounds: int) -> Times:
    """The wall and CPU seconds of each size, and of the piece of plain Python."""
    found: dict[str, list[float]] = {f"{name}{unit}": [] for name in (*sizes, _PIECE_NAME) for unit in ("", CPU)}
    text = " ".join(message.content for message in talk(FOLDED, seed=1))
    for number in range(rounds + 1):
        for name in (*sizes[:: 1 if number % 2 else -1], _PIECE_NAME):
            cpu, began = time.process_time(), time.perf_counter()
            if isinstance(name, int):
                await ask(name)
            else:
                _piece(text)
            if number:
                found[f"{name}"].append(time.perf_counter() - began)
                found[f"{name}{CPU}"].append(time.process_time() - cpu)
    return found


def question(number: int) -> str:
    """A question that was not asked before."""
    place = _PLACES[number % len(_PLACES)]
    return f"Which invoice did we send to the {place} on day {number}, and who asked for ORD-{10_000 + 7 * number}?"


# --- all of it


def ratios(http: Mapping[str, Times], folded: Times, long: Mapping[str, Times], sizes: Sequence[int]) -> list[Ratio]:
    """Every figure."""
    small, large = map(str, sizes)
    return [
        *(
            ratio_of(f"{label}: {ours} against {bare}", http[ours][part], http[bare][part])
            for part, label in PARTS.items()
            for ours, bare in ((OURS, BARE[0]), (FOLDED_OURS, BARE[0]), (OURS, BARE[1]))
        ),
        ratio_of(f"fold of {FOLDED} messages{CPU}: against plain Python", folded["fold"], folded[_PIECE_NAME]),
        *(
            ratio_of(
                f"{label}{unit}: {large} messages against {small}",
                long[name][f"{large}{unit}"],
                long[name][f"{small}{unit}"],
            )
            for name, label in (
                ("context", "context"),
                ("ample", f"context of {AMPLE} tokens"),
                ("question", "context with a new question"),
            )
            for unit in ("", CPU)
        ),
        *(
            ratio_of(
                f"context with a new question{unit}: {size} messages against plain Python",
                long["question"][f"{size}{unit}"],
                long["question"][f"{_PIECE_NAME}{unit}"],
            )
            for size in sizes
            for unit in ("", CPU)
        ),
    ]


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"a long conversation of {QUICK} messages")
    parser.add_argument("--messages", type=int, default=LARGE)
    parser.add_argument("--rounds", type=int, default=40, help="over HTTP")
    asked = parser.parse_args()
    sizes = (SMALL, QUICK if asked.quick else asked.messages)
    os.environ.pop("DATABASE_URL", None)
    with tempfile.TemporaryDirectory(prefix="tl-") as name, EmbeddedServers(Path(name), durable=False) as servers:
        run_migrations(servers.database_url)
        with services(servers, Path(name)) as visited:
            http = over_http(visited, asked.rounds)
        folded = folds()
        long = asyncio.run(contexts(servers, sizes))
    found = ratios(http, folded, long, sizes)
    print_table(
        ["what", "times", "95 % interval", "by the shortest", "ms", "against ms", "shortest ms", "against ms"],
        [
            [
                each.name,
                f"{each.ratio:.2f}",
                f"{each.low:.2f} to {each.high:.2f}",
                f"{each.least:.2f}",
                *map("{:.1f}".format, (each.ms, each.against_ms, each.least_ms, each.against_least_ms)),
            ]
            for each in found
        ],
    )
    settings: dict[str, Any] = {"rounds": asked.rounds, "messages": list(sizes), "cores": os.cpu_count()}
    settings["load"] = [round(each, 1) for each in os.getloadavg()]
    write_json("speed", {"settings": settings, "ratios": [asdict(each) for each in found]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
