"""Media through the whole service: byte for byte through every door, within budgets of bytes where they are many."""

from __future__ import annotations

import base64
import json
import random
from typing import Any, Final

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Talk, good, refused

PNG: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n a picture").decode()
SOUND: Final = base64.b64encode(b"RIFF a sound").decode()
PARTS: Final[list[dict[str, object]]] = [
    {"type": "media", "name": "a.png", "media_type": "image/png", "data": PNG, "tokens": 9, "taken": "2026-11-22"},
    {"type": "media", "data": f"data:audio/wav;base64,{SOUND}", "media_type": "audio/wav"},
    {"type": "text", "text": "both from yesterday"},
]
LARGE: Final = 750_000
MANY: Final = 22
"""The number of large parts: more than a page shows (8 MB), and more than a request to a model takes (15 MB)."""


def parts_in(items: list[dict[str, Any]]) -> list[Any]:
    return [part for item in items for part in item["parts"]]


def test_originals_come_back_through_every_door(start_talk: StartTalk, offline: Service) -> None:
    talk = start_talk(offline, policy=MANUAL)
    appended = talk.append("Look.", parts=PARTS)
    key = {"Idempotency_Key": "a picture once"}
    body = {"messages": [{"role": "assistant", "content": "Seen."}, {"role": "user", "content": "", "parts": PARTS}]}
    batch = good(talk.post("/messages/batch", body, **key))["data"]
    twice = [*PARTS, *PARTS]
    assert json.dumps(appended["parts"] + batch[1]["parts"]) == json.dumps(twice), "also the order of keys"
    assert good(talk.post("/messages/batch", body, **key))["data"] == batch
    assert parts_in(talk.history()) == twice
    assert parts_in(json.loads(talk.http.get(talk.path("/export")).text)["messages"]) == twice
    assert PNG not in talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
    talk.patch({"policy": {"pin_share": 0.6}})
    assert good(talk.http.put(talk.path(f"/messages/{appended['id']}/pin")))["parts"] == PARTS
    assert parts_in([one for one in talk.context()["messages"] if "parts" in one]) == twice
    shown = json.dumps(talk.get("/context", format="anthropic"))
    assert shown.count(PNG) == len(appended["parts"]) - 1
    frontend = talk.get("/messages", format="ui")
    assert json.dumps(frontend).count(f"data:image/png;base64,{PNG}") == len(("first", "second"))
    items = good(talk.http.get(f"/v1/conversations/conv_{talk.id.replace('-', '')}/items", params={"order": "asc"}))
    assert json.dumps(items).count(f"data:image/png;base64,{PNG}") == len(("first", "second"))
    answered = talk.chat("What do you see?")
    assert answered["reply"]["content"]
    talk.compact()
    segment = talk.pages("/segments")[0]["segment_id"]
    full = talk.get(f"/segments/{segment}", level="full", max_tokens=4_000)
    assert parts_in(full["messages"])[: len(PARTS)] == PARTS


@pytest.mark.long
def test_many_large_media_end_pages_early_and_leave_the_chat_alive(start_talk: StartTalk, offline: Service) -> None:
    talk, random_ = start_talk(offline, policy=MANUAL), random.Random(1)
    given = [base64.b64encode(random_.randbytes(LARGE // 4 * 3)).decode() for _ in range(MANY)]
    for number, data in enumerate(given):
        part = {"type": "media", "media_type": "image/png", "data": data, "tokens": 0}
        talk.append(f"Picture {number}", parts=[part])
    response = talk.http.get(talk.path("/messages"), params={"limit": 100, "order": "asc"})
    assert len(response.content) < 8_100_000
    page = good(response)
    assert (page["has_more"], len(page["data"])) == (True, 8_000_000 // LARGE)
    assert [part["data"] for part in parts_in(talk.history())] == given, "page after page nothing is missing"
    frontend = talk.get("/messages", format="ui", limit=100, order="asc")
    assert (frontend["has_more"], len(frontend["data"])) == (True, 8_000_000 // LARGE)

    context = talk.context()
    assert context["warnings"] == ["media_left_out"]
    served = parts_in([one for one in context["messages"] if "parts" in one])
    count = 15_000_000 // LARGE
    assert [part["data"] for part in served[-count:]] == given[-count:], "the newest"
    assert [part["text"] for part in served[:-count]] == [
        f"[attached: image/png, 562.5 kB; left out for want of room, it stands in message #{seq}]"
        for seq in range(1, MANY - count + 1)
    ]
    answered = talk.chat("What do you see?")
    assert answered["status"] == "completed"
    assert "media_left_out" in answered["warnings"]


def test_a_body_of_too_many_values_and_a_text_of_too_many_bytes_are_refused(
    start_talk: StartTalk, offline: Service
) -> None:
    talk: Talk = start_talk(offline)
    lists = {"role": "user", "parts": [{"type": "text", "text": "a", "odd": [[]] * 300_000}]}
    assert "more than 200000" in refused(talk.post("/messages", lists), 413, "body_too_large")["detail"]
    for long in ("é" * 2_000_001, "a" * 4_000_001):
        for body in ({"content": long}, {"parts": [{"type": "text", "text": long}]}):
            for path in ("/chat", "/messages"):
                sent = body if path == "/chat" else {"role": "user"} | body
                assert "at most 4000000" in refused(talk.post(path, sent), 413, "message_too_large")["detail"]
        door = talk.http.post("/v1/responses", json={"model": "throughline", "input": long})
        assert door.json()["error"]["code"] == "context_length_exceeded", "the code by which libraries know it"
    beside = {"role": "user", "parts": [PARTS[0] | {"tokens": 0, "odd": "y" * 7_000_000}]}
    assert "tokens" in refused(talk.post("/messages", beside), 413, "message_too_large")["detail"]
    assert talk.history() == []
