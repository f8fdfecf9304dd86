"""Counts what requests leave behind in a process: objects of Python, and memory.

``python -m bench.memory [--rounds 60]`` sends requests directly to the application, with a database of its own and the
offline model. A round makes a conversation, stores messages, answers turns, lets a client leave in the middle of
answers and of events, compacts, recalls, erases a message and deletes the conversation. Every round has the same texts,
so caches by text are full after the first ones. What grows from then on is kept by mistake, or in a bounded cache by
conversation. Texts that are new fill caches up to their bounds.

Objects are those that Python's garbage collector follows, counted after a collection. Memory is what the system has
given to this process, which also runs the bench.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.clock import SystemClock
from app.storage.migrations import run_migrations
from bench.fixture.served import keys_of
from bench.growth import talk
from bench.process import running
from bench.report import print_table, write_json
from bench.spent import Direct

STORED: Final = 30
_PARTS: Final = 3
_SHOWN: Final = 8
"""How many kinds of objects are shown, those that grew most."""


class Counted:
    """The objects and the memory of this process at one moment."""

    def __init__(self) -> None:
        gc.collect()
        self.kinds = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
        self.megabytes = _resident_bytes() / 1_000_000


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def one_round(direct: Direct, number: int) -> None:
    """Every kind of request that reads or writes texts, in a conversation of its own, which is deleted at the end."""
    texts = [message.content for message in talk(STORED + 6, seed=7)]
    made = await direct.send("POST", "/conversations", {"policy": {"context_window": 4_000}})
    at = f"/conversations/{made['id']}"
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts[:STORED])
    ]
    await direct.send("POST", f"{at}/messages/batch", {"messages": messages}, f"batch-{number}")
    question, cut, other, shown, *_ = texts[STORED:]
    await direct.send("POST", f"{at}/chat", {"content": question}, f"chat-{number}")
    await direct.leave("POST", f"{at}/chat/stream", {"content": cut}, pieces=3)
    await direct.leave("GET", f"{at}/events", pieces=1_000)
    words = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": shown}]}
    await direct.leave("POST", f"{at}/ui", {"trigger": "submit-message", "message": words}, pieces=2)
    await direct.leave("POST", "/v1/responses", {"model": "throughline", "input": other, "stream": True}, pieces=2)
    await direct.send("POST", "/v1/responses", {"model": "throughline", "input": other}, f"response-{number}")
    await direct.send("POST", f"{at}/compact", {}, f"compact-{number}")
    await direct.send("POST", f"{at}/context", {"query": question})
    for path in ("/context", "/stats", "/states", "/anchors", "/segments"):
        await direct.send("GET", f"{at}{path}")
    await direct.leave("GET", f"{at}/export", pieces=1)
    page = await direct.send("GET", f"{at}/messages")
    await direct.send("DELETE", f"{at}/messages/{page['data'][4]['id']}")
    await direct.send("DELETE", at)


async def counted(servers: Endpoints, rounds: int) -> list[Counted]:
    """What there is after each third of the rounds."""
    found = []
    async with running(servers, SystemClock(), embedded=True) as process:
        direct = Direct(process.transport.app, (await keys_of(process, ["bench"]))["bench"])
        for number in range(rounds):
            await one_round(direct, number)
            if (number + 1) % (rounds // _PARTS) == 0:
                found.append(Counted())
    return found


def rows_of(found: list[Counted], rounds: int) -> list[list[str]]:
    """The lines of the table: all objects, the kinds that grew most, and memory; last the growth of a round."""
    each, last = rounds // _PARTS, found[-1]
    grown = sorted(last.kinds, key=lambda kind: found[-2].kinds[kind] - last.kinds[kind])[:_SHOWN]
    per_round = (last.kinds.total() - found[-2].kinds.total()) / each
    return [
        ["objects", *(str(one.kinds.total()) for one in found), f"{per_round:.2f}"],
        *(
            [kind, *(str(one.kinds[kind]) for one in found), f"{(last.kinds[kind] - found[-2].kinds[kind]) / each:.2f}"]
            for kind in grown
        ),
        [
            "memory, MB",
            *(f"{one.megabytes:.0f}" for one in found),
            f"{(last.megabytes - found[-2].megabytes) / each:.2f}",
        ],
    ]


def main() -> int:
    """Count, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    rounds = asked.rounds // _PARTS * _PARTS
    os.environ.pop("DATABASE_URL", None)
    with tempfile.TemporaryDirectory(prefix="tl-") as name, EmbeddedServers(Path(name), durable=False) as servers:
        run_migrations(servers.database_url)
        found = asyncio.run(counted(servers, rounds))
    rows: Any = rows_of(found, rounds)
    heads = [f"after {(number + 1) * (rounds // _PARTS)}" for number in range(_PARTS)]
    print_table(["what", *heads, "a round"], rows)
    write_json("memory", {"rounds": rounds, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
