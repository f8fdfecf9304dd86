"""Measures folds and questions of commit 150b694 relative to plain Python, to compare them with ``bench.speed``.

Milliseconds of two machines can't be compared, but multiples of the time of a fixed piece of plain Python can. Run it
in a checkout of that commit, with its requirements installed there:

    python THIS-CHECKOUT/bench/figures/pieces.py 1000 100000 > pieces.json

The modules are those of that commit, imported by their names then; nothing of today's code is imported. The same is
measured as in ``bench.speed``, and as often: folds of a hundred messages, and contexts with a new question in
conversations with the given numbers of messages.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROUNDS: Final = 15
_PIECE: Final = 12
_BUDGET: Final = 4_000
_PLACES: Final = ("harbour", "bakery", "workshop", "gallery", "orchard", "station", "library", "garage")


def piece(text: str) -> int:
    """The piece of plain Python on text that ``bench.speed`` has too."""
    total = 0
    for _ in range(_PIECE):
        counted = Counter(re.findall(r"\w+", text.lower()))
        total += len(sorted(counted, key=lambda word: (-counted[word], word)))
    return total


def question(number: int) -> str:
    """A question that was not asked before, as in ``bench.speed``."""
    place = _PLACES[number % len(_PLACES)]
    return f"Which invoice did we send to the {place} on day {number}, and who asked for ORD-{10_000 + 7 * number}?"


def ratio_of(times: Sequence[float], pieces: Sequence[float]) -> dict[str, float]:
    """The median of the rounds' ratios, with the medians of both in milliseconds."""
    ratio = statistics.median(one / other for one, other in zip(times, pieces, strict=True))
    ms, against_ms = (round(1_000 * statistics.median(each), 1) for each in (times, pieces))
    return {"ratio": round(ratio, 2), "ms": ms, "against_ms": against_ms}


def folds(growth: Any, text: str) -> dict[str, float]:
    """CPU times of folds of texts that are new each time, measured in turn with the piece."""
    times, pieces = [], []
    for number in range(ROUNDS + 1):
        span = growth.talk(100, seed=2_000 + number)
        gc.collect()
        began = time.process_time()
        growth.compact(span)
        folded = time.process_time()
        piece(text)
        if number:  # the first fold is left out: it compiles patterns
            times.append(folded - began)
            pieces.append(time.process_time() - folded)
    return ratio_of(times, pieces)


async def questions(scale: Any, servers: Any, sizes: Sequence[int], text: str) -> dict[int, dict[str, float]]:
    """Wall times of contexts with a question, measured in turn for all sizes and the piece."""
    api = import_module("app.client.endpoints")
    numbers = itertools.count()
    async with scale.bench_on(servers) as bench:
        built = {size: await bench.build(size) for size in sizes}
        await scale._analyzed(servers)  # noqa: SLF001 - the checkout has no other way
        settle()
        times: dict[int, list[float]] = {size: [] for size in sizes}
        pieces = []
        for number in range(ROUNDS + 1):
            for size in sizes[:: 1 if number % 2 else -1]:
                began = time.perf_counter()
                await bench._client.send(api.context(built[size].id, _BUDGET, query=question(next(numbers))))  # noqa: SLF001
                if number:
                    times[size].append(time.perf_counter() - began)
            began = time.perf_counter()
            piece(text)
            if number:
                pieces.append(time.perf_counter() - began)
    return {size: ratio_of(times[size], pieces) for size in sizes}


def settle() -> None:
    """Collect garbage as seldom as today's processes do."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 100)


def main(sizes: Sequence[int]) -> None:
    """Measure and print as JSON."""
    sys.path.insert(0, str(Path.cwd()))
    os.environ.pop("DATABASE_URL", None)
    growth, scale = import_module("bench.growth"), import_module("bench.scale")
    text = " ".join(message.content for message in growth.talk(100, seed=1))
    settle()
    found: dict[str, Any] = {"fold of 100 messages": folds(growth, text)}
    embedded, migrations = import_module("app.embedded"), import_module("app.adapters.migrations")
    with tempfile.TemporaryDirectory() as name, embedded.EmbeddedServers(Path(name), durable=False) as servers:
        migrations.run_migrations(servers.database_url)
        for size, ratio in asyncio.run(questions(scale, servers, sizes, text)).items():
            found[f"context with a new question, {size} messages"] = ratio
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(tuple(int(each) for each in sys.argv[1:]))
