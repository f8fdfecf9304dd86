"""A streamed turn: its events come in order and with ids, and the last one equals the JSON form."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import STREAM, WINDOW, EventFollower, Sse, Talk, block_of, read_events, refused, text_of
from tests.gemini_server import Gemini


def types_of(events: list[Sse]) -> list[str]:
    """The types of events in order, with a run of deltas as one."""
    types = [event.type for event in events]
    return [name for index, name in enumerate(types) if index == 0 or name != types[index - 1]]


def check_the_ids(talk: Talk, events: list[Sse]) -> None:
    """Insist that deltas have no id, and that the other ids are the numbers of the same events in the feed."""
    assert all((event.id is None) == (event.type == "reply.delta") for event in events)
    numbers = [event.id for event in events if event.id is not None]
    assert numbers == sorted(set(numbers))
    with EventFollower(talk) as feed:
        feed.wait_for(lambda found: len(found) >= numbers[-1])
    known = {int(event["id"]): event["type"] for event in feed.events}
    assert all(known[event.id] == event.type for event in events if event.id is not None)


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", ["offline", "gemini_service"])
def test_a_reply_comes_piece_by_piece_and_whole_at_the_end(
    request: pytest.FixtureRequest, start_talk: StartTalk, gemini: Gemini, name: str
) -> None:
    talk = start_talk(request.getfixturevalue(name))
    gemini.script("chat", {"name": "honest", "pace": 0.2})

    events = talk.streamed("Good morning. I live in Graz and need a new bicycle for about 900 euros.")

    assert types_of(events) == ["message.created", "reply.delta", "reply.completed"]
    created, *deltas, completed = events
    body = completed.data
    assert created.data["message_id"] == body["message"]["id"]
    assert "".join(event.data["text"] for event in deltas) == body["reply"]["content"]
    assert len(deltas) > (1 if name == "gemini_service" else 0), "a model that pauses between its pieces sends several"
    assert [body["message"], body["reply"]] == talk.history()
    assert body["context"] == talk.get("/usage")
    assert (body["compaction"], body["recalled"], body["warnings"]) == (None, [], [])
    check_the_ids(talk, events)


def test_the_last_event_is_the_json_form(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    talk = start_talk(gemini_service, policy=WINDOW)
    talk.fill(2_000)

    completed = talk.streamed(text_of(750), idempotency_key=talk.id)[-1].data

    assert completed == talk.chat(text_of(750), idempotency_key=talk.id)
    assert completed["compaction"] is not None
    assert len(gemini.requests("chat")) == 1
    other = talk.chat("And in JSON?")
    assert other.keys() == completed.keys()
    assert other["reply"].keys() == completed["reply"].keys()


@pytest.mark.long
def test_a_compaction_in_the_turn_is_told_before_the_reply(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy=WINDOW)
    talk.fill(2_000)

    events = talk.streamed(text_of(750))

    told = ["message.created", "compaction.started", "compaction.applied", "reply.delta", "reply.completed"]
    assert types_of(events) == told
    row = events[-1].data["compaction"]
    assert {event.data["compaction_id"] for event in events if event.type.startswith("compaction")} == {row["id"]}
    assert (row["status"], row["ran_in"]) == ("applied", "turn")
    assert row == {**talk.compactions()[-1], "summary": row["summary"]}
    assert block_of(talk.context())
    check_the_ids(talk, events)


def test_a_turn_that_answers_a_waiting_message_tells_nothing_of_earlier_compactions(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = start_talk(offline, policy={**WINDOW, "background_at": None})
    talk.fill(2_000)
    talk.compact()
    talk.fill(2_000)
    talk.append("Where were we?")

    long = {"instructions": text_of(800)}  # only with them the compaction is due, and it is the turn's own
    with talk.http.stream("POST", talk.path("/chat"), json=long, headers=STREAM) as response:
        events = list(read_events(response))

    told = {event.data["compaction_id"] for event in events if event.type.startswith("compaction")}
    assert told == {events[-1].data["compaction"]["id"]}


@pytest.mark.long
def test_a_failed_compaction_is_told_and_the_reply_comes(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy=WINDOW)
    talk.fill(2_000)
    gemini.script("compaction", default="safety")

    events = talk.streamed(text_of(750))

    told = ["message.created", "compaction.started", "compaction.failed", "reply.delta", "reply.completed"]
    assert types_of(events) == told
    assert events[2].data["reason"] == "blocked"
    assert events[-1].data["warnings"] == ["compaction_failed:blocked"]


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("fault", "code", "deltas"),
    [
        ("error_500", "model_unavailable", False),
        ("reset_midway", "model_unavailable", True),
        ("empty", "empty_reply", False),
    ],
)
def test_a_failure_is_the_last_event_and_a_problem(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, fault: str, code: str, *, deltas: bool
) -> None:
    talk = start_talk(gemini_service)
    gemini.script("chat", fault)

    events = talk.streamed("Good morning.")

    assert types_of(events) == ["message.created", *(["reply.delta"] if deltas else []), "reply.failed"]
    problem = events[-1].data
    assert (problem["code"], problem["message_id"]) == (code, events[0].data["message_id"])
    assert problem["status"] in {502, 503}
    assert problem["request_id"]
    check_the_ids(talk, events)
    answered = talk.streamed()
    assert answered[0].data["message_id"] == problem["message_id"]
    assert answered[-1].type == "reply.completed"


def test_what_is_refused_before_the_start_is_no_stream(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    refused(talk.post("/chat", {"content": " "}, accept="text/event-stream"), 422, "invalid_input")
    refused(talk.post("/chat", {}, accept="text/event-stream"), 422, "invalid_input")
    assert talk.history() == []
