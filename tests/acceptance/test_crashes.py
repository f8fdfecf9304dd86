"""``kill -9`` of a worker, its child, the API and Postgres, in the middle of what they do: nothing is lost or doubled.

Processes are killed, not the machine: what the kernel holds for the disk survives.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from tests.acceptance.chaos import (
    HELD,
    LEASE_SECONDS,
    MINUTE,
    Books,
    FaithfulFollower,
    Load,
    OwnServers,
    at_once,
    broken_off,
    check_applied_once,
    kill_children,
    most_at_once,
    outcomes,
    past_the_threshold,
    pool_children,
)
from tests.acceptance.conftest import StartTalk, gemini_settings
from tests.acceptance.service import Service, running_service, until
from tests.acceptance.talk import IN_FLIGHT, SYNC, WINDOW, Json, Talk, good, refused, text_of
from tests.gemini_server import Gemini, gemini_process
from tests.servers import migrate

pytestmark = [pytest.mark.long, pytest.mark.processes]

RESTARTS = 20
CLAIMS = 5
"""How many times a compaction may crash its process."""


@pytest.fixture(scope="module")
def gemini_server() -> Iterator[Gemini]:
    """The scripted server of these tests alone, so that compactions of other tests cannot use up their scripts."""
    with gemini_process() as server:
        yield server


@pytest.fixture(scope="module")
def servers_of_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServers]:
    with OwnServers(tmp_path_factory.mktemp("servers")) as own:
        migrate(own.endpoints.database_url)
        yield own


@pytest.fixture(scope="module")
def crashing(
    servers_of_ours: OwnServers, gemini_server: Gemini, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """One worker with one child, so that the child is the one that works."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("THROUGHLINE_WORKER_CONCURRENCY", "1")  # it becomes an argument of the worker's command
        with running_service(
            tmp_path_factory.mktemp("crashing"),
            database_url=servers_of_ours.endpoints.database_url,
            redis_url=servers_of_ours.endpoints.redis_url,
            settings=gemini_settings(gemini_server),
        ) as running:
            assert len(pool_children(running.worker)) == 1
            yield running


@pytest.fixture
def service(crashing: Service, gemini: Gemini) -> Service:
    """The service with all its processes running, whatever the test before has killed."""
    for process in crashing.processes:
        if not process.alive:
            process.start()
    return crashing


@pytest.fixture
def books(crashing: Service) -> Books:
    return Books(crashing.database_url)


@pytest.mark.parametrize("killed", ["child", "worker"])
@pytest.mark.case("31-worker")
def test_kill_9_of_the_worker_in_the_middle_of_the_model_call(
    killed: str, service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD, HELD)
    talk = past_the_threshold(start_talk(service, policy=WINDOW))
    gemini.wait_for("compaction")
    first = books.compaction(talk)
    assert (first["status"], first["claims"]) == ("running", 1)
    assert outcomes(gemini) == ["open"]

    killed_at = time.monotonic()
    if killed == "child":
        kill_children(service.worker)
        until(lambda: outcomes(gemini) == ["client_left"], what="the end of the child")
        books.end_lease(first)  # the other test waits for it
    else:
        service.worker.signal(signal.SIGKILL)
        until(lambda: outcomes(gemini) == ["client_left"], what="the end of the child, which nobody killed")
        service.worker.kill()
        service.worker.start()
    until(lambda: len(outcomes(gemini)) == 2, MINUTE, what="a second try")
    again = books.compaction(talk)
    assert (again["id"], again["status"], again["claims"]) == (first["id"], "running", 2)
    assert again["lease_token"] != first["lease_token"]
    gemini.release()
    talk.wait_ended()

    assert time.monotonic() - killed_at < MINUTE
    assert outcomes(gemini) == ["client_left", "answered"], "the kill hit in the middle, the second try was used"
    assert check_applied_once(talk, books)["ran_in"] == "worker"
    assert [event["type"] for event in books.events(talk, "compaction.")] == [
        "compaction.queued",
        "compaction.started",
        "compaction.started",
        "compaction.applied",
    ]


def test_a_worker_that_is_asked_to_stop_gives_its_job_back_uncounted(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD, HELD)
    talk = past_the_threshold(start_talk(service, policy=WINDOW))
    gemini.wait_for("compaction")
    assert books.compaction(talk)["claims"] == 1

    service.worker.signal(signal.SIGTERM)
    until(lambda: not service.worker.alive, what="the end of the worker")
    assert service.worker.stop() == 0, "it ended by itself, in order"
    row = books.compaction(talk)
    assert (row["status"], row["claims"], row["lease_token"], row["owner"]) == ("queued", 0, None, None)
    until(lambda: outcomes(gemini) == ["client_left"], what="the end of its call")

    service.worker.start()
    gemini.wait_for("compaction", 2)
    assert books.compaction(talk)["claims"] == 1
    gemini.release()
    talk.wait_ended()
    assert check_applied_once(talk, books)["ran_in"] == "worker"


