"""Measures the cost of comparing the history that a client sends under a name with the stored one.

``python -m bench.named_histories [--messages 100 1000 4000] [--write]`` asks ``/v1/chat/completions`` with a history of
so many messages and one new question, under the name of the conversation that has these messages. It asks the same
conversation the same question through ``/conversations/{id}/chat``, which gets only the question. The difference is the
cost of reading the request and comparing. Figures are CPU of the whole process, the median of some requests, with the
offline model and an embedded PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from app.devserver import EmbeddedServers
from app.infrastructure.clock import SystemClock
from app.storage.migrations import run_migrations
from bench.measurements import write
from bench.process import Process, running
from bench.report import print_table, table

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
SIZES: Final = (100, 1_000, 4_000)
ROUNDS: Final = 5
BATCH: Final = 500
WINDOW: Final = 1_000_000
"""Tokens of a window so large that nothing is folded: only the comparison is measured."""
_HEADERS: Final = ("messages", "kB of the request", "CPU under a name, ms", "of the question alone, ms", "µs a message")


def history(messages: int) -> list[dict[str, str]]:
    """Questions and answers in turn, each of about twelve words."""
    roles = ("user", "assistant")
    texts = (
        f"Line {number}: crate {number * 7 % 1_000} goes to room {number % 40} today." for number in range(messages)
    )
    return [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]


async def measure(process: Process, messages: int) -> tuple[str, ...]:
    """One row of the table."""
    stored_messages = history(messages)
    conversation = await _stored(process, stored_messages)
    named, alone, size = [], [], 0
    for number in range(ROUNDS):
        question = f"Which room has crate {number}?"
        alone.append(await _asked(process, f"/conversations/{conversation}/chat", {"content": question}))
        stored_messages += await _last(process, conversation, 2)
        messages_sent = [*stored_messages, {"role": "user", "content": question}]
        body = {"model": "throughline", "messages": messages_sent, "conversation": conversation}
        named.append(await _asked(process, "/v1/chat/completions", body))
        stored_messages += await _last(process, conversation, 2)
        size = len(json.dumps(body))
    under_name, without = statistics.median(named), statistics.median(alone)
    each = (under_name - without) / messages
    return (
        f"{messages:,}",
        f"{size / 1e3:,.0f}",
        f"{under_name * 1e3:.0f}",
        f"{without * 1e3:.0f}",
        f"{each * 1e6:.0f}",
    )


async def _stored(process: Process, messages_sent: Sequence[dict[str, str]]) -> str:
    made = await process.http.post("/conversations", json={"policy": {"context_window": WINDOW}})
    id_ = str(made.raise_for_status().json()["id"])
    for start in range(0, len(messages_sent), BATCH):
        batch = {"messages": messages_sent[start : start + BATCH]}
        (await process.http.post(f"/conversations/{id_}/messages/batch", json=batch)).raise_for_status()
    return id_


async def _asked(process: Process, path: str, body: dict[str, Any]) -> float:
    """The seconds of CPU that an answer takes."""
    began = time.process_time()
    answer = await process.http.post(path, json=body)
    seconds = time.process_time() - began
    done = answer.raise_for_status().headers.get("X-Throughline", "stored")
    if not done.startswith("stored"):
        raise RuntimeError(f"the history was not recognised: {done}")
    return seconds


async def _last(process: Process, conversation: str, count: int) -> list[dict[str, str]]:
    parameters: dict[str, str | int] = {"limit": count, "order": "desc"}
    page = await process.http.get(f"/conversations/{conversation}/messages", params=parameters)
    newest = page.raise_for_status().json()["data"]
    return [{"role": one["role"], "content": one["content"]} for one in reversed(newest)]


async def main(sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """The rows of all sizes."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        await asyncio.to_thread(run_migrations, servers.database_url)
        async with running(servers, SystemClock(), embedded=True, chat_model="offline") as process:
            return [await measure(process, size) for size in sizes]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=SIZES)
    parser.add_argument("--write", action="store_true", help=f"put the table into docs/{PAGE.name}")
    arguments = parser.parse_args()
    rows = asyncio.run(main(arguments.messages))
    print_table(_HEADERS, rows)
    if arguments.write:
        write("named-histories", table(_HEADERS, rows))
