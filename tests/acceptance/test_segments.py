"""``…/segments``: what was folded can be listed and expanded to the last byte, and nobody else sees it."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

import pytest

from app.core.segments.markers import find_markers
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, Talk, block_of, good, lines, refused

CALL: Final[Json] = {
    "arguments": {"zulu": 1, "b": 1e22, "яблоко": {"y": True, "x": "[earlier →L3:earlier]"}, "": None},
    "signature": {"b": 1, "a": 2},
    "name": "look_up",
    "type": "tool_call",
    "id": "call-1",
}
RESULT: Final[Json] = {"content": [{"rows": [3, 1, 2], "at": -0.0}], "type": "tool_result", "tool_call_id": "call-1"}
LEVELS: Final = ("tags", "brief", "detailed", "full")


@pytest.fixture
def talk(start_talk: StartTalk, offline: Service) -> Talk:
    """Sixty messages, two of them with parts whose keys are in an unusual order."""
    talk = start_talk(offline, policy=MANUAL)
    talk.batch(lines(20))
    good(talk.post("/messages", {"role": "assistant", "content": "Let me see.", "parts": [CALL]}))
    good(talk.post("/messages", {"role": "tool", "content": "", "parts": [RESULT]}))
    talk.batch(lines(38, 11))
    return talk


def expanded(talk: Talk, segment_id: str, level: str, max_tokens: int = 200) -> list[Json]:
    """Every page of a segment at a level."""
    found: list[Json] = []
    after: Json = {}
    while True:
        page = talk.get(f"/segments/{segment_id}", level=level, max_tokens=max_tokens, **after)
        found.append(page)
        assert page["truncated"] is (page["next_cursor"] is not None)
        if not page["truncated"]:
            return found
        after = {"after": page["next_cursor"]}


def as_json(messages: list[Any]) -> str:
    return json.dumps(messages, ensure_ascii=False)


def markers_of(talk: Talk) -> set[str]:
    """Every segment id to which a context or a list leads."""
    context = talk.context()
    block = block_of(context) or ""
    served = {marker["segment_id"] for marker in context["markers"]}
    assert served == {marker.segment_id for marker in find_markers(block)}
    listed = [marker for page in expanded(talk, "earlier", "tags") for marker in page["expansion_markers"]]
    return served | {marker["segment_id"] for marker in listed}


def assert_round_trip(talk: Talk, ids: set[str]) -> None:
    history = {message["seq"]: message for message in talk.history()}
    for id_ in ids - {"earlier", "anchors"}:
        pages = expanded(talk, id_, "full")
        told = [message for page in pages for message in page["messages"]]
        one = pages[0]
        own = [history[seq] for seq in range(one["from_seq"], one["to_seq"] + 1) if not is_command(history[seq])]
        assert as_json(told) == as_json(own), id_
        for level in LEVELS[:-1]:
            assert {page["level"] for page in expanded(talk, id_, level, 60)} == {level}


def is_command(message: Json) -> bool:
    return bool(message["event_type"] == "command")


@pytest.mark.long
@pytest.mark.case("30")
def test_every_marker_leads_back_also_after_more_compactions_and_a_restore(talk: Talk) -> None:
    sent = [message["parts"] for message in talk.history() if message["parts"]]
    assert as_json(sent) == as_json([[CALL], [RESULT]])
    ids: set[str] = set()
    for number in range(2):
        talk.compact(keep_tail_messages=2)
        talk.batch(lines(20, 31 + 10 * number))
        ids |= markers_of(talk)
    assert_round_trip(talk, ids)
    talk.chat("/compact the crates")
    good(talk.post("/restore", {"state_version": 2}))
    for number in range(2):
        talk.batch(lines(14, 101 + 10 * number))
        talk.compact(keep_tail_messages=2)
        ids |= markers_of(talk)
    assert_round_trip(talk, ids)
    boundary, listed = talk.boundary(), talk.pages("/segments", level="tags")
    covered = [seq for one in listed for seq in range(one["from_seq"], one["to_seq"] + 1)]
    assert covered == list(range(1, boundary + 1))
    assert all(one["is_current"] for one in listed)


@pytest.mark.long
@pytest.mark.control("30")
def test_control_a_changed_original_is_seen(talk: Talk) -> None:
    """The comparison is of bytes: the same values in another order do not pass."""
    talk.compact(keep_tail_messages=2)
    (id_,) = [one["segment_id"] for one in talk.pages("/segments") if one["from_seq"] <= 21 <= one["to_seq"]]
    told = [message for page in expanded(talk, id_, "full") for message in page["messages"]]
    (call,) = [message for message in told if message["seq"] == 21]
    assert as_json([{**call, "parts": [dict(sorted(CALL.items()))]}]) != as_json([call])
    assert [{**call, "parts": [dict(sorted(CALL.items()))]}] == [call]


def test_the_shape(talk: Talk) -> None:
    talk.compact(keep_tail_messages=2)
    first, *_ = talk.get("/segments")["data"]
    brief = talk.get(f"/segments/{first['segment_id']}", level="brief")
    assert {**brief, "messages": []} == first
    assert brief["level"] == "brief"
    assert brief["content"]
    assert brief["made_by"] == "extractive"
    (marker,) = brief["expansion_markers"]
    assert (marker["segment_id"], marker["level"]) == (first["segment_id"], "detailed")
    full = talk.get(f"/segments/{first['segment_id']}")
    assert (full["level"], full["content"], full["expansion_markers"]) == ("full", "", [])
    assert len(full["messages"]) == full["message_count"]
    assert full["token_count"] == sum(message["token_count"] for message in full["messages"])
    anchors = talk.get("/segments/anchors")
    assert [one["id"] for one in anchors["anchors"]] == [
        one["id"] for one in talk.get("/anchors", status="active", limit=100)["data"]
    ]


@pytest.mark.long
def test_a_level_is_made_when_it_is_asked_for(start_talk: StartTalk, offline: Service) -> None:
    talk = start_talk(offline, policy={**MANUAL, "levels": [], "segment_by": {"by": "messages", "size": 10}})
    talk.batch(lines(40))
    talk.compact(keep_tail_messages=2)
    first, second, *_ = talk.get("/segments")["data"]
    assert first["level"] == "tags"
    body = {"segment_id": first["segment_id"], "level": "detailed"}
    made = good(talk.post("/segments", body, Idempotency_Key="make-1"))
    again = good(talk.post("/segments", body, Idempotency_Key="make-1"))
    assert made == again
    assert (made["level"], made["segment_id"]) == ("detailed", first["segment_id"])
    listed = talk.get("/segments", level="detailed")["data"]
    assert (listed[0]["content"], listed[1]["level"]) == (made["content"], "tags")
    by_range = {"from_seq": second["from_seq"], "to_seq": second["to_seq"], "level": "brief"}
    assert good(talk.post("/segments", by_range))["segment_id"] == second["segment_id"]


@pytest.mark.long
def test_any_finished_range_is_told_on_its_own(talk: Talk) -> None:
    before = good(talk.post("/segments", {"from_seq": 3, "to_seq": 22, "level": "detailed"}))
    assert (before["from_seq"], before["to_seq"], before["level"]) == (3, 22, "detailed")
    assert before["content"]
    assert talk.get("/segments")["data"] == [], "it is none of the state's"
    talk.compact(keep_tail_messages=2)
    boundary = talk.boundary()
    listed = {one["segment_id"] for one in talk.pages("/segments")}
    across = good(talk.post("/segments", {"from_seq": boundary - 3, "to_seq": boundary + 1, "level": "brief"}))
    again = good(talk.post("/segments", {"from_seq": boundary - 3, "to_seq": boundary + 1, "level": "tags"}))
    assert across["segment_id"] == again["segment_id"] not in listed
    whole = talk.get(f"/segments/{before['segment_id']}", level="full", max_tokens=8_000)
    assert [message["seq"] for message in whole["messages"]] == list(range(3, 23))
    assert {one["segment_id"] for one in talk.pages("/segments")} == listed
    good(talk.http.delete(talk.path(f"/messages/{whole['messages'][0]['id']}")))
    shorter = talk.get(f"/segments/{before['segment_id']}", level="full", max_tokens=8_000)
    assert not shorter["messages"][0]["content"], "an erasure reaches it"


@pytest.mark.long
def test_what_cannot_be_is_refused_in_clear_words(talk: Talk) -> None:
    talk.compact(keep_tail_messages=2)
    first, *_ = talk.get("/segments")["data"]
    id_, http = first["segment_id"], talk.http
    refused(http.get(talk.path("/segments/%00")), 422, "invalid_input")
    for tail in ("/segments/nobody", "/segments/%5Bx%20%E2%86%92L1:y%5D", f"/segments/{'x' * 300}"):
        for level in LEVELS:
            refused(http.get(talk.path(tail), params={"level": level}), 404, "not_found")
    wrong: list[Json] = [
        {"level": "L7"},
        {"level": "L1"},
        {"max_tokens": 0},
        {"max_tokens": -1},
        {"max_tokens": "many"},
        {"after": "nonsense"},
        {"after": "-4"},
    ]
    for params in wrong:
        problem = refused(http.get(talk.path(f"/segments/{id_}"), params=params), 422, "invalid_input")
        assert problem["errors"][0]["field"] == next(iter(params))
    refused(http.get(talk.path("/segments"), params={"level": "full"}), 422, "invalid_input")
    talk.append("And who signs for it?")
    last = talk.history()[-1]["seq"]
    bodies: list[tuple[Json, str]] = [
        ({"from_seq": 1, "to_seq": last, "level": "brief"}, "not_folded"),
        ({"from_seq": 1, "to_seq": last + 1, "level": "brief"}, "not_folded"),
        ({"from_seq": 1, "to_seq": 21, "level": "brief"}, "not_folded"),
        ({"from_seq": 22, "to_seq": 23, "level": "brief"}, "not_folded"),
        ({"from_seq": 1, "level": "brief"}, "invalid_input"),
        ({"from_seq": last, "to_seq": last - 1, "level": "brief"}, "invalid_input"),
        ({"from_seq": -1, "to_seq": 2, "level": "brief"}, "invalid_input"),
        ({"segment_id": id_, "from_seq": 1, "to_seq": 2, "level": "brief"}, "invalid_input"),
        ({"level": "brief"}, "invalid_input"),
        ({"segment_id": id_, "level": "L1"}, "invalid_input"),
        ({"segment_id": id_}, "invalid_input"),
    ]
    for body, code in bodies:
        refused(talk.post("/segments", body), 422, code)
    refused(talk.post("/segments", {"segment_id": "nobody", "level": "brief"}), 404, "not_found")
    refused(http.get(f"/conversations/{uuid4()}/segments"), 404, "not_found")


@pytest.mark.long
def test_a_hit_says_where_it_was_folded(talk: Talk) -> None:
    def hit(**_: Any) -> Json:
        data: list[Json] = talk.get("/search", q="look_up zulu signature", limit=1)["data"]
        return data[0]

    assert hit()["segment_id"] is None
    talk.compact(keep_tail_messages=2)
    found = hit()
    one = talk.get(f"/segments/{found['segment_id']}", level="tags")
    assert one["from_seq"] <= found["seq"] <= one["to_seq"]
