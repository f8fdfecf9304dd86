"""The main job: a conversation that grows message by message is compacted in the background, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import cast

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    BACKGROUND,
    SYNC,
    TARGET,
    WINDOW,
    ChannelListener,
    EventFollower,
    Json,
    Talk,
    block_of,
    lines,
    served_seqs,
    text_of,
)
from tests.acceptance.test_races import check_that_there_was_one_at_a_time
from tests.gemini_server import Gemini

MESSAGES = 110  # three compactions and more
AHEAD = 200  # the most tokens that are said while a compaction runs: four messages
LIFE_OF_A_JOB = ["compaction.queued", "compaction.started", "compaction.applied"]


@pytest.fixture(params=["offline", pytest.param("gemini_service", marks=pytest.mark.long)])
def service(request: pytest.FixtureRequest, gemini: Gemini) -> Service:
    return cast("Service", request.getfixturevalue(request.param))


class Job:
    """A conversation whose messages were appended one by one, and everything that was seen meanwhile."""

    def __init__(self, talk: Talk, said: list[tuple[str, str]]) -> None:
        self.talk = talk
        self.said = said
        self.contexts: list[Json] = []
        with EventFollower(talk) as feed, ChannelListener(talk) as channel, sampled(talk) as in_flight:
            for number, (role, content) in enumerate(said):
                talk.append(content, role)
                if number % 2:
                    self.contexts.append(talk.context())
                    if self.contexts[-1]["gauge"]["tokens"] >= BACKGROUND + AHEAD:
                        talk.wait_settled()  # as if every answer of a client's own model took longer
            talk.wait_settled()
            self.rows = talk.compactions()
            for listener in (feed, channel):
                listener.wait_for(lambda events: ended(events) == len(self.rows), what="the ends of all compactions")
        self.feed, self.channel, self.in_flight = feed.events, channel.events, in_flight


def ended(events: list[Json]) -> int:
    return sum(event["type"] in {"compaction.applied", "compaction.skipped", "compaction.failed"} for event in events)


@contextmanager
def sampled(talk: Talk) -> Iterator[list[int]]:
    """The numbers of compactions in flight, sampled all the time."""
    samples: list[int] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.05):
            samples.append(talk.in_flight())

    with ThreadPoolExecutor(1) as thread:
        sampling = thread.submit(sample)
        try:
            yield samples
        finally:
            done.set()
            sampling.result(30)


@pytest.mark.long
@pytest.mark.daily(1)
def test_a_conversation_appended_one_by_one(service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    """One long run, looked at from every side, since it takes the longest to set up."""
    job = Job(start_talk(service, policy=WINDOW), lines(MESSAGES))

    check_the_rows(job)
    check_that_one_at_a_time_was_in_flight(job)
    check_the_events(job)
    check_the_size_afterwards(job)
    check_the_history(job)
    check_the_context(job)
    check_the_prefixes(job)
    if job.rows[0]["model"] != "offline":
        assert len(gemini.requests("compaction")) == len(job.rows), "an honest summary passes at the first attempt"


def check_the_rows(job: Job) -> None:
    assert len(job.rows) >= 3
    boundary = version = 0
    for row in job.rows:
        assert (row["status"], row["reason"]) == ("applied", None)
        assert (row["trigger"], row["ran_in"]) == ("background", "worker")
        assert [attempt["outcome"] for attempt in row["attempts"]] == ["accepted"]
        assert row["from_seq"] == boundary + 1, "no message is left out, none is folded twice"
        assert row["messages_covered"] == row["to_seq"] - row["from_seq"] + 1
        assert (row["state_version_before"], row["state_version_after"]) == (version, version + 1)
        assert row["tokens_before"] >= BACKGROUND
        assert row["tokens_after"] <= TARGET
        assert row["summary"]
        boundary, version = row["to_seq"], row["state_version_after"]
    conversation = job.talk.get()
    assert conversation["state_version"] == conversation["compression_count"] == len(job.rows)


def check_that_one_at_a_time_was_in_flight(job: Job) -> None:
    assert max(job.in_flight) <= 1
    check_that_there_was_one_at_a_time(job.talk)


def check_the_events(job: Job) -> None:
    numbers = [int(event["id"]) for event in job.feed]
    assert numbers == list(range(1, len(numbers) + 1)), "no gap, no double"
    heard = {event["id"]: event for event in job.channel}
    assert len(heard) == len(job.channel)
    assert sorted(heard, key=int) == [event["id"] for event in job.feed], "the channel tells the same"
    assert all(heard[event["id"]] == event for event in job.feed)
    for row in job.rows:
        about = [event for event in job.feed if event["data"].get("compaction_id") == row["id"]]
        assert [event["type"] for event in about] == LIFE_OF_A_JOB
        assert about[-1]["data"]["tokens_after"] == row["tokens_after"]
        assert about[-1]["data"]["state_version"] == row["state_version_after"]
    assert sum(event["type"] == "message.created" for event in job.feed) == MESSAGES
    spoken = {word for _, content in job.said for word in content.split() if word.istitle() and "-" in word}
    assert spoken
    assert not any(word in str(job.feed) for word in spoken), "events hold ids and numbers, no text"


def check_the_size_afterwards(job: Job) -> None:
    last, usage = job.rows[-1], job.talk.get("/usage")
    meanwhile = [item["token_count"] for item in job.talk.history() if item["created_at"] >= last["started_at"]]
    assert usage["tokens"] <= TARGET + sum(meanwhile)
    assert usage["tokens"] == sum(usage["breakdown"].values())
    assert usage["utilization"] < 0.7
    assert usage["status"] == "ok"


def check_the_history(job: Job) -> None:
    history = job.talk.history()
    assert [(item["role"], item["content"]) for item in history] == job.said
    assert [item["seq"] for item in history] == list(range(1, MESSAGES + 1))
    assert [item["turn"] for item in history] == list(range(MESSAGES))


def check_the_context(job: Job) -> None:
    talk = job.talk
    first, boundary = talk.context_bytes(), talk.boundary()
    assert first == talk.context_bytes()
    assert boundary == job.rows[-1]["to_seq"]
    context = talk.context()
    system, block, understood, *rest = context["messages"]
    assert system["role"] == "system"
    assert (block["role"], understood["role"], understood["content"]) == ("user", "assistant", "Understood.")
    assert served_seqs(context) == [1, *range(boundary + 1, MESSAGES + 1)], "turn 0 is held, the tail is whole"
    assert [(item["role"], item["content"]) for item in rest] == [job.said[seq - 1] for seq in served_seqs(context)]
    assert context["warnings"] == []
    assert context["truncated"] is None
    assert context["gauge"] == talk.get("/usage")


def check_the_prefixes(job: Job) -> None:
    blocks = [block_of(context) for context in job.contexts]
    same = [(a, b) for a, b in pairwise(job.contexts) if block_of(a) == block_of(b)]
    assert len(set(blocks)) > 2
    assert len(same) >= len(blocks) - 1 - len(job.rows)
    assert not any(context["warnings"] for context in job.contexts)
    for before, after in same:
        assert after["messages"][: len(before["messages"])] == before["messages"]


@pytest.mark.long
def test_five_hundred_messages_from_four_writers(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    said = lines(500)

    def write(part: int) -> None:
        for role, content in said[part::4]:
            talk.append(content, role)

    with sampled(talk) as in_flight, ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(4)))
        talk.wait_settled()

    assert max(in_flight) <= 1
    check_that_there_was_one_at_a_time(talk)
    rows, history = talk.compactions(), talk.history()
    assert {row["status"] for row in rows} == {"applied"}
    assert [item["seq"] for item in history] == list(range(1, 501))
    assert sorted((item["role"], item["content"]) for item in history) == sorted(said)
    assert rows[-1]["tokens_after"] <= TARGET


@pytest.mark.long
@pytest.mark.case("15")
def test_right_after_a_compaction_a_small_message_triggers_none(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    talk.fill(BACKGROUND + 150)
    assert len(talk.wait_ended()) == 1
    talk.append("Fine.")
    talk.append("Anything else?", "assistant")
    talk.chat("No, thank you.")
    assert len(talk.compactions()) == 1


@pytest.mark.daily(1)
@pytest.mark.case("21")
@pytest.mark.parametrize(("size", "claimed"), [(BACKGROUND - 1, []), (BACKGROUND, ["background"])])
def test_the_background_threshold_is_met_at_exactly_seventy_percent(
    offline: Service, start_talk: StartTalk, size: int, claimed: list[str]
) -> None:
    talk = start_talk(offline, policy=WINDOW)
    talk.fill(1_500)
    talk.append(text_of(size - talk.get("/usage")["tokens"]))
    usage = talk.get("/usage")
    assert usage["tokens"] == size or claimed
    assert [row["trigger"] for row in talk.compactions()] == claimed
    assert [row["tokens_before"] for row in talk.wait_ended(len(claimed))] == [size] * len(claimed)


@pytest.mark.daily(1)
@pytest.mark.case("21")
@pytest.mark.parametrize(("size", "compacted_in"), [(SYNC - 1, "worker"), (SYNC, "turn")])
def test_a_turn_compacts_at_exactly_eighty_five_percent(
    offline: Service, start_talk: StartTalk, size: int, compacted_in: str
) -> None:
    talk = start_talk(offline, policy=WINDOW)
    talk.fill(1_500)
    done = talk.chat(text_of(size - talk.get("/usage")["tokens"]))
    (row,) = talk.wait_ended()
    assert row["ran_in"] == compacted_in
    assert (done["compaction"] is not None) == (compacted_in == "turn")
    assert row["status"] == "applied"
