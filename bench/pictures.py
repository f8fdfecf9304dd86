"""Takes the pictures of the web page for the docs: ``make pictures``, or ``python -m bench.pictures``.

A service of this checkout gets the talks of ``bench/pictures_talks.json`` pair by pair, and folds them after the pairs;
states are made by the offline model. The last question is asked as a turn: the reply's words are from the file, and
what is recalled for it comes from the service. Chromium then takes ``docs/web.png`` and ``docs/web-context.png``. The
service's clock shows the days of the talks, so no picture shows when or where it was taken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest import mock

from app.core.model.conversation import Usage
from app.core.model.model_io import OFFLINE, ChatRequest, ReasoningDelta, StepEvent, StepFinish, TextDelta
from app.devserver import EmbeddedServers
from app.infrastructure.clock import SystemClock
from app.providers.offline import OfflineChat
from app.storage.migrations import run_migrations
from tests.acceptance.local import local_service
from tests.acceptance.service import Service
from tests.acceptance.talk import Talk, good
from tests.servers import ROOT

TALKS: Final = ROOT / "bench" / "pictures_talks.json"
DOCS: Final = ROOT / "docs"
WEB: Final = ROOT / "web"
CHROMIUM: Final = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
PATIENCE: Final = 300
"""Seconds that both pictures may take."""
WINDOW: Final = 2_920
"""Tokens of the window: with so many, the last talk is folded for the second time before its last question."""
FOLDS: Final = 2
FIRST_TURN: Final = datetime(2025, 3, 10, 9, 4, tzinfo=UTC)
BETWEEN_TURNS: Final = timedelta(minutes=4)
TalkRow = Mapping[str, Any]
"""A talk or a turn of the file."""


class Calendar:
    """The service's clock, which shows the days of the talks; time passes, and is moved on from turn to turn."""

    def __init__(self) -> None:
        self._turn = FIRST_TURN
        self._ahead = FIRST_TURN - datetime.now(UTC)

    def now(self) -> datetime:
        """The time on this clock."""
        return datetime.now(UTC) + self._ahead

    def move_on(self, turn: TalkRow) -> None:
        """Move on to a turn: some minutes after the one before, or to the morning of a later day."""
        if days := turn.get("days_later"):
            self._turn = datetime.combine(self._turn + timedelta(days=days), FIRST_TURN.timetz())
        else:
            self._turn += BETWEEN_TURNS
        self._ahead = self._turn - datetime.now(UTC)


@contextlib.contextmanager
def played() -> Iterator[tuple[str, str]]:
    """Run a service with all talks; yield its address and the last conversation's id."""
    calendar = Calendar()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(SystemClock, "now", side_effect=calendar.now),
        EmbeddedServers(Path(folder) / "servers", durable=False) as servers,
    ):
        run_migrations(servers.database_url)
        settings = {"THROUGHLINE_CHAT_MODEL": OFFLINE, "THROUGHLINE_COMPACTION_MODEL": OFFLINE}
        with local_service(
            Path(folder), database_url=servers.database_url, redis_url=servers.redis_url, settings=settings
        ) as service:
            talks = [play(service, calendar, talk_row) for talk_row in json.loads(TALKS.read_text(encoding="utf-8"))]
            folds = [row["status"] for row in talks[-1].compactions()]
            if folds != ["applied"] * FOLDS:
                raise RuntimeError(f"the conversation of the pictures is to be folded {FOLDS} times, and was: {folds}")
            yield service.url, talks[-1].id


def play(service: Service, calendar: Calendar, row: TalkRow) -> Talk:
    """Play one talk, and let the worker do what is due after each pair."""
    talk = Talk.begin(service, title=row["title"], policy={"context_window": WINDOW, "reasoning": "shown"})
    if file := row.get("file"):
        headers = {"Content-Type": file["type"], "Idempotency-Key": file["name"]}
        good(talk.http.post(talk.path("/files"), params={"name": file["name"]}, content=file["text"], headers=headers))
    *earlier, newest = row["turns"]
    for turn in earlier:
        calendar.move_on(turn)
        talk.batch([("user", turn["user"]), ("assistant", turn["assistant"])])
        talk.wait_idle()
    calendar.move_on(newest)
    with mock.patch.object(OfflineChat, "step", answering_step(newest)):
        talk.chat(newest["user"])
    talk.wait_idle()
    return talk


def answering_step(turn: TalkRow) -> Callable[..., AsyncIterator[StepEvent]]:
    """A model's step that answers with the text of a turn."""

    async def step(self: OfflineChat, request: ChatRequest) -> AsyncIterator[StepEvent]:  # noqa: ARG001
        if thoughts := turn.get("thoughts"):
            yield ReasoningDelta(text=thoughts)
        yield TextDelta(text=turn["assistant"])
        yield StepFinish(reason="stop", usage=Usage(), model=self.profile.name)

    return step


def take(url: str, conversation: str, out: Path) -> None:
    """Take both pictures into a folder. Raises ``CalledProcessError`` if the page does not show what it should."""
    environment = {
        "THROUGHLINE_URL": url,
        "CHROMIUM": CHROMIUM,
        "CONVERSATION": conversation,
        "PICTURES": str(out.absolute()),
        "TZ": "UTC",
    }
    argv = ["node", "scripts/pictures.mjs"]
    subprocess.run(argv, cwd=WEB, env={**os.environ, **environment}, timeout=PATIENCE, check=True)


def missing() -> Sequence[str]:
    """The names of required programs that are missing."""
    needs = {
        "Node 20 or newer": shutil.which("node") is not None,
        "what drives the browser (`npm ci` in web/)": (WEB / "node_modules" / "playwright-core").is_dir(),
        "Chromium (Debian's package `chromium`, or CHROMIUM=/path)": Path(CHROMIUM).exists(),
    }
    return [need for need, is_here in needs.items() if not is_here]


def main() -> int:
    """Take the pictures, or say why not; 0 in both cases."""
    parser = argparse.ArgumentParser(prog="python -m bench.pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS, help="the folder for both; docs/ by default")
    out: Path = parser.parse_args().out
    if needs := missing():
        print(f"No pictures are taken, for this is not here: {'; '.join(needs)}.")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    with played() as (url, conversation):
        take(url, conversation, out)
    for name in ("web.png", "web-context.png"):
        print(f"{out / name}: {(out / name).stat().st_size / 1_000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
