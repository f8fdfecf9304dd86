"""An hour without the model in two minutes: ``python -m bench.outage [--talks N] [--seconds S] [--faults …]``.

An API and a worker with embedded servers and a scripted Gemini server. Their pauses are a thirtieth of those in
production (``bench/outage_scaled.py``, and the settings below). While the model, PostgreSQL or Valkey is away,
conversations grow beyond their thresholds, and users chat, append, compact and read. Then it comes back, and it is
measured how long it takes until all conversations are folded again, and how many calls that takes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from sqlalchemy.engine import make_url

from app.devserver import Endpoints
from app.devserver.run import Commands
from app.settings import Settings
from app.storage.migrations import run_migrations
from bench.chaos.cluster import POSTGRES_SOCKET
from bench.chaos.links import Links
from bench.measurements import write
from bench.outage_scaled import FACTOR
from tests.acceptance.chaos import Books, FaithfulFollower, OwnServers
from tests.acceptance.service import NotReadyError, Service
from tests.acceptance.talk import WINDOW, Talk, lines
from tests.gemini_server import KINDS, Gemini, gemini_process
from tests.servers import execute_sql

MODEL_FAULTS: Final = ("refuse", "silent", "error_500", "error_429", "error_401", "third", "flap")
"""What the model does: its port is closed, it never answers, it answers with this error, it answers each third call
only, or it is up and down for twenty seconds each.
"""
SERVER_FAULTS: Final = ("postgres", "valkey")
"""The server whose port is closed, while the model answers."""
FAULTS: Final = (*MODEL_FAULTS, *SERVER_FAULTS)
_PAGE: Final = Path("docs/reliability.md")
_USERS: Final = 2
_FOLLOWED: Final = 3
"""How many streams of events are followed while a server is away."""
_CREATED: Final = 201
_NOT_STORED: Final = frozenset({"dependency_unavailable", "turn_in_progress"})
"""Errors after which a message is not said to be stored."""
_MESSAGES: Final = 56
"""They exceed the budget of a small window."""
_PATIENCE: Final = 600.0
_SETTINGS: Final = {
    "THROUGHLINE_CHAT_TIMEOUT_SECONDS": "3",
    "THROUGHLINE_COMPACTION_TIMEOUT_SECONDS": "3",
    "THROUGHLINE_JOB_SECONDS": "15",
    "THROUGHLINE_MODEL_PAUSE_SECONDS": "1",
    "GOOGLE_API_KEY": "test",
}
_FLAP_SECONDS: Final = 20 / FACTOR
_OPEN: Final = "context_tokens >= trigger_tokens AND deleted_at IS NULL"


class Scaled(Service):
    """A service whose hours are short."""

    def _commands(self, settings: Settings) -> Commands:
        plain = super()._commands(settings)
        return Commands(api=_scaled(plain.api), worker=_scaled(plain.worker))


def _scaled(command: tuple[str, ...]) -> tuple[str, ...]:
    python, flag, *module = command
    return (python, flag, "bench.outage_scaled", *module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one outage did."""

    fault: str
    answers: Counter[str]
    """What users were told, by request."""
    lost: int
    """Messages that an answer named as stored and that are not in the history exactly once, or that it did not name
    although the database was there.
    """
    calls: int
    """Calls for summaries that reached the model in the outage; closed ports count nothing."""
    most: int
    """The most of them of one conversation."""
    folded_after: float
    """The seconds until no conversation was above its threshold any more."""
    calls_after: int
    most_after: int
    """The most calls for summaries of one conversation after the return."""

    def row(self, talks: int) -> str:
        """The outcome as a row of the page's table."""
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.answers.items()))
        after = f"{self.folded_after:.0f} s | {self.calls_after} ({self.most_after})"
        return f"| {self.fault} | {talks} | {told} | {self.lost} | {self.calls} ({self.most}) | {after} |"