@pytest.mark.case("39")
def test_a_stale_compactor_that_finishes_last_writes_nothing(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    """The worker is frozen until its lease is over; a manual call takes the row over, then the worker goes on."""
    gemini.script("compaction", HELD)
    talk = past_the_threshold(start_talk(service, policy=WINDOW))
    gemini.wait_for("compaction")
    held = books.compaction(talk)
    os.killpg(service.worker.pid, signal.SIGSTOP)
    try:
        books.end_lease(held)
        joined = talk.compact()
        state = talk.state()
        gemini.release()
        until(lambda: outcomes(gemini) == ["answered", "answered"], what="the answer to the frozen worker")
    finally:
        os.killpg(service.worker.pid, signal.SIGCONT)

    assert (joined["id"], joined["joined"], joined["ran_in"]) == (str(held["id"]), True, "request")
    until(lambda: "compaction.lease_lost" in service.worker.log_since_start, what="the worker's own insight")
    assert talk.state() == state
    check_applied_once(talk, books)


def test_a_conversation_deleted_in_the_middle_of_its_compaction_harms_nobody(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD)
    gone, other = start_talk(service, policy=WINDOW), start_talk(service, policy=WINDOW)
    children = pool_children(service.worker)
    past_the_threshold(gone)
    gemini.wait_for("compaction")
    assert gone.http.delete(gone.path()).status_code == 204
    gemini.release()
    past_the_threshold(other).wait_ended()
    assert check_applied_once(other, books)["ran_in"] == "worker"
    assert books.value("SELECT count(*) FROM compactions WHERE conversation_id = CAST(:id AS uuid)", id=gone.id) == 0
    assert pool_children(service.worker) == children


@dataclass(frozen=True)
class Turns:
    """Four turns at the moment in which their API was killed."""

    unkeyed: Talk
    keyed: Talk
    compacting: Talk
    answered: Talk
    reply: Json
    """The answer to the turn in ``answered``."""
    killed_at: float
    """The time by the database's clock."""


@pytest.fixture
def turns(service: Service, gemini: Gemini, start_talk: StartTalk, books: Books) -> Turns:
    """Hold two turns in the chat model and one in its summarizer, answer one; then kill and restart the API."""
    unkeyed, keyed, compacting, answered = (start_talk(service, policy=WINDOW) for _ in range(4))
    compacting.fill(2_000)
    jump = text_of(SYNC + 50 - compacting.get("/usage")["tokens"])
    reply = answered.chat("What is the capital of Peru?", Idempotency_Key="answered")
    gemini.script("chat", default=HELD)
    gemini.script("compaction", HELD)
    with ThreadPoolExecutor(3) as clients:
        waiting = [
            clients.submit(broken_off, unkeyed, "Is anybody there?"),
            clients.submit(broken_off, keyed, "Which shelf is free?", Idempotency_Key="keyed"),
            clients.submit(broken_off, compacting, jump),
        ]
        gemini.wait_for("chat", 3)
        gemini.wait_for("compaction")
        assert outcomes(gemini, "chat")[1:] == ["open", "open"]
        assert outcomes(gemini) == ["open"]
        service.api.kill()
        killed_at = books.seconds()
        books.set_turn_lease(keyed, MINUTE)
        assert all(client.result(30) for client in waiting), "no client was answered"
    until(lambda: outcomes(gemini, "chat")[1:] == ["client_left", "client_left"], what="the end of the calls")
    gemini.script("chat", default="honest")
    service.api.start()
    return Turns(unkeyed, keyed, compacting, answered, reply, killed_at)


@pytest.mark.case("31-response", "43-died")
def test_kill_9_of_the_api_in_the_middle_of_turns(turns: Turns, gemini: Gemini, books: Books) -> None:
    """One kill, looked at from every side, since it takes long."""
    check_that_the_dead_turn_blocks_for_a_lease_at_most(turns, books)
    check_that_its_key_takes_a_turn_up_again(turns, gemini, books)
    check_that_the_worker_does_the_compaction_of_the_dead_turn(turns, gemini, books)
    check_that_an_answered_turn_is_answered_again(turns)


def check_that_the_dead_turn_blocks_for_a_lease_at_most(turns: Turns, books: Books) -> None:
    talk, dead = turns.unkeyed, books.turn(turns.unkeyed)
    assert [item["content"] for item in talk.history()] == ["Is anybody there?"]
    assert 0 < dead["lease_until"] - turns.killed_at <= LEASE_SECONDS
    while True:
        asked_at = books.seconds()
        answer = talk.post("/chat")
        if answer.is_success:
            break
        refused(answer, 409, "turn_in_progress")
        assert int(answer.headers["Retry-After"]) > 0
        assert asked_at < dead["lease_until"], "a dead turn blocked longer than its lease"
        time.sleep(0.25)
    done = good(answer)
    assert done["message"]["content"] == "Is anybody there?"
    assert [item["id"] for item in talk.history()] == [done["message"]["id"], done["reply"]["id"]]


def check_that_its_key_takes_a_turn_up_again(turns: Turns, gemini: Gemini, books: Books) -> None:
    talk, body = turns.keyed, {"content": "Which shelf is free?"}
    (message,) = talk.history()
    with ThreadPoolExecutor(1) as client:
        following = client.submit(talk.post, "/chat", body, Idempotency_Key="keyed")
        until(lambda: books.turn(talk)["followed_at"], what="a follower of the dead turn")
        books.set_turn_lease(talk, -1)
        assert refused(following.result(30), 503, "lease_expired")["message_id"] == message["id"]
    calls = len(gemini.requests("chat"))
    answers = at_once(8, lambda _: talk.post("/chat", body, Idempotency_Key="keyed"))
    done = talk.chat(body["content"], Idempotency_Key="keyed")
    assert done["message"]["id"] == message["id"]
    assert [item["id"] for item in talk.history()] == [message["id"], done["reply"]["id"]]
    assert {good(answer)["reply"]["id"] for answer in answers} == {done["reply"]["id"]}
    assert len(gemini.requests("chat")) == calls + 1, "the model was asked once"
    refused(talk.post("/chat", {"content": "Else?"}, Idempotency_Key="keyed"), 422, "idempotency_key_reused")


def check_that_the_worker_does_the_compaction_of_the_dead_turn(turns: Turns, gemini: Gemini, books: Books) -> None:
    talk = turns.compacting
    talk.wait_ended()
    row = check_applied_once(talk, books)
    assert (row["trigger"], row["ran_in"]) == ("sync", "worker")
    assert most_at_once(gemini.requests("compaction")) == 1
    until(lambda: books.turn(talk)["status"] == "failed", what="the end of the dead turn")
    asked = talk.history()[-1]
    done = talk.chat()
    assert done["message"]["id"] == asked["id"]
    assert talk.history()[-1]["id"] == done["reply"]["id"]
    assert books.events(talk, "reply.")[0]["data"]["message_id"] == asked["id"]
    assert [event["type"] for event in books.events(talk, "reply.")] == ["reply.failed", "reply.completed"]


def check_that_an_answered_turn_is_answered_again(turns: Turns) -> None:
    """This is the state after a crash between the commit and the response."""
    again = turns.answered.chat("What is the capital of Peru?", Idempotency_Key="answered")
    assert (again["message"], again["reply"]) == (turns.reply["message"], turns.reply["reply"])
    assert len(turns.answered.history()) == 2


@pytest.mark.case("43-died")
def test_kill_9_of_the_api_in_the_middle_of_a_response(service: Service, gemini: Gemini, start_talk: StartTalk) -> None:
    """A request that is sent again, as OpenAI's SDKs do, is answered with its own instructions and tools."""
    talk = start_talk(service)
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    body = {
        "model": "throughline",
        "conversation": f"conv_{talk.id.replace('-', '')}",
        "input": "Is it raining?",
        "instructions": "Answer in rhymes.",
        "tools": [tool],
    }

    def asked(tries: int) -> httpx.Response:
        with service.client() as client:
            return client.post("/v1/responses", json=body, headers={"X-Stainless-Retry-Count": str(tries)})

    gemini.script("chat", HELD)
    with ThreadPoolExecutor(1) as clients:
        waiting = clients.submit(asked, 0)
        gemini.wait_for("chat")
        service.api.kill()
        with pytest.raises(httpx.HTTPError):
            waiting.result(30)
    service.api.start()
    until(lambda: asked(1).is_success, MINUTE, what="an answer")
    first, last = gemini.requests("chat")
    assert "get_weather" in json.dumps(first["body"]["tools"])
    assert "rhymes" in json.dumps(first["body"]["systemInstruction"])
    assert [last["body"][name] for name in ("tools", "systemInstruction", "contents")] == [
        first["body"][name] for name in ("tools", "systemInstruction", "contents")
    ]
    question, _ = talk.history()
    assert question["content"] == body["input"]


@pytest.mark.case("31-append")
def test_kill_9_of_the_api_while_many_append(service: Service, start_talk: StartTalk, books: Books) -> None:
    talks = [start_talk(service), start_talk(service)]
    with FaithfulFollower(talks[0]) as follower:
        with Load(talks) as load:
            load.wait_for_more()
            service.api.kill()
            service.api.start()
            load.wait_for_more()
        assert load.interrupted > 0, "the kill hit in the middle"
        load.check(books)
        follower.wait_for_connection(2)
        follower.check(books)


@pytest.mark.case("35-restarts")
def test_twenty_restarts_of_the_api_under_load(service: Service, start_talk: StartTalk, books: Books) -> None:
    talks = [start_talk(service), start_talk(service)]
    with FaithfulFollower(talks[0]) as follower:
        with Load(talks) as load:
            for _ in range(RESTARTS):
                load.wait_for_more(10)
                assert service.api.stop() in {0, -signal.SIGTERM}, "it ended by itself, and in time"
                service.api.start()
            load.wait_for_more(10)
        load.check(books)
        follower.check(books)


@pytest.mark.control("35-restarts")
def test_control_a_message_that_a_restart_would_lose_is_missed(
    service: Service, start_talk: StartTalk, books: Books
) -> None:
    talk = start_talk(service)
    with Load([talk]) as load:
        load.wait_for_more(10)
    load.check(books)
    books.rows("DELETE FROM messages WHERE conversation_id = CAST(:id AS uuid) AND seq = 5", id=talk.id)
    with pytest.raises(AssertionError):
        load.check(books)


@pytest.mark.case("31-postgres")
def test_kill_9_of_postgres_under_load(
    service: Service, servers_of_ours: OwnServers, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    gemini.script("compaction", HELD)
    talks = [start_talk(service), start_talk(service)]
    compacted = past_the_threshold(start_talk(service, policy=WINDOW))
    gemini.wait_for("compaction")
    with FaithfulFollower(talks[0]) as follower:
        with Load(talks) as load:
            load.wait_for_more()
            servers_of_ours.kill("PostgreSQL")
            until(lambda: load.refusals, what="a refusal")
            assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 503
            servers_of_ours.revive()
            load.wait_for_more()
        assert {status for status, _ in load.refusals} == {503}
        load.check(books)
        follower.check(books)
    gemini.release()
    compacted.wait_ended()
    check_applied_once(compacted, books)
    assert all(process.alive for process in service.processes)


@pytest.mark.case("33")
def test_a_poison_conversation_is_given_up_and_the_others_are_not(
    service: Service, gemini: Gemini, start_talk: StartTalk, books: Books
) -> None:
    """The worker's child dies each time the summarizer is asked about one conversation."""
    gemini.script("compaction", default=HELD)
    poison, healthy = start_talk(service, policy=WINDOW), start_talk(service, policy=WINDOW)
    poison.append("The word of the day is upas-tree.")
    past_the_threshold(poison)
    for crash in range(1, CLAIMS + 1):
        wait_for_the_poison(gemini, crash)
        row = books.compaction(poison)
        assert row["claims"] == crash
        if crash == 1:
            past_the_threshold(healthy)
        kill_children(service.worker)
        until(lambda: "open" not in poisoned(gemini), what="the end of the child")
        books.end_lease(row)
    until(lambda: books.compaction(poison)["status"] not in IN_FLIGHT, MINUTE, what="the end of the poison")
    gemini.script("compaction", default="honest")
    gemini.release()

    (failed,) = poison.compactions()
    assert (failed["status"], failed["reason"], failed["attempts"]) == ("failed", "crashed", [])
    told = [event["type"] for event in books.events(poison, "compaction.")]
    assert told == ["compaction.queued", *["compaction.started"] * CLAIMS, "compaction.failed"]
    assert (poison.state()["state_version"], poison.state()["compressed_state"]) == (0, None)
    healthy.wait_ended()
    check_applied_once(healthy, books)

    calls = len(gemini.requests("compaction"))
    poison.append("And another one, well above the threshold.")
    assert poison.chat("Are you still there?")["reply"]["content"]
    assert len(poison.compactions()) == 1, "it is quiet for a while"
    assert len(gemini.requests("compaction")) == calls
    quiet = "SELECT quiet_until > clock_timestamp() AND quiet_reason = 'crashed' FROM conversations"
    assert books.value(f"{quiet} WHERE id = CAST(:id AS uuid)", id=poison.id)


def about_the_poison(call: Json) -> bool:
    return "upas-tree" in json.dumps(call["body"])


def poisoned(gemini: Gemini) -> list[str]:
    """The outcomes of the calls about the poison."""
    return [call["outcome"] for call in gemini.requests("compaction") if about_the_poison(call)]


def wait_for_the_poison(gemini: Gemini, times: int) -> None:
    """Wait until the poison was asked about this many times; calls about other conversations are answered."""

    def came() -> bool:
        calls = gemini.requests("compaction")
        held = [about_the_poison(call) for call in calls if call["outcome"] == "open"]
        if held == [False]:
            gemini.release()
        return held == [True] and sum(map(about_the_poison, calls)) == times

    until(came, MINUTE, what=f"call {times} about the poison")
