"""A conversation's events: each is sent once, in order, from wherever a client left off; also on the Redis channel."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, WINDOW, ChannelListener, EventFollower, Talk, lines, refused


def count_of(talk: Talk) -> int:
    """The number of events so far."""
    with EventFollower(talk) as feed:
        feed.wait_for(lambda found: len(found) >= len(talk.history()))
    return len(feed.events)


@pytest.mark.case("47")
def test_a_client_that_was_away_gets_each_event_once(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    with EventFollower(talk) as first:
        talk.batch(lines(9))
        first.wait_for(lambda found: len(found) == 9)
    talk.batch(lines(10, start=20))
    with EventFollower(talk, last_event_id=9) as again:
        again.wait_for(lambda found: len(found) == 10)
        talk.append("And one more, live.")
        again.wait_for(lambda found: len(found) == 11)
    assert first.numbers() == list(range(1, 10))
    assert again.numbers() == list(range(10, 21))
    seqs = [event["data"]["seq"] for event in (*first.events, *again.events)]
    assert seqs == list(range(1, 21))


@pytest.mark.long
def test_replay_meets_live_without_gap_or_double(offline: Service, start_talk: StartTalk) -> None:
    """Readers come while a writer writes; each reads every event once, whether it was stored before or is sent live."""
    talk = start_talk(offline)
    talk.batch(lines(40))
    begun = threading.Event()

    def write() -> None:
        for number, (role, content) in enumerate(lines(60, start=100)):
            talk.append(content, role)
            if number == 5:
                begun.set()

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        assert begun.wait(20)
        readers = [EventFollower(talk, after=start) for start in (0, 10, 39, 41)]
        for reader in readers:
            reader.__enter__()
        writing.result(60)
        for reader, start in zip(readers, (0, 10, 39, 41), strict=True):
            reader.wait_for(lambda found: found and int(found[-1]["id"]) == 100)
            reader.__exit__()
            assert reader.numbers() == list(range(start + 1, 101))


def test_the_header_wins_over_the_parameter(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    talk.batch(lines(6))
    with EventFollower(talk, last_event_id=4, after=1) as feed:
        feed.wait_for(lambda found: len(found) == 2)
    assert feed.numbers() == [5, 6]


@pytest.mark.daily(1)
@pytest.mark.parametrize(("place", "first"), [({"newest": 2}, 5), ({"newest": 0}, 7), ({"newest": 9, "after": 3}, 4)])
def test_a_client_may_begin_with_the_newest(
    offline: Service, start_talk: StartTalk, place: dict[str, int], first: int
) -> None:
    talk = start_talk(offline)
    talk.batch(lines(6))
    with EventFollower(talk, **place) as feed:
        talk.append("And one more, live.")
        feed.wait_for(lambda found: found and int(found[-1]["id"]) == 7)
    assert feed.numbers() == list(range(first, 8))


def test_the_channel_carries_the_same_as_the_stream(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=WINDOW)
    with ChannelListener(talk) as channel, EventFollower(talk) as feed:
        talk.fill(2_300)
        talk.wait_ended()
        talk.chat("And the first price?")
        talk.patch({"policy": MANUAL})
        talk.post("/restore", {"state_version": 1})
        feed.wait_for(lambda _: feed.of_type("conversation.restored"))
        channel.wait_for(lambda found: len(found) == len(feed.events))
    assert {event["id"]: event for event in channel.events} == {event["id"]: event for event in feed.events}
    kinds = {event["type"] for event in feed.events}
    assert kinds >= {
        "message.created",
        "context.threshold",
        "compaction.queued",
        "compaction.started",
        "compaction.applied",
        "reply.completed",
        "conversation.restored",
    }
    assert all(
        set(event) == {"id", "type", "conversation_id", "occurred_at", "data", "notification"} for event in feed.events
    )


@pytest.mark.long
def test_the_threshold_is_told_once_for_each_step(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy={**MANUAL, "max_tokens": 0, "background_at": 0.65, "sync_at": 0.9})
    with EventFollower(talk) as feed:
        talk.fill(2_100)
        talk.wait_ended()
        feed.wait_for(lambda _: feed.of_type("compaction.applied"))
    (event,) = feed.of_type("context.threshold")
    assert (event["data"]["status"], event["data"]["budget"]) == ("background", 3_060)


@pytest.mark.daily(2)
@pytest.mark.parametrize("given", ["-1", "1e3", "99999999999999999999999", "7", str(2**62), "abc", "١"])
@pytest.mark.case("50")
def test_a_foreign_number_is_refused(offline: Service, start_talk: StartTalk, given: str) -> None:
    talk = start_talk(offline)
    talk.batch(lines(3))
    problem = refused(talk.http.get(talk.path("/events"), params={"after": given}), 422, "invalid_input")
    assert problem["errors"][0]["field"] == "after"
    if given.isascii():
        headers = {"Last-Event-ID": given}
        problem = refused(talk.http.get(talk.path("/events"), headers=headers), 422, "invalid_input")
        assert problem["errors"][0]["field"] == "Last-Event-ID"
    assert count_of(talk) == 3, "control: without one it begins at the first"


def test_an_unknown_conversation_is_no_stream(offline: Service, start_talk: StartTalk) -> None:
    refused(start_talk(offline).http.get(f"/conversations/{uuid4()}/events"), 404, "not_found")


def test_the_stream_ends_with_its_conversation(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    with EventFollower(talk) as feed:
        talk.append("Goodbye.")
        feed.wait_for(lambda found: len(found) == 1)
        talk.http.delete(talk.path())
        assert feed.ended.wait(25)
