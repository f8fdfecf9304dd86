"""Many clients at once, and clients that leave early, over HTTP: one order, one effect, and nothing stays open."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Final

import httpx
import pytest

from app.http.idempotency import kept_key
from tests.acceptance.chaos import (
    HELD,
    Books,
    FaithfulFollower,
    at_once,
    broken_off,
    check_applied_once,
    most_at_once,
    outcomes,
    past_the_threshold,
)
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import (
    BACKGROUND,
    MANUAL,
    SYNC,
    WINDOW,
    EventFollower,
    Json,
    Talk,
    good,
    lines,
    refused,
    served_seqs,
    text_of,
)
from tests.gemini_server import Gemini

WRITERS: Final = 50
MESSAGES: Final = 10
"""The messages of each writer: 500 in all."""
FEWER: Final = 8
"""The number of writers whose messages still cross the threshold again and again."""
CALLERS: Final = 100
SAME: Final = 50
JUMPING: Final = 10
LEAVING: Final = 6


@pytest.fixture
def service(gemini_service: Service, gemini: Gemini) -> Service:
    return gemini_service


@pytest.fixture
def books(service: Service) -> Books:
    return Books(service.database_url)


@pytest.mark.long
@pytest.mark.parametrize("writers", [FEWER, pytest.param(WRITERS, marks=pytest.mark.long)])
@pytest.mark.case("37")
def test_many_writers_of_one_conversation(offline: Service, start_talk: StartTalk, writers: int) -> None:
    """The context is far over every threshold: there is one order, and never two compactions at once."""
    talk, books = start_talk(offline, policy=WINDOW), Books(offline.database_url)

    def write(writer: int) -> list[Json]:
        return [talk.append(content, role) for role, content in lines(MESSAGES, start=1 + MESSAGES * writer)]

    written = at_once(writers, write)
    talk.wait_settled()

    history = talk.history()
    assert [item["seq"] for item in history] == list(range(1, writers * MESSAGES + 1))
    assert {item["id"]: (item["seq"], item["content"]) for item in history} == {
        item["id"]: (item["seq"], item["content"]) for mine in written for item in mine
    }
    for mine in written:
        assert [item["seq"] for item in mine] == sorted(item["seq"] for item in mine)
    numbers = [event["number"] for event in books.events(talk)]
    assert numbers == list(range(1, len(numbers) + 1))
    check_that_there_was_one_at_a_time(talk)


def check_that_there_was_one_at_a_time(talk: Talk) -> None:
    """Insist that no two compactions were in flight at once, and that each began where the one before ended."""
    rows = talk.compactions()
    assert {row["status"] for row in rows} == {"applied"}
    assert rows[0]["from_seq"] == 1
    for before, after in pairwise(rows):
        assert before["requested_at"] < before["finished_at"] <= after["requested_at"]
        assert after["from_seq"] == before["to_seq"] + 1
        assert after["state_version_before"] == before["state_version_after"]
    assert talk.get()["compression_count"] == len(rows)


@pytest.mark.long
@pytest.mark.case("16")
def test_five_hundred_messages_one_by_one_around_the_threshold(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    for number, (role, content) in enumerate(lines(WRITERS * MESSAGES), 1):
        talk.append(content, role)
        if number % MESSAGES == 0:
            talk.wait_settled()  # so that the threshold is crossed again and again, however slow the worker is
    rows = talk.compactions()
    assert len(rows) > 10, "it was crossed again and again"
    assert all(row["tokens_before"] >= BACKGROUND for row in rows)
    assert len(talk.history()) == WRITERS * MESSAGES
    check_that_there_was_one_at_a_time(talk)


@pytest.mark.long
@pytest.mark.case("42")
def test_a_hundred_manual_calls_are_one_run(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD)
    talk = start_talk(service, policy=MANUAL)
    talk.batch(lines(20))
    keys = [kept_key(f"compact-{number}") for number in range(CALLERS)]
    joined = "SELECT count(*) FROM idempotency_keys WHERE key = ANY(:keys)"
    with ThreadPoolExecutor(1) as caller:
        calls = caller.submit(
            at_once, CALLERS, lambda number: talk.post("/compact", {}, Idempotency_Key=f"compact-{number}")
        )
        until(lambda: books.value(joined, keys=keys) == CALLERS, what=f"{CALLERS} callers")
        gemini.wait_for("compaction")
        assert outcomes(gemini) == ["open"]
        gemini.release()
        rows = [good(response) for response in calls.result()]
    assert len({row["id"] for row in rows}) == 1
    assert [row["joined"] for row in rows].count(False) == 1
    assert {(row["status"], row["summary"]) for row in rows} == {("applied", rows[0]["summary"])}
    assert len(outcomes(gemini)) == 1
    assert check_applied_once(talk, books)["ran_in"] == "request"


@pytest.mark.long
@pytest.mark.case("43", "43-body")
def test_the_same_key_fifty_times(service: Service, gemini: Gemini, start_talk: StartTalk) -> None:
    gemini.script("chat", default={"name": "honest", "delay": 0.3})
    talk = start_talk(service)
    bodies: dict[str, Json] = {
        "/messages": {"role": "user", "content": "The cellar holds eleven boxes."},
        "/chat": {"content": "How many boxes does the cellar hold?"},
    }
    for path, body in bodies.items():
        key = f"same{path}-{talk.id}"
        answers = at_once(SAME, partial(keyed, talk, path, body, key))
        again = good(talk.post(path, body, Idempotency_Key=key))
        assert all(subject(good(answer)) == subject(again) for answer in answers)
        refused(talk.post(path, {**body, "content": "Another."}, Idempotency_Key=key), 422, "idempotency_key_reused")
    assert [item["role"] for item in talk.history()] == ["user", "user", "assistant"]
    assert len(gemini.requests("chat")) == 1


def keyed(talk: Talk, path: str, body: Json, key: str, _: int) -> httpx.Response:
    return talk.post(path, body, Idempotency_Key=key)


def subject(answer: Json) -> Json:
    """What a request made, without the gauge, which may have changed."""
    return {name: answer[name] for name in ("message", "reply")} if "reply" in answer else answer


def test_the_same_key_makes_one_conversation(service: Service, start_talk: StartTalk) -> None:
    first = start_talk(service)
    body, headers = {"title": "One of fifty"}, {"Idempotency-Key": f"create-{first.id}"}
    answers = at_once(SAME, lambda _: good(first.http.post("/conversations", json=body, headers=headers)))
    made = {answer["id"] for answer in answers}
    assert len(made) == 1
    assert first.http.delete(f"/conversations/{made.pop()}").status_code == 204


@pytest.mark.long
@pytest.mark.case("41")
def test_a_turn_at_85_percent_waits_for_the_job_in_flight_and_uses_it(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD)
    talk = past_the_threshold(start_talk(service, policy=WINDOW))
    gemini.wait_for("compaction")
    meanwhile = talk.append("And one lamp for the stairs, please, while we wait.")
    with ThreadPoolExecutor(1) as client:
        turn = client.submit(talk.chat, text_of(SYNC + 20 - talk.get("/usage")["tokens"]))
        until(lambda: books.turn(talk)["status"] == "running" if len(talk.history()) > meanwhile["seq"] else False)
        assert talk.get("/usage")["tokens"] >= SYNC
        time.sleep(1)  # the turn looks four times at the job that it waits for
        assert (len(outcomes(gemini)), len(gemini.requests("chat"))) == (1, 0)
        assert not turn.done()
        gemini.release()
        done = turn.result(30)
    row = check_applied_once(talk, books)
    assert (row["ran_in"], row["trigger"]) == ("worker", "background")
    assert (done["compaction"]["id"], done["compaction"]["status"]) == (row["id"], "applied")
    assert done["warnings"] == []
    assert (len(outcomes(gemini)), most_at_once(gemini.requests("compaction"))) == (1, 1)
    assert done["context"]["tokens"] < SYNC
    after = [seq for seq in served_seqs(talk.context()) if seq > row["to_seq"]]
    assert after == list(range(row["to_seq"] + 1, done["reply"]["seq"] + 1)), "what came meanwhile is in the tail"
    assert meanwhile["seq"] in after


@pytest.mark.long
@pytest.mark.case("41")
def test_a_turn_at_85_percent_waits_no_longer_than_its_deadline(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD, HELD)
    talk = past_the_threshold(start_talk(service, policy={**WINDOW, "sync_deadline": 1}))
    patient = past_the_threshold(start_talk(service, policy={**WINDOW, "sync_deadline": 15}))
    gemini.wait_for("compaction", 2)
    with ThreadPoolExecutor(1) as client:
        waiting = client.submit(patient.chat, text_of(SYNC + 20 - patient.get("/usage")["tokens"]))
        done = talk.chat(text_of(SYNC + 20 - talk.get("/usage")["tokens"]))
        assert outcomes(gemini) == ["open", "open"], "the jobs run on, and nobody began another"
        assert gemini.requests("chat")[0]["started"] - books.turn(talk)["started_at"] >= 1
        assert not waiting.done(), "control: a later deadline is waited for longer"
        gemini.release()
        assert waiting.result(30)["warnings"] == []
    assert done["warnings"][0] == "compaction_deadline"
    assert done["compaction"]["status"] == "running"
    talk.wait_ended()
    assert check_applied_once(talk, books)["ran_in"] == "worker"


def test_two_that_jump_at_once_are_one_turn_and_one_compaction(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    talk = start_talk(service, policy=WINDOW)
    talk.fill(2_000)
    jump = text_of(SYNC + 20 - talk.get("/usage")["tokens"])
    gemini.script("compaction", HELD)
    refusals: list[Json] = []

    def turn(_: int) -> Json | None:
        answer = talk.post("/chat", {"content": jump})
        if answer.is_success:
            return good(answer)
        refusals.append(refused(answer, 409, "turn_in_progress"))
        return None

    with ThreadPoolExecutor(1) as clients:
        answers = clients.submit(at_once, JUMPING, turn)
        until(lambda: len(refusals) == JUMPING - 1 or answers.done(), what="the refusal of all but one")
        gemini.wait_for("compaction")
        gemini.release()
        (done,) = (answer for answer in answers.result(30) if answer)
    assert check_applied_once(talk, books)["id"] == done["compaction"]["id"]
    assert len(outcomes(gemini)) == len(outcomes(gemini, "chat")) == 1


@pytest.mark.long
@pytest.mark.parametrize("how", ["json", pytest.param("stream", marks=pytest.mark.long)])
@pytest.mark.case("45-compaction")
def test_clients_that_leave_in_the_middle_of_a_compaction(
    how: str, service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", default=HELD)
    talks = [start_talk(service, policy=WINDOW) for _ in range(LEAVING)]
    for talk in talks:
        talk.fill(2_000)
    at_once(LEAVING, lambda number: leave(talks[number], gemini, how))
    assert outcomes(gemini) == ["open"] * LEAVING, "all have left in the middle"
    gemini.script("compaction", default="honest")
    gemini.release()
    for talk in talks:
        wait_completed(talk, books)
        assert check_applied_once(talk, books)["ran_in"] == "turn"
        *_, asked, reply = talk.history()
        assert (reply["role"], reply["status"], reply["seq"]) == ("assistant", "complete", asked["seq"] + 1)
        (told,) = books.events(talk, "reply.")
        assert (told["type"], told["data"]["message_id"]) == ("reply.completed", reply["id"])
    check_that_connections_came_back(talks[0], books)


def leave(talk: Talk, gemini: Gemini, how: str) -> None:
    """Send a message that needs a compaction, and disconnect while it runs."""
    jump = text_of(SYNC + 20 - talk.get("/usage")["tokens"])
    if how == "json":
        with talk.service.client() as http, pytest.raises(httpx.ReadTimeout):
            http.post(talk.path("/chat"), json={"content": jump}, timeout=httpx.Timeout(5, read=1))
    else:
        with talk.streaming(jump) as events:
            assert next(events).type == "message.created"
            gemini.wait_for("compaction")
    gemini.wait_for("compaction", LEAVING)


@pytest.mark.long
@pytest.mark.case("45-stream")
def test_clients_that_leave_in_the_middle_of_a_stream(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("chat", default={"name": "honest", "hold_after": 1})
    talks = [start_talk(service) for _ in range(LEAVING)]

    def read_a_little(number: int) -> str:
        with talks[number].streaming(f"Tell me of the {number} lamps, the tables and all that was bought.") as events:
            return str(next(event for event in events if event.type == "reply.delta").data["text"])

    begun = at_once(LEAVING, read_a_little)
    assert outcomes(gemini, "chat") == ["open"] * LEAVING, "they left before the end"
    gemini.release()
    for talk, beginning in zip(talks, begun, strict=True):
        wait_completed(talk, books)
        reply = talk.history()[-1]
        assert (reply["role"], reply["status"]) == ("assistant", "complete")
        assert reply["content"].startswith(beginning)
        assert len(reply["content"]) > len(beginning)
    assert outcomes(gemini, "chat") == ["answered"] * LEAVING
    check_that_connections_came_back(talks[0], books)


def wait_completed(talk: Talk, books: Books) -> None:
    until(lambda: books.turn(talk)["status"] == "completed", what="the end of the turn")


def check_that_connections_came_back(talk: Talk, books: Books) -> None:
    """Insist that no connection is within a transaction, and that more requests than the pool's size are answered."""
    until(lambda: not books.busy(), what=f"rest of {books.busy()}")
    assert all(good(response) for response in at_once(30, lambda _: talk.http.get(talk.path())))


