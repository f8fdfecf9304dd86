"""Measures where an append, a context, a turn and a fold spend CPU time in this process, by the code that ran.

``python -m bench.spent [--rounds 60]`` sends requests directly to the application, without a server or a client, with a
database of its own, in conversations of ten messages, with the offline model. CPU is the median without a profiler. The
shares are from ``cProfile``, which overstates functions in Python compared with functions in C. It also counts the
statements of a request, and its transactions that take more than one message to the server. The file also runs in an
older checkout, as ``PYTHONPATH=. python <here>/bench/spent.py``: its imports are taken from there.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import event
from sqlalchemy.engine import Engine

from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.clock import SystemClock
from app.storage.connections import TenantConnection
from app.storage.migrations import run_migrations
from bench.fixture.served import keys_of
from bench.growth import compact, talk
from bench.process import running
from bench.report import print_table, write_json

PREFILLED: Final = 10
FOLDED: Final = 100
_WARM: Final = 5
_FOLDS: Final = 12
_PATIENCE: Final = 0.1
"""Seconds after which a client that leaves an answer has had enough of it."""
_PLACES: Final[dict[str, str]] = {
    "/sqlalchemy/": "SQLAlchemy",
    "/sqlmodel/": "SQLAlchemy",
    "/asyncpg/": "asyncpg",
    "/redis/": "Redis client",
    "/fastapi/": "FastAPI, Starlette, pydantic",
    "/starlette/": "FastAPI, Starlette, pydantic",
    "/pydantic": "FastAPI, Starlette, pydantic",
    "/asyncio/": "asyncio",
    "/selectors.py": "asyncio",
    "/app/http/": "app/http",
    "/app/storage/": "app/storage",
    "/app/usecases/": "app/usecases",
    "/app/core/text/": "app/core/text",
    "/app/core/": "app/core, the rest",
    "/app/": "app, the rest",
}
"""Whose code a file is, by a part of its path; the first match counts."""
_BUILT_IN: Final = "built in"
_OTHERS: Final = "others"


class Direct:
    """Sends requests to an application as a server would."""

    def __init__(self, app: Any, key: str) -> None:
        self._app = app
        self._headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())]

    async def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Send a request; return the answer's JSON. Raises ``RuntimeError`` for a refusal."""
        status, answer = await self._answer(method, path, body, key)
        if not 200 <= status < 300:
            raise RuntimeError(f"{status} {answer.decode()}")
        return json.loads(answer) if answer else None

    async def leave(self, method: str, path: str, body: Any = None, *, pieces: int) -> None:
        """Send a request, and leave when that many pieces of the answer have come, or after a tenth of a second."""
        await self._answer(method, path, body, None, pieces)

    async def _answer(
        self, method: str, path: str, body: Any, key: str | None, pieces: int | None = None
    ) -> tuple[int, bytes]:
        raw = b"" if body is None else json.dumps(body).encode()
        about = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode())]
        own = [] if key is None else [(b"idempotency-key", key.encode())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [*self._headers, *about, *own],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
            "scheme": "http",
            "state": {},
        }
        bodies = iter([{"type": "http.request", "body": raw, "more_body": False}])
        status, answer, come, enough = 0, b"", 0, asyncio.Event()

        async def receive() -> Any:
            if given := next(bodies, None):
                return given
            with suppress(TimeoutError):
                await asyncio.wait_for(enough.wait(), None if pieces is None else _PATIENCE)
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            nonlocal status, answer, come
            status = message.get("status", status)
            answer += message.get("body", b"")
            come += "body" in message
            if come == pieces:
                enough.set()

        await self._app(scope, receive, take)
        return status, answer


class StatementCounts:
    """Counts statements and transactions to the database."""

    def __init__(self) -> None:
        self.statements = 0
        self.transactions = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count within the block."""
        execute = TenantConnection.execute

        def stated(*_: object) -> None:
            self.statements += 1

        async def executing(driver: Any, query: str, *given: Any, **further: Any) -> Any:
            self.transactions += query.startswith("BEGIN")
            return await execute(driver, query, *given, **further)

        TenantConnection.execute = executing  # type: ignore[method-assign,assignment]
        event.listen(Engine, "before_cursor_execute", stated)
        try:
            yield
        finally:
            event.remove(Engine, "before_cursor_execute", stated)
            TenantConnection.execute = execute  # type: ignore[method-assign]


class Spent:
    """The costs of one operation."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.profile = cProfile.Profile(time.process_time)
        self.counts: list[tuple[int, int]] = []

    def shares(self) -> dict[str, float]:
        """The share of the time that each owner's code ran, without the code that it called."""
        by_place: defaultdict[str, float] = defaultdict(float)
        found: Any = pstats.Stats(self.profile)
        for (file, _, _), (_, _, own, _, _) in found.stats.items():
            by_place[_place_of(file)] += own
        total = sum(by_place.values())
        return {place: own / total for place, own in by_place.items()}


