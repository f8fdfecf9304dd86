"""``GET /conversations/{id}/export``: the whole history as a file, through the whole service."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Talk, good, lines, refused

MORE_THAN_A_PAGE = 620
SIZES = pytest.mark.parametrize("messages", [60, pytest.param(MORE_THAN_A_PAGE, marks=pytest.mark.long)])


def told(start_talk: StartTalk, service: Service, messages: int) -> Talk:
    """A talk with a typed command, compacted once."""
    talk = start_talk(service, policy=MANUAL, title="Boats", system_prompt="Speak of boats only.")
    talk.batch(lines(messages))
    talk.chat("/compact")
    talk.append("Where were we, капитан? 🚤")
    return talk


@SIZES
def test_json_holds_everything(start_talk: StartTalk, offline: Service, messages: int) -> None:
    talk = told(start_talk, offline, messages)
    response = talk.http.get(talk.path("/export"))
    exported = json.loads(response.text)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-disposition"] == f'attachment; filename="conversation-{talk.id}.json"'
    assert (exported["format"], exported["version"]) == ("throughline.conversation", 1)
    assert exported["conversation"] == talk.get()
    assert exported["messages"] == talk.history()
    assert [state["version"] for state in exported["states"]] == list(range(1, talk.get()["state_version"] + 1))
    assert exported["states"] == talk.pages("/states", order="asc")
    assert exported["anchors"] == talk.pages("/anchors")


@pytest.mark.long
@SIZES
def test_markdown_is_what_was_said_and_shows_no_compaction(
    start_talk: StartTalk, offline: Service, messages: int
) -> None:
    talk = told(start_talk, offline, messages)
    response = talk.http.get(talk.path("/export"), params={"format": "markdown"})
    text = response.text
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert text.startswith("# Boats\n")
    assert "Speak of boats only." in text
    said = [item["content"] for item in talk.history() if item["event_type"] != "command"]
    at = 0
    for content in said:
        at = text.index(content, at) + len(content)
    assert text.count("\n## ") == len(said) + 1, "one heading for each message, and that of the system prompt"
    state = talk.get()["compressed_state"]
    assert state["conversation_summary"]
    for trace in ("/compact", "session_state", "compact", state["conversation_summary"]):
        assert trace not in text


@pytest.mark.long
def test_before_any_compaction_it_is_the_same_markdown(start_talk: StartTalk, offline: Service) -> None:
    talk = start_talk(offline, policy=MANUAL)
    talk.batch(lines(30))
    before = talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
    assert talk.compact(keep_tail_messages=0)["status"] == "applied"
    assert talk.http.get(talk.path("/export"), params={"format": "markdown"}).text == before


def test_what_cannot_be_exported(start_talk: StartTalk, offline: Service) -> None:
    talk = start_talk(offline)
    refused(talk.http.get(talk.path("/export"), params={"format": "pdf"}), 422, "invalid_input")
    refused(talk.http.get(f"/conversations/{uuid4()}/export"), 404, "not_found")
    assert good(talk.http.get(talk.path()))["id"] == talk.id


def test_numbers_that_are_shown_are_accepted(start_talk: StartTalk, offline: Service) -> None:
    given = {"mass": 1e22, "deep": [1e300, -1e23, 1.1]}
    talk = start_talk(offline, metadata=given)
    talk.append("Hello.", metadata=given)
    shown = json.loads(talk.http.get(talk.path("/export")).text)
    again = start_talk(offline, metadata=shown["conversation"]["metadata"])
    again.append("Hello.", metadata=shown["messages"][0]["metadata"])
    metadata = (again.get()["metadata"], again.history()[0]["metadata"])
    assert json.loads(json.dumps(metadata), parse_int=float) == [given, given]
