"""A repeated request has one effect and the first answer, whatever became of the first connection."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.chaos import HELD
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, good, lines, refused
from tests.gemini_server import Gemini

APPEND: Final[Json] = {"role": "user", "content": "Only once, please."}


@pytest.fixture
def key() -> str:
    """A new key for each test: keys belong to a tenant, and these tests share one."""
    return f"a key of the client's own, {uuid4()}"


def asked(gemini: Gemini) -> int:
    """The number of calls that somebody waited for; calls in the background about segments may come at any time."""
    return len(gemini.requests("compaction")) + len(gemini.requests("chat"))


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("tail", "body"),
    [
        ("/messages", APPEND),
        ("/messages/batch", {"messages": [APPEND, APPEND]}),
        ("/chat", {"content": "Only once, please."}),
        ("/compact", {}),
        ("/compact", {"focus": "dates"}),
        ("/restore", {"state_version": 1}),
    ],
    ids=lambda value: value.strip("/") if isinstance(value, str) else "+".join(value),
)
@pytest.mark.case("31-response")
def test_a_repeated_request_gets_the_first_answer(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, tail: str, body: Json, key: str
) -> None:
    talk = start_talk(gemini_service, policy=MANUAL)
    if tail == "/restore":
        talk.batch(lines(30))
        talk.compact()
    talk.batch(lines(30, start=50))

    first, second = (talk.post(tail, body, idempotency_key=key) for _ in range(2))
    assert first.is_success, first.text
    seen = talk.history(), talk.state(), len(talk.compactions()), asked(gemini)
    third = talk.post(tail, body, idempotency_key=key)

    assert first.status_code == second.status_code == third.status_code
    assert first.json() == second.json() == third.json()
    assert (talk.history(), talk.state(), len(talk.compactions()), asked(gemini)) == seen
    control = talk.post(tail, body, idempotency_key=f"another {key}")
    assert control.is_success
    assert control.json() != first.json()


def test_a_conversation_is_created_once(offline: Service, start_talk: StartTalk, key: str) -> None:
    http = start_talk(offline).http
    first, second = (http.post("/conversations", json={"title": "One"}, headers={"Idempotency-Key": key}) for _ in "12")
    assert good(first) == good(second)
    http.delete(f"/conversations/{good(first)['id']}")


@pytest.mark.parametrize(
    ("tail", "body"),
    [
        ("/messages", APPEND),
        ("/messages/batch", {"messages": [APPEND, APPEND]}),
        ("/chat", {"content": "Only once, please."}),
        ("/compact", {}),
    ],
    ids=lambda value: value.strip("/") if isinstance(value, str) else "",
)
def test_a_request_that_is_repeated_after_its_conversation_was_deleted_finds_none(
    offline: Service, start_talk: StartTalk, key: str, tail: str, body: Json
) -> None:
    talk = start_talk(offline, policy=MANUAL)
    headers = {"Idempotency-Key": key}
    assert talk.http.post(talk.path(tail), json=body, headers=headers).is_success
    assert talk.http.post(talk.path(tail), json=body, headers=headers).is_success
    assert talk.http.delete(talk.path()).is_success
    refused(talk.http.post(talk.path(tail), json=body, headers=headers), 404, "not_found")


def test_a_repeated_batch_tells_of_every_message_whatever_became_of_it(
    offline: Service, start_talk: StartTalk, key: str
) -> None:
    talk = start_talk(offline, policy=MANUAL)
    past: list[Json] = [
        {"status": "erased", "role": "user"},
        {"is_command": True, "role": "user", "content": "/compact"},
        {"status": "superseded", "role": "assistant", "content": "No."},
        {"status": "interrupted", "role": "assistant", "content": "", "reasoning": "Hm."},
    ]
    body, headers = {"messages": [*past, APPEND]}, {"Idempotency-Key": key}
    first, second = (good(talk.http.post(talk.path("/messages/batch"), json=body, headers=headers)) for _ in range(2))
    assert first == second
    assert [[one["seq"], one["status"], one["is_command"]] for one in second["data"]] == [
        [1, "erased", False],
        [2, "complete", True],
        [3, "superseded", False],
        [4, "interrupted", False],
        [5, "complete", False],
    ]
    served = [one["content"] for one in talk.get("/context")["messages"] if one["seq"] is not None]
    assert served == [APPEND["content"]], "and only what was said is in a context"


@pytest.mark.case("43-body")
def test_the_key_with_another_body_is_refused(offline: Service, start_talk: StartTalk, key: str) -> None:
    talk = start_talk(offline)
    talk.post("/messages", APPEND, idempotency_key=key)
    refused(talk.post("/messages", {**APPEND, "content": "Other."}, idempotency_key=key), 422, "idempotency_key_reused")
    refused(talk.post("/chat", {"content": "Other."}, idempotency_key=key), 422, "idempotency_key_reused")
    assert len(talk.history()) == 1


def test_the_key_of_one_conversation_is_not_that_of_another(offline: Service, start_talk: StartTalk, key: str) -> None:
    """A key stands for a request to one path."""
    one, other = start_talk(offline), start_talk(offline)
    assert one.post("/messages", APPEND, idempotency_key=key).is_success
    refused(other.post("/messages", APPEND, idempotency_key=key), 422, "idempotency_key_reused")


def test_a_repeated_stream_is_short(gemini_service: Service, start_talk: StartTalk, gemini: Gemini, key: str) -> None:
    talk = start_talk(gemini_service)
    gemini.script(
        "chat", {"name": "text", "text": "A story of many words, in pieces that come one by one.", "pace": 0.2}
    )
    first = talk.streamed("Tell me a story of many words, please, so that it has pieces.", idempotency_key=key)
    again = talk.streamed("Tell me a story of many words, please, so that it has pieces.", idempotency_key=key)
    assert [event.type for event in again] == ["message.created", "reply.delta", "reply.completed"]
    assert len(first) > len(again)
    assert again[0].data == first[0].data
    assert again[1].data == {"text": first[-1].data["reply"]["content"]}
    assert again[-1].data == first[-1].data
    assert len(gemini.requests("chat")) == 1


def test_a_turn_that_still_runs_is_followed(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, key: str
) -> None:
    talk = start_talk(gemini_service)
    gemini.script("chat", {"name": "honest", "hold": True})
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(talk.chat, "Slowly.", idempotency_key=key)
        gemini.wait_for("chat")
        second = threads.submit(talk.chat, "Slowly.", idempotency_key=key)
        third = threads.submit(talk.streamed, "Slowly.", idempotency_key=key)
        refused(talk.post("/chat", {"content": "Fast."}, idempotency_key=key), 422, "idempotency_key_reused")
        refused(talk.post("/chat", {"content": "Slowly."}, idempotency_key=f"other {key}"), 409, "turn_in_progress")
        gemini.release()
        done = first.result(20)
    assert second.result(20) == third.result(20)[-1].data == talk.chat("Slowly.", idempotency_key=key) == done
    assert len(gemini.requests("chat")) == 1


@pytest.mark.case("43-died")
def test_a_failed_turn_is_taken_up_again(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, key: str
) -> None:
    talk = start_talk(gemini_service)
    gemini.script("chat", "error_503")
    problem = refused(talk.post("/chat", {"content": "Once."}, idempotency_key=key), 503, "model_unavailable")
    done = talk.chat("Once.", idempotency_key=key)
    assert done["message"]["id"] == problem["message_id"]
    assert talk.history() == [done["message"], done["reply"]]


@pytest.mark.long
def test_a_compaction_that_came_to_nothing_is_tried_again_under_its_key(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, key: str
) -> None:
    talk = start_talk(gemini_service, policy=MANUAL)
    talk.batch(lines(30))
    gemini.script("compaction", HELD)
    with ThreadPoolExecutor(1) as client:
        overtaken = client.submit(talk.post, "/compact", idempotency_key=key)
        gemini.wait_for("compaction")
        talk.http.delete(talk.path(f"/messages/{talk.history()[0]['id']}"))
        gemini.release()
        assert refused(overtaken.result(20), 409, "conflict")["retryable"]
    gemini.script("compaction", default="error_400")
    lasting = refused(talk.post("/compact", idempotency_key=key), 502, "summarizer_failed")
    assert (lasting["reason"], lasting["retryable"]) == ("bad_request", False), "but something may have been changed"
    gemini.script("compaction", default="honest")
    done = good(talk.post("/compact", idempotency_key=key))
    assert done["status"] == "applied"
    assert good(talk.post("/compact", idempotency_key=key)) == done
    assert [row["status"] for row in talk.compactions()] == ["superseded", "failed", "applied"]


@pytest.mark.long
@pytest.mark.case("43")
def test_fifty_at_once_store_one_message(offline: Service, start_talk: StartTalk, key: str) -> None:
    talk = start_talk(offline)

    def send(_: int) -> httpx.Response:
        return talk.post("/messages", APPEND, idempotency_key=key)

    with ThreadPoolExecutor(50) as threads:
        responses = list(threads.map(send, range(50)))

    assert {response.status_code for response in responses} == {201}
    (stored,) = talk.history()
    assert all(response.json() == stored for response in responses)


@pytest.mark.case("43")
def test_fifty_at_once_start_one_turn(gemini_service: Service, start_talk: StartTalk, gemini: Gemini, key: str) -> None:
    talk = start_talk(gemini_service)

    def send(_: int) -> httpx.Response:
        return talk.post("/chat", {"content": "Once."}, idempotency_key=key)

    with ThreadPoolExecutor(50) as threads:
        responses = list(threads.map(send, range(50)))

    assert len(talk.history()) == 2
    assert len(gemini.requests("chat")) == 1
    first, *others = map(good, responses)
    assert all(other == first for other in others)
