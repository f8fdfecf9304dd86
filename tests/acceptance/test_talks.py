"""Whole conversations, imported in batches and compacted offline while the API answers others."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx
import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import Json, Talk, block_of, served_seqs
from tests.talks import locomo, made_talk, with_locomo

OWN: Final = ("texting_en", "strangers_en", "assistant_en", "friends_ru", "sisters_zh", "project_en", "sessions_en")
MIN_CONVERSATIONS: Final = 3
LARGE: Final = 32_000
"""The tokens of a window for which the short conversations do not take long enough, so that all of them are imported.
"""
BATCH: Final = 100
IDLE_LOOKS: Final = 60
SLACK: Final = 0.5
"""The seconds that scheduling may add while importers, worker and database share two cores."""
MAX_SLOWDOWN: Final = 50
"""The limit for the median; a loop that waits for whole imports or compactions is slower by hundreds."""


def own() -> list[Json]:
    return [made_talk(name) for name in OWN]


def bring_in(talk: Talk, messages: list[Json]) -> None:
    """Import in batches, as fast as the API takes them."""
    for start in range(0, len(messages), BATCH):
        chosen = [
            {name: item[name] for name in ("role", "content", "created_at", "parts") if name in item}
            for item in messages[start : start + BATCH]
        ]
        response = talk.post("/messages/batch", {"messages": chosen})
        assert response.status_code == 201, response.text


class Looks:
    """Measures ``GET /conversations`` again and again."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.seconds: list[float] = []

    def look(self, client: httpx.Client) -> None:
        began = time.perf_counter()
        assert client.get("/conversations").is_success
        self.seconds.append(time.perf_counter() - began)

    def idle(self) -> None:
        with self._service.client() as client:
            for _ in range(IDLE_LOOKS):
                self.look(client)

    def until(self, done: threading.Event) -> None:
        with self._service.client() as client:
            while not done.is_set():  # without a pause, so that on any machine there are many looks during an import
                self.look(client)

    def quantile(self, share: float) -> float:
        return statistics.quantiles(self.seconds, n=100)[int(share * 100) - 1]


@pytest.mark.long
@pytest.mark.parametrize("window", [4_000, pytest.param(LARGE, marks=pytest.mark.long)])
@pytest.mark.parametrize("conversations", with_locomo(own, locomo))
def test_whole_conversations_are_imported_and_compacted_while_the_api_answers(
    offline: Service, start_talk: StartTalk, window: int, conversations: Callable[[], list[Json]]
) -> None:
    given = conversations()[: MIN_CONVERSATIONS if window < LARGE else None]
    assert len(given) >= MIN_CONVERSATIONS
    talks = [start_talk(offline, policy={"context_window": window}) for _ in given]
    idle, busy, done = Looks(offline), Looks(offline), threading.Event()
    idle.idle()

    with ThreadPoolExecutor(len(given) + 1) as threads:
        looking = threads.submit(busy.until, done)
        imports = [threads.submit(bring_in, talk, item["messages"]) for talk, item in zip(talks, given, strict=True)]
        try:
            for one in imports:
                one.result(120)
            for talk in talks:
                talk.wait_settled()
        finally:
            done.set()
        looking.result(60)

    for talk, item in zip(talks, given, strict=True):
        check(talk, item["messages"], compacted=window == 4_000)
    assert len(busy.seconds) > 20
    print({name: (looks.quantile(0.5), looks.quantile(0.95)) for name, looks in (("idle", idle), ("busy", busy))})
    assert busy.quantile(0.5) < MAX_SLOWDOWN * idle.quantile(0.5) + SLACK
    assert busy.quantile(0.95) < MAX_SLOWDOWN * idle.quantile(0.95) + SLACK


def check(talk: Talk, messages: list[Json], *, compacted: bool) -> None:
    conversation, usage, context = talk.get(), talk.get("/usage"), talk.context()
    rows, boundary = talk.compactions(), talk.boundary()
    assert usage["tokens"] <= usage["budget"]
    assert context["gauge"]["tokens"] <= usage["budget"]
    assert context["gauge"]["status"] == "ok"
    assert context["truncated"] is None
    assert {row["status"] for row in rows} <= {"applied"}
    assert [item["content"] for item in talk.history()] == [item["content"] for item in messages]
    assert [seq for seq in served_seqs(context) if seq > boundary] == list(range(boundary + 1, len(messages) + 1))
    if compacted:
        assert rows
        assert block_of(context)
        assert usage["breakdown"]["state"] <= 2 * 0.12 * usage["budget"], "the state's hard cap"
        assert conversation["compressed_state"]["logos"]
        assert all(row["tokens_after"] < row["tokens_before"] for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("conversations", with_locomo(own, locomo))
def test_an_import_that_never_reaches_the_threshold_is_left_alone(
    offline: Service, start_talk: StartTalk, conversations: Callable[[], list[Json]]
) -> None:
    """The control: with a large window the same messages lead to no compaction."""
    talk = start_talk(offline, policy={"context_window": 200_000})
    item = conversations()[1]
    bring_in(talk, item["messages"])
    assert talk.compactions() == []
    check(talk, item["messages"], compacted=False)
