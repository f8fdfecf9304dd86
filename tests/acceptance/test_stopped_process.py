"""An API process that is stopped in the middle of a turn for longer than its lease, and then goes on."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from app.devserver import Endpoints
from tests.acceptance.chaos import HELD, Books, own_database
from tests.acceptance.conftest import StartTalk, gemini_settings, own_redis
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.talk import refused
from tests.gemini_server import Gemini

pytestmark = [pytest.mark.long, pytest.mark.processes]

SHORT: Final = {
    "THROUGHLINE_LEASE_SECONDS": "3",
    "THROUGHLINE_HEARTBEAT_SECONDS": "1",
    "THROUGHLINE_TURN_HEARTBEAT_SECONDS": "0.5",
    "THROUGHLINE_SWEEP_SECONDS": "0.5",
}


@pytest.fixture
def two(servers: Endpoints, database_template: str, gemini_server: Gemini, tmp_path: Path) -> Iterator[list[Service]]:
    """Two API processes over one database."""
    with contextlib.ExitStack() as stack:
        database_url, redis_url = stack.enter_context(own_database(servers, database_template)), own_redis(servers)
        made = []
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            service = running_service(
                folder,
                database_url=database_url,
                redis_url=redis_url,
                worker=False,
                settings={**gemini_settings(gemini_server), **SHORT},
            )
            made.append(stack.enter_context(service))
        yield made


def test_a_process_that_was_stopped_beyond_its_lease_adds_no_second_reply(
    two: list[Service], gemini: Gemini, start_talk: StartTalk
) -> None:
    first, second = two
    books = Books(first.database_url)
    gemini.script("chat", HELD, {"name": "text", "text": "In time."}, default="honest")
    talk = start_talk(first)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: talk.post("/chat", {"content": "Is anybody there?"}))
        gemini.wait_for("chat")
        first.api.signal(signal.SIGSTOP)
        try:
            until(lambda: books.turn(talk)["status"] == "failed", what="the end of the turn by the other's sweeper")
            with second.client() as http:
                answer = http.post(f"/conversations/{talk.id}/chat", json={})
            assert answer.json()["reply"]["content"] == "In time."
            gemini.release()
        finally:
            first.api.signal(signal.SIGCONT)
        refused(waiting.result(60), 503, "lease_expired")

    assert [item["content"] for item in talk.history()] == ["Is anybody there?", "In time."]
    assert [event["type"] for event in books.events(talk, "reply.")] == ["reply.failed", "reply.completed"]
    assert talk.chat("Is the first one well again?")["reply"]["content"], "the process goes on serving"