@contextlib.contextmanager
def running() -> Iterator[tuple[Service, Gemini, Links]]:
    """Run a service, its servers and its model."""
    with (
        tempfile.TemporaryDirectory(prefix="outage-") as folder,
        OwnServers(Path(folder) / "servers") as servers,
        gemini_process() as gemini,
        Links() as links,
    ):
        run_migrations(servers.endpoints.database_url)
        port = links.open("model", gemini.url.replace("http", "tcp"))
        settings = {**_SETTINGS, "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}"}
        service = Scaled(Path(folder), **_addresses(servers.endpoints, links), settings=settings)
        try:
            for process in service.processes:
                process.start(wait=False)
            for process in service.processes:
                _await_ready(process.wait_ready)
            yield service, gemini, links
        finally:
            service.stop()


def _addresses(servers: Endpoints, links: Links) -> dict[str, str]:
    """The addresses of proxies before the two servers."""
    database = make_url(servers.database_url)
    postgres = links.open("postgres", f"unix://{database.query['host']}/{POSTGRES_SOCKET}")
    valkey = links.open("valkey", servers.redis_url.partition("?")[0])
    through = database.set(host="127.0.0.1", port=postgres, query={})
    return {
        "database_url": through.render_as_string(hide_password=False),
        "redis_url": f"redis://127.0.0.1:{valkey}/0",
    }


def _await_ready(wait: Callable[[], None]) -> None:
    for last in (False, False, True):  # a busy machine may take minutes
        try:
            wait()
        except NotReadyError:
            if last:
                raise
        else:
            return


def play(service: Service, gemini: Gemini, links: Links, fault: str, count: int, seconds: float) -> Outcome:
    """Play one outage with new conversations, and wait until it is over for all of them."""
    gemini.reset()
    talks = _begun(service, count) if fault in SERVER_FAULTS else []
    with contextlib.ExitStack() as listening:
        followers = [listening.enter_context(FaithfulFollower(talk)) for talk in talks[:_FOLLOWED]]
        with _broken(fault, gemini, links):
            talks = talks or _begun(service, count)
            with ThreadPoolExecutor(_USERS) as users:
                until = time.monotonic() + seconds
                uses = list(users.map(lambda seed: Use(talks, random.Random(seed), until), range(_USERS)))
            calls = [_talk_of(call) for call in gemini.requests("compaction")]
        took = _until_folded(service)
        for follower in followers:
            follower.check(Books(service.database_url))
    after = Counter(_talk_of(call) for call in gemini.requests("compaction")[len(calls) :])
    outcome = Outcome(
        fault=fault,
        answers=sum((use.told for use in uses), Counter[str]()),
        lost=sum(use.lost for use in uses) + _misplaced(talks, [one for use in uses for one in use.stored]),
        calls=len(calls),
        most=max(Counter(calls).values(), default=0),
        folded_after=took,
        calls_after=after.total(),
        most_after=max(after.values(), default=0),
    )
    for talk in talks:
        talk.close()
    return outcome


def _begun(service: Service, count: int) -> list[Talk]:
    """Conversations that are beyond their thresholds."""
    talks = [Talk.begin(service, policy={**WINDOW, "calls_per_hour": 1_000}) for _ in range(count)]
    for number, talk in enumerate(talks):
        talk.batch([(role, f"talk-{number:03d} {text}") for role, text in lines(_MESSAGES)])
    return talks


@contextlib.contextmanager
def _broken(fault: str, gemini: Gemini, links: Links) -> Iterator[None]:
    """Break something while the body runs."""
    ended = threading.Event()
    with contextlib.ExitStack() as undo:
        if fault in SERVER_FAULTS:
            undo.callback(links.set, fault, "pass")
            links.set(fault, "refuse")
        elif fault in {"refuse", "silent"}:
            undo.callback(links.set, "model", "pass")
            links.set("model", "refuse" if fault == "refuse" else "silent")
        else:
            undo.callback(_answer, gemini, "honest")
            if fault == "third":
                for kind in KINDS:
                    gemini.script(kind, *["error_500", "error_500", "honest"] * 2_000)
            elif fault == "flap":
                thread = undo.enter_context(ThreadPoolExecutor(1))
                undo.callback(ended.set)
                thread.submit(_flap, gemini, ended)
            else:
                _answer(gemini, fault)
        yield


