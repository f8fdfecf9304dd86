"""Compares new questions to two checkouts, in turns over one database, and says whether both serve the same.

``python -m bench.turns CHECKOUT [--messages 100 1000 100000] [--rounds 40] [--data-dir DIR]`` imports and folds
conversations of these lengths as ``bench.scale`` does (its folder can be given), and starts a process of each checkout:
the other one, and this. Each round asks both the same new question, in changing order, and makes a request of another
kind, of which only the answers are compared. A ratio is the median over all rounds of this checkout's time divided by
the other's, with the 95 % interval of that median. The command ends with status 1 if an answer differs. Both checkouts
need the same tables.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.devserver import EmbeddedServers, Endpoints
from app.storage.migrations import run_migrations
from bench.checkouts import script_for
from bench.report import print_table, write_json
from bench.scale import analyzed, bench_on, kept, questions
from bench.speed import CPU, Times, ratio_of
from tests.servers import ROOT

BUDGET: Final = 4_000
"""Tokens of a context."""
OTHER: Final = "other"
THIS: Final = "this"
_WARM: Final = 3  # rounds that do not count
_SEEDS: Final = (3, 5, 7, 11)
KINDS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"budget": 1_000},
    {"budget": 16_000},
    {"budget": BUDGET, "query": None},
    {"budget": BUDGET, "query": None, "passages": [{"text": "The key hangs behind the barometer.", "source": "note"}]},
    {"budget": BUDGET, "sections": {"anchors": False}},
    {"budget": BUDGET, "sections": {"state": False, "held": False}},
    {"budget": BUDGET, "sections": {"levels": ["tags"]}},
    {"budget": BUDGET, "sections": {"recalled": False}},
)
"""Further requests, of which only the answers are compared."""
_CHILD: Final = Path(__file__).with_name("turns_child.py")


class Asked:
    """A process of a checkout that answers questions, one line each."""

    def __init__(self, checkout: Path, servers: Endpoints) -> None:
        env = {**os.environ, "DATABASE": servers.database_url, "REDIS": servers.redis_url, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", script_for(_CHILD, checkout)],
            cwd=checkout,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, conversation_id: UUID, **body: Any) -> Mapping[str, Any]:
        """The seconds, the CPU seconds and the hash of the answer to a request for a context."""
        sends, answers = self._process.stdin, self._process.stdout
        assert sends is not None and answers is not None  # noqa: S101, PT018 - they are pipes
        sends.write(json.dumps({"id": str(conversation_id), "body": body}) + "\n")
        sends.flush()
        found: dict[str, Any] = json.loads(answers.readline())
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


@contextlib.contextmanager
def asked(checkout: Path, servers: Endpoints) -> Iterator[Asked]:
    """Run a process of a checkout."""
    process = Asked(checkout, servers)
    try:
        yield process
    finally:
        process.close()


async def built(servers: Endpoints, folder: Path, sizes: Sequence[int]) -> dict[int, UUID]:
    """The conversations, made now unless they are in the folder."""
    async with bench_on(servers) as bench:
        found = {size: (await kept(bench, folder / f"scale-{size}.json", size)).id for size in sizes}
        await analyzed(servers)
    return found


def in_turns(processes: Mapping[str, Asked], conversations: Mapping[int, UUID], rounds: int) -> tuple[Times, int]:
    """The wall and CPU seconds by size and checkout, and how many answers differ."""
    found: dict[str, list[float]] = {}
    new = list(dict.fromkeys(chain.from_iterable(map(questions, _SEEDS))))
    differing, number = 0, 0
    for round_ in range(rounds + _WARM):
        for size, conversation_id in conversations.items():
            query = new[number % len(new)]
            number += 1
            names = list(processes)[:: 1 if round_ % 2 else -1]
            answers = {name: processes[name].ask(conversation_id, query=query, budget=BUDGET) for name in names}
            other = {"query": query} | KINDS[round_ % len(KINDS)]
            differing += _differ(answers.values())
            differing += _differ([processes[name].ask(conversation_id, **other) for name in names])
            for name, answer in answers.items() if round_ >= _WARM else ():
                found.setdefault(f"{size} {name}", []).append(answer["seconds"])
                found.setdefault(f"{size} {name}{CPU}", []).append(answer["cpu"])
    return found, differing


def _differ(answers: Iterable[Mapping[str, Any]]) -> bool:
    return len({answer["hash"] for answer in answers}) > 1


def main() -> int:
    """Measure, print, write; 1 if an answer differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--messages", type=int, nargs="+", default=[100, 1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--data-dir", type=Path, help="where the conversations stay for the next run")
    given = parser.parse_args()
    os.environ.pop("DATABASE_URL", None)
    with contextlib.ExitStack() as stack:
        folder = given.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl-")))
        folder.mkdir(parents=True, exist_ok=True)
        servers = stack.enter_context(EmbeddedServers(folder, durable=False))
        run_migrations(servers.database_url)
        conversations = asyncio.run(built(servers, folder, given.messages))
        checkouts = {OTHER: given.checkout.resolve(), THIS: ROOT}
        processes = {name: stack.enter_context(asked(at, servers)) for name, at in checkouts.items()}
        times, differing = in_turns(processes, conversations, given.rounds)
    ratios = [
        ratio_of(f"{size} messages{unit}", times[f"{size} {THIS}{unit}"], times[f"{size} {OTHER}{unit}"])
        for size in conversations
        for unit in ("", CPU)
    ]
    print_table(
        ["a new question", "times", "95 % interval", "ms", "other ms", "shortest ms", "other's"],
        [
            [
                each.name,
                f"{each.ratio:.2f}",
                f"{each.low:.2f} to {each.high:.2f}",
                *map("{:.1f}".format, (each.ms, each.against_ms, each.least_ms, each.against_least_ms)),
            ]
            for each in ratios
        ],
    )
    print(f"\n{differing} answers differ")
    write_json("turns", {"ratios": [asdict(each) for each in ratios], "differing": differing})
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
