"""What a model shows of its thoughts is sent on every wire as it comes, kept with its message, and used for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import httpx
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseReasoningItem, ResponseStreamEvent
from pydantic import TypeAdapter

from app.http.event_schemas import UNIONS
from app.usecases.chat.reply import REASONING_BYTES
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import MANUAL, Json, Talk, good
from tests.acceptance.test_recall import FACT, folded
from tests.acceptance.test_turns import SLOWLY, STOPS
from tests.acceptance.test_ui import history, of, post, posting, resumed, said, shape, user
from tests.gemini_faults import CONSIDERED
from tests.gemini_server import Gemini
from tests.gemini_wire import shows_thoughts

ASKED: Final[Json] = {"reasoning": "asked"}
ZANZIBAR: Final = "They ask for the harbour of Zanzibar. I know of seven berths there."
THOUGHTFUL: Final[Json] = {"name": "text", "text": "Seven.", "thoughts": ZANZIBAR}
SIGNATURE: Final = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
RESPONSE_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(ResponseStreamEvent, config={"defer_build": True})
THINKING: Final = ["reasoning-start", "reasoning-delta", "reasoning-end"]
SAYING: Final = ["text-start", "text-delta", "text-end"]


def thought(chunks: Iterable[Json]) -> str:
    return "".join(chunk["delta"] for chunk in of(chunks, "reasoning-delta"))


@pytest.mark.long
def test_thoughts_come_before_the_words_stay_with_the_message_and_are_used_for_nothing(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy={**MANUAL, **ASKED, "protect": []})
    gemini.script("chat", THOUGHTFUL)
    asked = user("How many berths?")
    chunks = post(talk, asked)
    assert shape(chunks)[2:-2] == ["start-step", *THINKING, *SAYING, "finish-step"]
    assert (thought(chunks), said(chunks)) == (ZANZIBAR, "Seven.")
    assert len({chunk["id"] for chunk in chunks if chunk["type"] in {*THINKING, *SAYING}}) == 2
    again = post(talk, asked)
    assert (thought(again), said(again), shape(again)) == (ZANZIBAR, "Seven.", shape(chunks))
    shown = history(talk)[-1]
    assert shown["parts"][1:] == [{"type": "reasoning", "text": ZANZIBAR}, {"type": "text", "text": "Seven."}]
    question, reply = talk.history()
    assert (question["reasoning"], reply["reasoning"], reply["content"], reply["parts"]) == ("", ZANZIBAR, "Seven.", [])
    exported = talk.http.get(talk.path("/export")).json()
    assert [message["reasoning"] for message in exported["messages"]] == ["", ZANZIBAR]
    assert good(talk.http.put(talk.path(f"/messages/{reply['id']}/pin")))["reasoning"] == ZANZIBAR

    unpinned = talk.http.delete(talk.path(f"/messages/{reply['id']}/pin"))
    assert unpinned.is_success
    gemini.script("chat", {"name": "text", "text": "Yes."})
    before = reply["token_count"]
    assert talk.chat("Are you sure?")["reply"]["reasoning"] == ""
    assert "Zanzibar" not in json.dumps(gemini.requests("chat")[-1]["body"]), "the model is not told again"
    assert talk.get("/search", q="Zanzibar")["data"] == []
    assert talk.get("/search", q="berths")["data"], "the control: what was said is found"
    assert before == talk.get("/messages", limit=10)["data"][1]["token_count"] < 20
    talk.batch([("user", f"On walk {number} we spoke of crates and of the weather.") for number in range(40)])
    assert talk.compact(keep_tail_messages=0)["status"] == "applied"
    prompts = json.dumps([one["body"] for one in gemini.requests("compaction")])
    assert "berths" in prompts
    assert "Zanzibar" not in prompts
    assert "Zanzibar" not in talk.context_bytes().decode()

    assert talk.http.delete(talk.path(f"/messages/{reply['id']}")).status_code == 204
    assert "Zanzibar" not in talk.http.get(talk.path("/messages")).text + talk.http.get(talk.path("/export")).text


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("policy", "effort", "asks", "shows"),
    [
        ({}, None, False, False),
        ({}, "low", True, True),
        ({"reasoning": "off"}, "low", True, False),
        (ASKED, None, True, True),
    ],
)
def test_a_policy_says_whether_thoughts_are_asked_for_and_shown(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, *, policy: Json, effort: str | None, asks: bool,
    shows: bool,
) -> None:  # fmt: skip
    """A client that says how deeply the model thinks has asked for its thoughts: Gemini has one setting for both."""
    talk = start_talk(gemini_service, policy=policy)
    gemini.script("chat", THOUGHTFUL)
    turn = good(talk.post("/chat", {"content": "How many?", **({"reasoning_effort": effort} if effort else {})}))
    assert shows_thoughts(gemini.requests("chat")[-1]["body"]) is asks
    assert turn["reply"]["reasoning"] == (ZANZIBAR if shows else "")


@pytest.mark.long
def test_a_step_that_calls_a_tool_keeps_its_thoughts_and_its_signature(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = folded(gemini_service, start_talk, **ASKED)
    search = {"name": "search_history", "args": {"query": "lantern"}}
    gemini.script(
        "chat",
        {"name": "calls", "thoughts": "I look it up.", "calls": [search], "signature": SIGNATURE},
        THOUGHTFUL,
    )
    chunks = post(talk, user("How many?", recall=False))
    called = ["tool-input-available", "tool-output-available"]
    assert shape(chunks)[2:-2] == [
        *["start-step", *THINKING, *called, "finish-step"], *["start-step", *THINKING, *SAYING, "finish-step"],
    ]  # fmt: skip
    types = [part["type"] for part in history(talk)[-1]["parts"]]
    assert types == ["step-start", "reasoning", "dynamic-tool", "step-start", "reasoning", "text"]
    assert [one["reasoning"] for one in talk.history()[-3:]] == ["I look it up.", "", ZANZIBAR]
    body = gemini.requests("chat")[-1]["body"]
    (signed,) = [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]
    assert signed["thoughtSignature"] == SIGNATURE
    assert "I look it up" not in json.dumps(body)


@pytest.mark.long
def test_a_reload_and_a_stop_in_the_middle_of_thoughts(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy=ASKED)
    gemini.script("chat", {**STOPS, "thoughts": ZANZIBAR}, {**STOPS, "thoughts": ZANZIBAR})
    with posting(talk, user("Take your time.")) as own:
        first = [next(own) for _ in range(5)]
        assert first[-1]["type"] == "reasoning-delta"
        with resumed(talk) as other:
            gemini.release()
            second = list(other)
        first += own
    assert thought(first) == thought(second) == ZANZIBAR
    assert len(of(first, "reasoning-delta")) > 1, "piece by piece"
    assert said(first) == said(second) == SLOWLY
    assert first[-1] == second[-1]

    with posting(talk, user("And again.")) as own:
        begun = [next(own) for _ in range(5)]
        good(talk.post("/chat/interrupt"))
        begun += own
    assert shape(begun)[-6:] == [
        "reasoning-delta",
        "reasoning-end",
        "finish-step",
        "data-gauge",
        "message-metadata",
        "abort",
    ]
    assert said(begun) == ""
    kept = talk.history()[-1]
    assert (kept["status"], kept["content"], kept["reasoning"]) == ("interrupted", "", thought(begun))
    assert ZANZIBAR.startswith(kept["reasoning"])
    assert kept["reasoning"] != ZANZIBAR


def test_of_many_thoughts_the_first_are_kept(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    talk = start_talk(gemini_service, policy=ASKED)
    long = "-" + "я" * REASONING_BYTES
    gemini.script("chat", {**THOUGHTFUL, "thoughts": long})
    chunks = post(talk, user("How many?"))
    kept = talk.history()[-1]["reasoning"]
    assert kept == thought(chunks) == long[: REASONING_BYTES // 2], "no half of a letter"
    assert [one["data"]["code"] for one in of(chunks, "data-notice")] == ["reasoning_cut_off"]
    assert said(chunks) == "Seven."


def test_a_model_that_only_thinks_has_not_answered(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy=ASKED)
    gemini.script("chat", "thoughts_only")
    asked = user("Hello?")
    failed = post(talk, asked)
    assert shape(failed)[2:] == ["start-step", *THINKING, "finish-step", "error"]
    assert thought(failed) == CONSIDERED
    assert json.loads(failed[-1]["errorText"])["code"] == "empty_reply"
    assert [one["role"] for one in talk.history()] == ["user"]
    gemini.script("chat", THOUGHTFUL)
    mended = post(talk, {"trigger": "regenerate-message", "message": asked["message"]})
    assert (thought(mended), said(mended)) == (ZANZIBAR, "Seven.")


@pytest.mark.long
def test_what_is_recalled_is_told_before_the_model_is_asked(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = folded(gemini_service, start_talk)
    gemini.script("chat", {"name": "text", "text": "Ferreira did.", "hold": True})
    asked = len(gemini.requests("chat"))
    with posting(talk, user("Who repaired the lantern of the museum?")) as chunks:
        first: list[Json] = []
        while not any(FACT[:40] in one["title"] for one in of(first, "source-document")):
            first.append(next(chunks))
        assert shape(first)[:3] == ["start", "data-gauge", "data-recalled"]
        until(lambda: len(gemini.requests("chat")) > asked, what="the request, which comes after what is told of it")
        gemini.release()
        rest = list(chunks)
    assert said(rest) == "Ferreira did."
    assert of(rest, "data-recalled") == [], "once"
    sources = of([*first, *rest], "source-document")
    assert len({one["sourceId"] for one in sources}) == len(sources)
    (recalled,) = of(first, "data-recalled")
    shown = history(talk, limit=1, order="desc")[0]
    assert shown["parts"][: len(sources) + 1] == [recalled, *sources]

    gemini.script("chat", {**THOUGHTFUL, "text": "It was Ferreira."})
    events = talk.streamed("Who repaired the lantern of the museum in an afternoon?")
    assert [event.type for event in events][:2] == ["message.created", "context.recalled"]
    assert 21 in events[1].data["seqs"]


def test_every_event_of_a_chats_stream_is_declared(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    talk = start_talk(gemini_service, policy=ASKED)
    gemini.script("chat", THOUGHTFUL)
    events = talk.streamed("How many?")
    for event in events:
        UNIONS["ChatStreamEvent"].validate_python({"type": event.type, "id": event.id, "data": event.data})
    thoughts = [event for event in events if event.type == "reasoning.delta"]
    assert "".join(event.data["text"] for event in thoughts) == ZANZIBAR
    assert events[-1].data["reply"]["reasoning"] == ZANZIBAR


class TestOpenAI:
    """The types are those of OpenAI's own client."""

    def test_chat_completions(self, gemini_service: Service, gemini: Gemini) -> None:
        body = {
            "model": "throughline",
            "messages": [{"role": "user", "content": "How many?"}],
            "reasoning_effort": "low",
        }
        gemini.script("chat", THOUGHTFUL, THOUGHTFUL, THOUGHTFUL)
        with gemini_service.client() as http:
            whole = good(http.post("/v1/chat/completions", json=body))["choices"][0]["message"]
            streamed = http.post("/v1/chat/completions", json={**body, "stream": True})
            plain = good(http.post("/v1/chat/completions", json={**body, "reasoning_effort": None}))
        assert (whole["reasoning_content"], whole["content"]) == (ZANZIBAR, "Seven.")
        deltas = [ChatCompletionChunk.model_validate(one).choices[0].delta for one in told(streamed)]
        assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == ZANZIBAR
        assert "".join(delta.content or "" for delta in deltas) == "Seven."
        assert "reasoning_content" not in plain["choices"][0]["message"]

    def test_responses(self, gemini_service: Service, gemini: Gemini) -> None:
        body = {"model": "throughline", "input": "How many?", "reasoning": {"summary": "auto"}}
        gemini.script("chat", THOUGHTFUL, THOUGHTFUL)
        with gemini_service.client() as http:
            events = told(http.post("/v1/responses", json={**body, "stream": True}))
            stored = good(http.get(f"/v1/responses/{events[-1]['response']['id']}"))
            follows = {
                "previous_response_id": stored["id"],
                "input": [*stored["output"], *refers(stored), words("And?")],
            }
            further = good(http.post("/v1/responses", json={**body, **follows, "reasoning": None}))
        for event in events:
            if "response" not in event:  # its types in newer clients want more than the API's document
                RESPONSE_EVENT.validate_python(event)
        kinds = [event["type"].removeprefix("response.") for event in events]
        assert [kind for number, kind in enumerate(kinds) if kind != kinds[number - 1]] == [
            "created", "in_progress",
            "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
            "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
            "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
            "output_item.done", "completed",
        ]  # fmt: skip
        deltas = [event["delta"] for event in events if event["type"] == "response.reasoning_summary_text.delta"]
        assert "".join(deltas) == ZANZIBAR
        assert stored["output"] == events[-1]["response"]["output"]
        reasoning, message = stored["output"]
        assert [part.text for part in ResponseReasoningItem.model_validate(reasoning).summary] == [ZANZIBAR]
        assert message["content"][0]["text"] == "Seven."
        assert stored["reasoning"] == {"effort": None, "summary": "auto"}
        assert [item["type"] for item in further["output"]] == ["message"], (
            "not asked for, and what was sent is passed over"
        )


def refers(stored: Json) -> list[Json]:
    return [{"type": "item_reference", "id": item["id"]} for item in stored["output"] if item["type"] == "reasoning"]


def words(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def told(response: httpx.Response) -> list[Json]:
    assert response.status_code == 200, response.text
    lines = (line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_the_talk_is_the_one_of_these_tests(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    """The control: unless asked, the scripted model shows nothing, and every list of parts is as it was."""
    talk: Talk = start_talk(gemini_service)
    gemini.script("chat", THOUGHTFUL)
    chunks = post(talk, user("How many?"))
    assert shape(chunks)[2:-2] == ["start-step", *SAYING, "finish-step"]
    assert [part["type"] for part in history(talk)[-1]["parts"]] == ["step-start", "text"]
