"""Compares Throughline with what people would use instead, in one run, on the same talk and database server.

``python -m bench.peers [--quick] [--messages 10 1000 …] [--peers adk …] [--rounds 20] [--write]`` plays turns in
conversations of 10, 1 000, 10 000 and 100 000 messages: the user's message is stored, the model's input is loaded, the
reply is stored. No model is asked. Each peer has its own database. Each framework runs as a process in its own
environment, and measures its own wall and CPU time. Services are called over HTTP: their time is that of the caller,
their CPU that of the caller and the service. The CPU of the database is not counted.

A ratio is the median of the rounds' ratios to the first row, with the 95 % interval of that median. Prompt tokens are
those of Throughline's estimator for every peer. *From cache* is the longest beginning that the prompt before also had;
*paid* counts it at a tenth. A framework whose packages cannot be installed is left out, and named.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from app.core.text.token_counts import weigh
from app.devserver import EmbeddedServers, Endpoints
from bench.measurements import write
from bench.peers.databases import Database
from bench.peers.environments import FRAMEWORKS, UnavailableError
from bench.peers.frameworks import framework
from bench.peers.played import Peer, Talk
from bench.peers.rounds import Played, play
from bench.peers.services import BARE, OURS, bare, ours
from bench.peers.tables import HEADERS, figures, markdown, table
from bench.report import print_table, write_json

MESSAGES: Final = (10, 1_000, 10_000, 100_000)
QUICK: Final = (10, 1_000)
ROUNDS: Final = 20
QUICK_ROUNDS: Final = 3
TURNS: Final = 60
"""The least number of turns of peers that fold, so that they fold several times."""
LONG: Final = 1_000
"""From so many messages on these peers play more turns; a shorter conversation would become much longer by them."""


@contextlib.contextmanager
def opened(names: Sequence[str], servers: Endpoints, folder: Path) -> Iterator[list[Peer]]:
    """Start the peers of these names that are available, Throughline first."""
    with contextlib.ExitStack() as stack:
        found: list[Peer] = []
        if not set(OURS).isdisjoint(names):
            both = stack.enter_context(ours(_database(servers, "ours"), servers.redis_url, folder))
            found += [both[name] for name in OURS if name in names]
        for name in names:
            try:
                if name in BARE:
                    found.append(stack.enter_context(bare(name, _database(servers, name), folder)))
                elif name in FRAMEWORKS:
                    found.append(stack.enter_context(framework(name, _database(servers, name), folder)))
            except UnavailableError as error:
                print(f"LEFT OUT: {name}: {error}")
        yield found


def _database(servers: Endpoints, name: str) -> Database:
    return Database(servers.database_url, f"peers_{name.replace('-', '_')}")


@functools.lru_cache(maxsize=500_000)
def tokens(role: str, text: str) -> int:
    """The tokens of one message as it would be sent to a model."""
    return weigh(role, text).tokens


def run(messages: Sequence[int], names: Sequence[str], rounds: int, turns: int) -> Iterator[Played]:
    """Play conversations of every length with the same peers."""
    with tempfile.TemporaryDirectory(prefix="tl-") as name, EmbeddedServers(Path(name), durable=False) as servers:
        folder = Path(name)
        talk = Talk(max(messages) + 2 * (max(rounds, turns) + 2), folder)
        with opened(names, servers, folder) as peers:
            for count in messages:
                played = turns if count >= LONG else rounds
                yield play(peers, talk, count, rounds=rounds, turns=played, weigh=tokens)


def page(played: Played) -> str:
    """The text for ``docs/measurements.md``."""
    made = f"Python {platform.python_version()}, {os.cpu_count()} cores with a load of {os.getloadavg()[1]:.0f}"
    heading = f"{played.messages:,} messages, {played.rounds} rounds ({datetime.now(UTC).date()}, {made}):"
    return f"{heading}\n\n{markdown(HEADERS, table(played))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, write."""
    everybody = (*OURS, *BARE, *FRAMEWORKS)
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Throughline beside others.")
    parser.add_argument("--quick", action="store_true", help="short conversations, few rounds")
    parser.add_argument("--messages", type=int, nargs="+", help="of a conversation, even numbers")
    parser.add_argument("--peers", nargs="+", choices=everybody, default=everybody, help="ratios are against the first")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    asked = parser.parse_args(arguments)
    messages = asked.messages or (QUICK if asked.quick else MESSAGES)
    rounds = asked.rounds or (QUICK_ROUNDS if asked.quick else ROUNDS)
    os.environ.pop("DATABASE_URL", None)
    settings: dict[str, Any] = {"cores": os.cpu_count(), "load": [round(each, 1) for each in os.getloadavg()]}
    found: list[dict[str, Any]] = []
    for played in run(messages, asked.peers, rounds, rounds if asked.quick else TURNS):
        print(f"\n{played.messages} messages")
        print_table(HEADERS, table(played))
        found.append(figures(played))
        write_json("peers", {"settings": settings, "played": found})
        if asked.write:
            write(f"bench:peers-{played.messages}", page(played))
    return 0


if __name__ == "__main__":
    sys.exit(main())