def test_a_turn_that_nobody_waits_for_any_more_blocks_the_next_only_while_it_runs(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("chat", HELD)
    talk = start_talk(service)
    with ThreadPoolExecutor(1) as client:
        http = service.client()
        left = client.submit(broken_off, Talk(service, http, talk.created), "Are you there?")
        gemini.wait_for("chat")
        refused(talk.post("/chat", {"content": "Or you?"}), 409, "turn_in_progress")
        assert len(talk.history()) == 1, "a refused turn stores nothing"
        gemini.release()
        assert left.result(30) is False
        http.close()
    assert talk.chat("And now?")["reply"]["seq"] == 4
    assert [turn["status"] for turn in [books.turn(talk)]] == ["completed"]


@pytest.mark.long
@pytest.mark.case("47")
def test_a_reader_who_comes_and_goes_hears_everything_once(
    service: Service, start_talk: StartTalk, books: Books
) -> None:
    talk = start_talk(service, policy=WINDOW)
    with FaithfulFollower(talk) as follower:
        for number, (role, content) in enumerate(lines(80)):
            talk.append(content, role)
            if number % 8 == 0:
                follower.wait_for_connection(number // 8 + 1)
                follower.leave()
        talk.wait_settled()
        follower.check(books)
    assert talk.compactions()


@pytest.mark.case("47")
def test_a_reader_who_was_away_for_ten_events(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    talk.batch(lines(9))
    with EventFollower(talk) as before:
        before.wait_for(lambda events: len(events) == 9)
    talk.batch(lines(10, start=20))
    with EventFollower(talk, last_event_id=before.numbers()[-1]) as after:
        after.wait_for(lambda events: len(events) == 10)
        talk.append("And one more while the reader listens.")
        after.wait_for(lambda events: len(events) == 11)
    assert before.numbers() + after.numbers() == list(range(1, 21))
