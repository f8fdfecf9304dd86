"""An hour without the model in two minutes: ``python -m bench.outage [--talks N] [--seconds S] [--faults …]``.

An API and a worker with embedded servers and a scripted Gemini server. Their pauses are a thirtieth of those in
production (``bench/outage_scaled.py``, and the settings below). While the model is away, conversations grow beyond
their thresholds, and users chat, append, compact and read. Then it comes back, and it is measured how long it takes
until all conversations are folded again, and how many calls that takes.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.devserver.run import Commands
from app.settings import Settings
from app.storage.migrations import run_migrations
from bench.chaos.links import Links
from bench.measurements import write
from bench.outage_scaled import FACTOR
from tests.acceptance.chaos import OwnServers
from tests.acceptance.service import NotReadyError, Service
from tests.acceptance.talk import WINDOW, Talk, lines
from tests.gemini_server import KINDS, Gemini, gemini_process
from tests.servers import execute_sql

FAULTS: Final = ("refuse", "silent", "error_500", "error_429", "error_401")
"""What the model does: its port is closed, it never answers, or it answers with this error."""
_PAGE: Final = Path("docs/reliability.md")
_USERS: Final = 2
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
    """Messages of turns that were not stored."""
    calls: int
    """Calls for summaries that reached the model while it was away; closed ports count nothing."""
    folded_after: float
    """The seconds until no conversation was above its threshold any more."""
    calls_after: int
    most_after: int
    """The most calls for summaries of one conversation after the return."""

    def row(self, talks: int) -> str:
        """The outcome as a row of the page's table."""
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.answers.items()))
        after = f"{self.folded_after:.0f} s | {self.calls_after} ({self.most_after})"
        return f"| {self.fault} | {talks} | {told} | {self.lost} | {self.calls} | {after} |"


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
        service = Scaled(Path(folder), **_addresses(servers), settings=settings)
        try:
            for process in service.processes:
                process.start(wait=False)
            for process in service.processes:
                _await_ready(process.wait_ready)
            yield service, gemini, links
        finally:
            service.stop()


def _addresses(servers: OwnServers) -> dict[str, Any]:
    return {"database_url": servers.endpoints.database_url, "redis_url": servers.endpoints.redis_url}


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
    if fault in {"refuse", "silent"}:
        links.set("model", "refuse" if fault == "refuse" else "silent")
    else:
        for kind in KINDS:
            gemini.script(kind, default=fault)
    talks = [Talk.begin(service, policy={**WINDOW, "calls_per_hour": 1_000}) for _ in range(count)]
    for number, talk in enumerate(talks):
        talk.batch([(role, f"talk-{number:03d} {text}") for role, text in lines(_MESSAGES)])
    with ThreadPoolExecutor(_USERS) as users:
        until = time.monotonic() + seconds
        told = list(users.map(lambda seed: _use(talks, random.Random(seed), until), range(_USERS)))
    calls = len(gemini.requests("compaction"))
    for kind in KINDS:
        gemini.script(kind, default="honest")
    links.set("model", "pass")
    took = _until_folded(service)
    after = Counter(_talk_of(call) for call in gemini.requests("compaction")[calls:])
    answers, lost = sum((one for one, _ in told), Counter[str]()), sum(one for _, one in told)
    for talk in talks:
        talk.close()
    return Outcome(
        fault=fault,
        answers=answers,
        lost=lost,
        calls=calls,
        folded_after=took,
        calls_after=after.total(),
        most_after=max(after.values(), default=0),
    )


def _use(talks: Sequence[Talk], rng: random.Random, until: float) -> tuple[Counter[str], int]:
    """Chat, append, compact and read until that time; count the answers, and the messages that are not stored."""
    told, lost = Counter[str](), 0
    while time.monotonic() < until:
        talk, said = rng.choice(talks), f"note {rng.random()}"
        match rng.choice(("chat", "append", "compact", "context")):
            case "chat":
                response = talk.post("/chat", {"content": said})
                lost += response.status_code not in {201, 409} and "message_id" not in response.json()
            case "append":
                response = talk.post("/messages", {"role": "user", "content": said})
                lost += not response.is_success
            case "compact":
                response = talk.post("/compact")
            case _:
                response = talk.http.get(talk.path("/context"))
        told[f"{response.request.url.path.rpartition('/')[2]} {response.status_code}"] += 1
    return told, lost


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
    parser = argparse.ArgumentParser(description=f"Outages of the model; pauses are {FACTOR} times shorter.")
    parser.add_argument("--talks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--write", action="store_true", help=f"put the table into {_PAGE}")
    given = parser.parse_args()
    head = "| fault | conversations | answers | lost | calls | folded again after | calls for that (most of one) |"
    rows = [head, "|---|---|---|---|---|---|---|"]
    with running() as (service, gemini, links):
        for fault in given.faults:
            rows.append(play(service, gemini, links, fault, given.talks, given.seconds).row(given.talks))
            print(rows[-1], flush=True)
    if given.write:
        write("outage", "\n".join(rows), _PAGE)


if __name__ == "__main__":
    main()
