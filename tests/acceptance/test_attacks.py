"""Texts and requests that once stopped a process: while one of them is worked on, no other request waits for it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.hanging import hold
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, Talk, lines, refused

pytestmark = pytest.mark.long

MAX_WAIT_SECONDS: Final = 2.0
"""The most seconds that another request may wait, also on a busy machine."""
UNDERSCORES: Final = "a" + "_a" * 60


def command(text: str) -> Callable[[Talk], object]:
    return lambda talk: talk.post("/chat", {"content": text})


def said(text: str) -> Callable[[Talk], object]:
    return lambda talk: [
        talk.post("/messages", {"role": "user", "content": text}),
        talk.post("/context", {"query": text[:200]}),
    ]


def told_by_a_tool(text: str) -> Callable[[Talk], object]:
    """An attack by a text that is appended within talk, served, and folded by the API and by the worker."""

    def attack(talk: Talk) -> None:
        call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"path": text[:48]}}
        result = {"type": "tool_result", "tool_call_id": "c1", "name": "look", "content": text}
        messages: list[Json] = [
            *({"role": role, "content": content} for role, content in lines(30)),
            {"role": "assistant", "content": "", "parts": [call]},
            {"role": "tool", "content": "", "parts": [result]},
        ]
        talk.post("/messages/batch", {"messages": messages})
        talk.post("/compact", {"keep_tail_messages": 2})
        talk.post("/messages/batch", {"messages": messages[:30]})
        talk.post("/compact", {"wait": False, "keep_tail_messages": 0})
        talk.wait_idle()
        talk.post("/context", {"query": text[:200]})

    return attack


def many_parts(content: str, part: Json, role: str = "user") -> Callable[[Talk], object]:
    def attack(talk: Talk) -> None:
        talk.post("/messages", {"role": role, "content": content, "parts": [part] * 256})
        talk.context()

    return attack


RECALLED: Final = '<recalled of="earlier messages, verbatim">' + '<message role="user">\n' * 8_000
ATTACKS: Final[dict[str, Callable[[Talk], object]]] = {
    "a command with blanks": command("/compact x" + " " * 100_000 + "y"),
    "a command of lines": command("/compact " + "a\n" * 100_000),
    "a command of other blanks": command("/compact x" + "\u2003\u00a0" * 50_000 + "y"),
    "a value without an end": said("port " + "н" * 390),
    "many values without an end": said(("port " + "н" * 390 + ". ") * 50),
    "a version in Chinese": said("version" + "版" * 390),
    "a name of names": said("the key of the " * 8_000 + "н"),
    "underscores in a log": told_by_a_tool(f"total 3\nfile one 12\n{UNDERSCORES}@\nfile two 13\n"),
    "underscores in a form": told_by_a_tool("name: one\n" + "x" + "_" * 300 + "#\nport: 12\n"),
    "underscores in JSON": told_by_a_tool(json.dumps([{"id": "a" + "_a" * 22 + "@", "n": n} for n in range(50)])),
    "slashes in a log": told_by_a_tool("total 3\n" + "a" + "/a" * 190 + "~x\nfile two 13\n"),
    "JSON of a user": said(json.dumps([{"id": "a" + "_a" * 22 + "@", "n": n} for n in range(50)])),
    "messages recalled in a message": said(RECALLED),
    "messages recalled in a turn": command(RECALLED),
    "texts in a content": many_parts("a" * 20_000, {"type": "text", "text": "a"}),
    "values in a content": many_parts(
        json.dumps({str(number): number for number in range(8_000)}),
        {"type": "tool_result", "tool_call_id": "c1", "content": {}},
        "tool",
    ),
    "tags without an end": said("<session_state>" * 20_000),
    "markers without an end": said("[a →L1:" * 20_000),
}


class Others:
    """Ask ``/healthz`` and another conversation again and again, and note the longest time between two answers."""

    def __init__(self, service: Service, talk: Talk) -> None:
        self.longest = 0.0
        self.count = 0
        self._service = service
        self._talk = talk
        self._done = threading.Event()
        self._looks: tuple[Callable[[], Any], ...] = (self._health, self._talk.context, self._append)

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(len(self._looks))
        self._running = [self._threads.submit(self._look, look) for look in self._looks]
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for one in self._running:
            one.result(120)
        self._threads.shutdown()

    def _health(self) -> None:
        with self._service.client() as http:
            assert http.get("/healthz").is_success

    def _append(self) -> None:
        self._talk.append("Still here.")

    def _look(self, look: Callable[[], Any]) -> None:
        last = time.perf_counter()
        while not self._done.wait(0.1):
            look()
            now = time.perf_counter()
            self.longest, last, self.count = max(self.longest, now - last), now, self.count + 1


@pytest.fixture
def others(offline: Service, start_talk: StartTalk) -> Others:
    """Another conversation on the same service."""
    talk = start_talk(offline, policy=MANUAL)
    talk.append("Hello.")
    return Others(offline, talk)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_while_it_is_worked_on_nobody_else_waits(
    offline: Service, start_talk: StartTalk, others: Others, name: str
) -> None:
    talk = start_talk(offline, policy=MANUAL)
    with others:
        ATTACKS[name](talk)
        time.sleep(0.5)
    assert others.count > 3
    assert others.longest < MAX_WAIT_SECONDS
    assert talk.get()["id"] == talk.id


@pytest.fixture
def silent_address() -> Iterator[str]:
    """Accepts connections and never answers, like a metadata server behind a firewall."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_model_of_a_cloud_is_refused_before_anybody_waits(
    start_service: Callable[..., Service], start_talk: StartTalk, silent_address: str
) -> None:
    service = start_service(GCE_METADATA_HOST=silent_address, GCE_METADATA_IP=silent_address)
    talk, other = start_talk(service, policy=MANUAL), start_talk(service, policy=MANUAL)
    other.append("Hello.")
    with Others(service, other) as others:
        answer = talk.post("/chat", {"content": "hi", "model": "google-cloud:gemini-2.5-pro"})
        time.sleep(0.5)
    refused(answer, 422, "model_not_allowed")
    assert others.longest < MAX_WAIT_SECONDS


def test_control_who_holds_the_interpreter_is_noticed(others: Others) -> None:
    """The interpreter is held in this process, whose threads send the requests, as long as a pattern would hold it."""
    with others:
        hold(3)
    assert others.longest > MAX_WAIT_SECONDS