def _place_of(file: str) -> str:
    if file.startswith(("~", "<")):
        return _BUILT_IN
    return next((name for part, name in _PLACES.items() if part in file), _OTHERS)


async def requests(servers: Endpoints, rounds: int) -> dict[str, Spent]:
    """Measure appends, contexts and turns."""
    found = {name: Spent() for name in ("append", "context", "turn")}
    async with running(servers, SystemClock(), embedded=True) as process:
        key = (await keys_of(process, ["bench"]))["bench"]
        direct = Direct(process.transport.app, key)
        for number in range(2 * rounds + _WARM):
            texts = [message.content for message in talk(PREFILLED + 2, seed=1_000 + number)]
            made = await direct.send("POST", "/conversations", {"policy": {"triggers": []}})
            at = f"/conversations/{made['id']}"
            for place, content in enumerate(texts[:PREFILLED]):
                await direct.send("POST", f"{at}/messages", {"role": "user", "content": content}, f"{at}-{place}")
            asked: dict[str, tuple[str, str, Any]] = {
                "append": ("POST", f"{at}/messages", {"role": "user", "content": texts[-2]}),
                "context": ("GET", f"{at}/context", None),
                "turn": ("POST", f"{at}/chat", {"content": texts[-1]}),
            }
            for name, (method, path, body) in asked.items():
                once = None if method == "GET" else f"{name}-{number}"
                await _spend(found[name], number - _WARM, rounds, lambda: direct.send(method, path, body, once))  # noqa: B023
    return found


async def _spend(spent: Spent, number: int, rounds: int, send: Any) -> None:
    """Run an operation: first uncounted, then only timed, then with the profiler."""
    counts = StatementCounts()
    if number < 0:
        await send()
    elif number < rounds:
        with counts.counting():
            began = time.process_time()
            await send()
            spent.seconds.append(time.process_time() - began)
        spent.counts.append((counts.statements, counts.transactions))
    else:
        spent.profile.enable()
        await send()
        spent.profile.disable()


def folds() -> Spent:
    """The costs of folding a hundred messages."""
    spent = Spent()
    for number in range(2 * _FOLDS + 1):
        span = talk(FOLDED, seed=2_000 + number)
        gc.collect()
        if number > _FOLDS:
            spent.profile.runcall(compact, span)
            continue
        began = time.process_time()
        compact(span)
        if number:  # the first fold is left out: it compiles patterns
            spent.seconds.append(time.process_time() - began)
    return spent


def rows_of(found: dict[str, Spent]) -> list[list[str]]:
    """The lines of the table."""
    shares = {name: spent.shares() for name, spent in found.items()}
    places = Counter[str]()
    for one in shares.values():
        places.update(one)
    rows = [
        ["CPU, ms", *(f"{1_000 * statistics.median(spent.seconds):.1f}" for spent in found.values())],
        ["statements", *(_median(spent.counts, 0) for spent in found.values())],
        ["transactions of several messages", *(_median(spent.counts, 1) for spent in found.values())],
    ]
    return [
        *rows,
        *([place, *(f"{one.get(place, 0):.0%}" for one in shares.values())] for place, _ in places.most_common()),
    ]


def _median(counts: Sequence[tuple[int, int]], place: int) -> str:
    return f"{statistics.median(one[place] for one in counts):g}" if counts else "–"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.spent", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    os.environ.pop("DATABASE_URL", None)
    with tempfile.TemporaryDirectory(prefix="tl-") as name, EmbeddedServers(Path(name), durable=False) as servers:
        run_migrations(servers.database_url)
        found = asyncio.run(requests(servers, asked.rounds))
    found[f"fold of {FOLDED} messages"] = folds()
    rows = rows_of(found)
    print_table(["", *found], rows)
    write_json("spent", {"rounds": asked.rounds, "rows": rows, "load": os.getloadavg()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