def _answer(gemini: Gemini, behaviour: str) -> None:
    for kind in KINDS:
        gemini.script(kind, default=behaviour, replace=True)


def _flap(gemini: Gemini, ended: threading.Event) -> None:
    for behaviour in itertools.cycle(("error_500", "honest")):
        _answer(gemini, behaviour)
        if ended.wait(_FLAP_SECONDS):
            return


class Use:
    """What a user did until some time, and was told: chat, append, compact and read."""

    def __init__(self, talks: Sequence[Talk], rng: random.Random, until: float) -> None:
        self.told = Counter[str]()
        self.lost = 0
        """Messages that an answer did not name as stored, although the database was there."""
        self.stored: list[tuple[Talk, str]] = []
        """Messages that an answer named as stored."""
        self._rng = rng
        while time.monotonic() < until:
            response = self._asked(rng.choice(talks), rng.choice(("chat", "append", "compact", "context")))
            self.told[f"{response.request.url.path.rpartition('/')[2]} {response.status_code}"] += 1

    def _asked(self, talk: Talk, what: str) -> httpx.Response:
        said = f"note {self._rng.random()}"
        match what:
            case "chat":
                response = talk.post("/chat", {"content": said})
                is_stored = response.status_code == _CREATED or "message_id" in response.json()
                self._note(talk, said, response, is_stored=is_stored)
            case "append":
                response = talk.post("/messages", {"role": "user", "content": said})
                self._note(talk, said, response, is_stored=response.is_success)
            case "compact":
                response = talk.post("/compact")
            case _:
                response = talk.http.get(talk.path("/context"))
        return response

    def _note(self, talk: Talk, said: str, response: httpx.Response, *, is_stored: bool) -> None:
        if is_stored:
            self.stored.append((talk, said))
        elif response.json()["code"] not in _NOT_STORED:
            self.lost += 1


def _misplaced(talks: Sequence[Talk], stored: Sequence[tuple[Talk, str]]) -> int:
    """How many of these messages are not in the history of their conversation exactly once."""
    counts = {talk.id: Counter(item["content"] for item in talk.history()) for talk in talks}
    return sum(counts[talk.id][said] != 1 for talk, said in stored)


def _until_folded(service: Service) -> float:
    """The seconds until no conversation is above its threshold."""
    began = time.monotonic()
    while time.monotonic() - began < _PATIENCE:
        if execute_sql(service.database_url, f"SELECT 1 FROM conversations WHERE {_OPEN} LIMIT 1") == []:  # noqa: S608
            break
        time.sleep(1)
    return time.monotonic() - began


def _talk_of(call: dict[str, Any]) -> str:
    found = re.search(r"talk-\d+", str(call["body"]))
    return found.group() if found else ""


def main() -> None:
    """Play the outages, and print what came of them."""
    parser = argparse.ArgumentParser(description=f"Outages; pauses are {FACTOR} times shorter.")
    parser.add_argument("--talks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--write", action="store_true", help=f"put the table into {_PAGE}")
    given = parser.parse_args()
    head = (
        "| fault | conversations | answers | lost | calls (most of one) | folded again after"
        " | calls for that (most of one) |"
    )
    rows = [head, "|---|---|---|---|---|---|---|"]
    with running() as (service, gemini, links):
        for fault in given.faults:
            rows.append(play(service, gemini, links, fault, given.talks, given.seconds).row(given.talks))
            print(rows[-1], flush=True)
    if given.write:
        write("outage", "\n".join(rows), _PAGE)


if __name__ == "__main__":
    main()
