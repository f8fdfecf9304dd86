"""A page that is reloaded in the middle of a reply, and a reply that is made again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import httpx
import pytest

from tests.acceptance.chaos import LEASE_SECONDS, MINUTE, Books
from tests.acceptance.conftest import StartService, StartTalk, gemini_settings
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.talk import STREAM, Json, Sse, Talk, good, read_events, refused, served_seqs
from tests.acceptance.test_turns import SLOWLY, STOPS
from tests.gemini_server import Gemini

Result = TypeVar("Result")

IN_TIME: Final = 3.0
"""The most seconds until a client comes back, also on a busy machine."""


@contextmanager
def followed(talk: Talk, service: Service | None = None) -> Iterator[Iterator[Sse]]:
    """The stream of the running turn, requested from this service."""
    http = (service or talk.service).client()
    with http, http.stream("GET", talk.path("/chat/stream"), headers=STREAM) as response:
        assert response.status_code == 200
        yield read_events(response)


def soon(call: Callable[[Iterator[Sse]], Result], events: Iterator[Sse]) -> Result:
    """The result of a call on a stream that must go on or end within a minute."""
    thread = ThreadPoolExecutor(1)
    try:
        return thread.submit(call, events).result(MINUTE)
    finally:
        thread.shutdown(wait=False)


def words(events: list[Sse]) -> str:
    return "".join(event.data["text"] for event in events if event.type == "reply.delta")


def test_a_reload_in_the_middle_shows_the_reply_from_its_beginning(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service)
    assert talk.http.get(talk.path("/chat/stream")).status_code == 204
    gemini.script("chat", STOPS)
    with talk.streaming("Take your time.") as events:
        first = [next(events), next(events)]
        with followed(talk) as again:
            gemini.release()
            second = list(again)
        first += events
    assert first[0] == second[0]
    assert first[0].data["reply_id"] == first[-1].data["reply"]["id"]
    assert words(first) == words(second) == SLOWLY
    assert first[-1] == second[-1]
    assert talk.http.get(talk.path("/chat/stream")).status_code == 204


@pytest.mark.long
def test_a_client_that_comes_back_in_time_keeps_its_reply(
    start_service: StartService, start_talk: StartTalk, gemini: Gemini, gemini_server: Gemini
) -> None:
    settings = {**gemini_settings(gemini_server), "THROUGHLINE_UNFOLLOWED_SECONDS": str(IN_TIME)}
    service = start_service(worker=False, **settings)
    talk, books = start_talk(service, policy={"on_disconnect": "interrupt"}), Books(service.database_url)
    gemini.script("chat", STOPS)
    with service.client() as http:
        body = {"content": "I have to go."}
        with http.stream("POST", talk.path("/chat"), json=body, headers=STREAM) as response:
            next(event for event in read_events(response) if event.type == "reply.delta")
    left = books.seconds()
    with followed(talk) as again:
        until(lambda: looked_at(books.turn(talk)) > left + IN_TIME, what="a look after which a turn alone would end")
        gemini.release()
        assert words(list(again)) == SLOWLY
    assert talk.history()[-1]["status"] == "complete"


def looked_at(turn: Json) -> float:
    """The time when the process that runs the turn last renewed its lease."""
    return float(turn["lease_until"]) - LEASE_SECONDS


def test_a_reply_that_is_made_again(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    talk, key = start_talk(gemini_service), "once more, please"
    refused(talk.post("/chat/regenerate"), 409, "not_regenerable")
    first = talk.chat("Where is the harbour?")
    gemini.script("chat", {"name": "text", "text": "In the north."})
    second = good(talk.post("/chat/regenerate", idempotency_key=f"{key} {talk.id}"))
    assert good(talk.post("/chat/regenerate", idempotency_key=f"{key} {talk.id}")) == second
    assert second["message"] == first["message"]
    assert [(item["id"], item["status"]) for item in talk.history()] == [
        (first["message"]["id"], "complete"),
        (first["reply"]["id"], "superseded"),
        (second["reply"]["id"], "complete"),
    ]
    assert talk.history()[1]["content"] == first["reply"]["content"]
    assert served_seqs(talk.context()) == [1, 3]
    assert second["context"] == talk.get("/usage") == talk.context()["gauge"]
    exported = talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
    assert first["reply"]["content"] in exported
    assert "answered again" in exported
    moved = {"expected_last_message_id": first["reply"]["id"]}
    refused(talk.post("/chat/regenerate", moved), 409, "conversation_moved_on")
    streamed = talk.http.post(talk.path("/chat/regenerate"), json={}, headers=STREAM).text
    assert "event: message.superseded" in streamed
    assert "event: reply.completed" in streamed


PIECE_BY_PIECE: Final[Json] = {**STOPS, "one_by_one": True}


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.case("49b-killed")
def test_two_processes_and_kill_9_of_the_one_that_answers(
    start_service: StartService, start_talk: StartTalk, gemini: Gemini, gemini_server: Gemini, tmp_path: Path
) -> None:
    settings = gemini_settings(gemini_server)
    one = start_service(worker=False, **settings)
    urls = {"database_url": one.database_url, "redis_url": one.redis_url}
    (tmp_path / "other").mkdir()
    with running_service(tmp_path / "other", worker=False, settings=settings, **urls) as other:
        check_that_words_come_one_by_one(start_talk(one), other, gemini)
        check_that_a_killed_turn_fails(start_talk(other), one, gemini)


@pytest.mark.long
@pytest.mark.processes
def test_a_response_of_a_process_that_is_killed(
    start_service: StartService, gemini: Gemini, gemini_server: Gemini, tmp_path: Path
) -> None:
    settings = gemini_settings(gemini_server)
    one = start_service(worker=False, **settings)
    urls = {"database_url": one.database_url, "redis_url": one.redis_url}
    (tmp_path / "other").mkdir()
    with (
        running_service(tmp_path / "other", worker=False, settings=settings, **urls) as other,
        one.client() as living,
        other.client() as dying,
    ):
        gemini.script("chat", STOPS)
        conversation = good(living.post("/v1/conversations", json={}))["id"]
        body = {"model": "throughline", "input": "Take your time.", "conversation": conversation, "stream": True}
        with dying.stream("POST", "/v1/responses", json=body, headers={"x-stainless-retry-count": "0"}) as answer:
            own = read_events(answer)
            begun = next(own).data["response"]
            gemini.wait_for("chat", 1)
            with living.stream("GET", f"/v1/responses/{begun['id']}", params={"stream": "true"}) as told_again:
                elsewhere = read_events(told_again)
                told = [next(event for event in elsewhere if event.type == "response.output_text.delta")]
                other.api.signal(signal.SIGKILL)
                told += soon(list, elsewhere)
            with pytest.raises(httpx.TransportError):
                list(own)
        assert (told[-1].type, told[-1].data["response"]["id"]) == ("response.failed", begun["id"])

        gemini.script("chat", "honest")
        retry = {"x-stainless-retry-count": "1"}
        with living.stream("POST", "/v1/responses", json=body, headers=retry, timeout=30) as answer:
            assert list(read_events(answer))[-1].type == "response.completed"
        items = good(living.get(f"/v1/conversations/{conversation}/items", params={"order": "asc"}))["data"]
        said = [item["content"][0]["text"] for item in items if item["role"] == "user"]
        assert said == ["Take your time."], "one effect"


def check_that_words_come_one_by_one(talk: Talk, other: Service, gemini: Gemini) -> None:
    """The control: while both live, the other process hears each piece before the next one comes."""
    gemini.script("chat", PIECE_BY_PIECE)
    with talk.streaming("Take your time.") as own:
        first = [next(own), next(own)]
        with followed(talk, other) as elsewhere:
            second = [soon(next, elsewhere), soon(next, elsewhere)]
            while words(first) != SLOWLY:
                gemini.release()
                first.append(next(own))
                second.append(soon(next, elsewhere))
            second += elsewhere
        first += own
    assert len(first) > 4
    assert first == second


def check_that_a_killed_turn_fails(talk: Talk, other: Service, gemini: Gemini) -> None:
    gemini.script("chat", STOPS)
    api = talk.service.api
    with ThreadPoolExecutor(1) as client:
        client.submit(_broken_off, talk)
        gemini.wait_for("chat", 2)
        with followed(talk, other) as elsewhere:
            told = [next(elsewhere), next(elsewhere)]
            api.signal(signal.SIGKILL)
            told += soon(list, elsewhere)
    assert told[-1].type == "reply.failed"
    assert (told[-1].data["code"], told[-1].data["message_id"]) == ("lease_expired", told[0].data["message_id"])
    assert words(told)
    assert SLOWLY.startswith(words(told))
    again = Talk(other, other.client(), talk.created)
    until(lambda: again.http.get(again.path("/chat/stream")).status_code == 204, what="the end of the turn")
    assert again.chat()["message"]["id"] == told[0].data["message_id"]


def _broken_off(talk: Talk) -> None:
    with pytest.raises(httpx.TransportError):
        talk.streamed("And now?")
