"""``…/context`` from outside: formats, what is traced, what is left out, compaction on request, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from app.core.context.formats import Formatted
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, WINDOW, Json, Talk, good, refused
from tests.unit.test_formats import CHECKS

FACT: Final = "The lantern of the museum was repaired by Ferreira in an afternoon."
QUESTION: Final = "Who repaired the lantern of the museum?"
LINES: Final = [f"On walk {number} we spoke of crates and of the weather." for number in range(1, 60)]
MARKER: Final = re.compile(r"\[[^\[\]]*→L[123]:[^\[\]\s]+\]")


def folded(service: Service, start_talk: StartTalk, **policy: Any) -> Talk:
    """A conversation about walks, with a fact and a tool call, all of it covered."""
    talk = start_talk(service, policy={**MANUAL, **policy}, system_prompt="You are a guide.")
    pairs = [(("user", "assistant")[number % 2], line) for number, line in enumerate(LINES)]
    talk.batch([*pairs[:20], ("assistant", FACT), ("user", "I see."), *pairs[20:]])
    assert talk.compact(keep_tail_messages=4)["status"] == "applied"
    talk.append(
        "", "assistant", parts=[{"type": "tool_call", "id": "w 1", "name": "weather", "arguments": {"at": "sea"}}]
    )
    talk.append("", "tool", parts=[{"type": "tool_result", "tool_call_id": "w 1", "content": {"wind": 7}}])
    talk.append("", "assistant", parts=[{"type": "tool_call", "id": "w 1", "name": "weather", "arguments": {}}])
    talk.append(QUESTION)
    return talk


@pytest.mark.daily(1)
@pytest.mark.parametrize("format_", ["plain", *sorted(CHECKS)])
def test_a_result_that_is_given_twice_is_shown_and_counted_once(
    offline: Service, start_talk: StartTalk, format_: str
) -> None:
    """The other texts of a message with a result stay as well; the originals stay as they were given."""
    talk = start_talk(offline, policy=MANUAL)
    value = {"wind": 7, "harbour": "Sète"}
    results: list[Json] = []
    for id_, content in (("w1", json.dumps(value, ensure_ascii=False)), ("w2", "The station was closed.")):
        talk.append("", "assistant", parts=[{"type": "tool_call", "id": id_, "name": "weather", "arguments": {}}])
        part = {"type": "tool_result", "tool_call_id": id_, "content": value if id_ == "w1" else "gale"}
        results.append(talk.append(content, "tool", parts=[part]))
    talk.append("Well?")
    shown = json.dumps(talk.get("/context", format=format_)["messages"], ensure_ascii=False)

    assert [shown.count(text) for text in ("Sète", "The station was closed.", "gale")] == [1, 1, 1]
    stored = [one for one in talk.history() if one["role"] == "tool"]
    assert [one["content"] for one in stored] == ['{"wind": 7, "harbour": "Sète"}', "The station was closed."]
    assert [one["parts"] for one in stored] == [one["parts"] for one in results]
    alone = start_talk(offline, policy=MANUAL)
    alone.append("", "assistant", parts=[{"type": "tool_call", "id": "w1", "name": "weather", "arguments": {}}])
    once = alone.append("", "tool", parts=[{"type": "tool_result", "tool_call_id": "w1", "content": value}])
    assert results[0]["token_count"] == once["token_count"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_each_format_is_what_its_provider_takes(offline: Service, start_talk: StartTalk, name: Any) -> None:
    talk = folded(offline, start_talk, served_as="assistant" if name == "gemini" else "pair")
    plain = talk.get("/context", query=QUESTION)
    got = talk.get("/context", query=QUESTION, format=name)
    posted = good(talk.post("/context", {"query": QUESTION, "format": name}))

    assert got == posted
    CHECKS[name](Formatted(messages=got["messages"], system=got["system"]))
    told = json.dumps([got["system"], *got["messages"]], ensure_ascii=False)
    assert plain["system"] is None
    for message in plain["messages"]:
        assert json.dumps(message["content"], ensure_ascii=False)[1:-1] in told
    assert told.count("interrupted") == 1
    assert told.count('"wind"') + told.count('\\"wind\\"') == 1
    assert {key: got[key] for key in plain.keys() - {"messages", "system"}} == {
        key: plain[key] for key in plain.keys() - {"messages", "system"}
    }


@pytest.mark.long
def test_everything_served_can_be_traced(offline: Service, start_talk: StartTalk) -> None:
    talk = folded(offline, start_talk, segment_by={"by": "messages", "size": 6})
    context = talk.get("/context", query=QUESTION)
    known = {item["segment_id"]: item for item in talk.pages("/segments")}
    block = context["messages"][1]["content"]

    served = MARKER.findall(block)
    assert served
    assert [marker["text"] for marker in context["markers"]] == served
    for marker in context["markers"]:
        assert marker["level"] in {"detailed", "brief", "tags"}
        assert talk.get(f"/segments/{marker['segment_id']}", level=marker["level"])["content"]
    kinds = [section["kind"] for section in context["sections"]]
    assert {"system", "state", "digests", "tail", "recalled"} <= set(kinds)
    assert sum(section["tokens"] for section in context["sections"]) == context["gauge"]["tokens"]
    for section in context["sections"]:
        if section["kind"] in {"digests", "recalled"} and section["segment_id"]:
            segment = known[section["segment_id"]]
            assert segment["from_seq"] <= min(section["seqs"]) <= max(section["seqs"]) <= segment["to_seq"]
    best = context["recalled"][0]
    assert best["seqs"] == [21]
    assert known[best["segment_id"]]["from_seq"] <= 21 <= known[best["segment_id"]]["to_seq"]
    original = talk.get(f"/segments/{best['segment_id']}", level="full")["messages"]
    assert FACT in [message["content"] for message in original]


@pytest.mark.long
def test_a_turn_says_from_which_segment_it_recalled_and_again_when_repeated(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = folded(offline, start_talk, levels=[], anchor_share=0)
    body = {"content": f"{QUESTION} I forgot."}
    first = good(talk.post("/chat", body, Idempotency_Key="once"))
    again = good(talk.post("/chat", body, Idempotency_Key="once"))

    assert 21 in [seq for one in first["recalled"] for seq in one["seqs"]]
    assert all(one["segment_id"] and one["level"] == "full" for one in first["recalled"])
    assert again["recalled"] == first["recalled"]


@pytest.mark.long
def test_what_is_left_out_is_gone_and_the_gauge_says_so(offline: Service, start_talk: StartTalk) -> None:
    talk = folded(offline, start_talk)

    def breakdown(**sections: Any) -> Json:
        context = good(talk.post("/context", {"query": QUESTION, "sections": sections}))
        found: Json = context["gauge"]["breakdown"]
        assert {section["kind"] for section in context["sections"]} == {kind for kind in _kinds(found) if found[kind]}
        return found

    whole = breakdown()
    assert all(whole[kind] > 0 for kind in ("state", "digests", "recalled", "held"))
    for kind in ("digests", "recalled", "held"):
        assert breakdown(**{kind: False})[kind] == 0
    assert breakdown(levels=[])["digests"] == 0
    assert breakdown(levels=["tags"])["digests"] > 0
    nothing = breakdown(state=False, anchors=False, digests=False, held=False, recalled=False)
    assert {kind for kind in nothing if nothing[kind]} == {"system", "tail"}


def _kinds(breakdown: Json) -> set[str]:
    return breakdown.keys() - {"pending"}


def test_if_needed_compacts_before_it_answers_and_never_does_not(offline: Service, start_talk: StartTalk) -> None:
    before_call = {"name": "sync", "on": "before_call", "at": {"share": 0.85}, "run": "inline"}
    much_later = {"name": "background", "on": "stored", "at": {"share": 0.99}, "run": "background"}
    talk = start_talk(offline, policy={**WINDOW, "triggers": [before_call, much_later]})
    talk.fill(2_550)
    talk.append("And now something that makes it a little longer than the threshold is. " * 9)
    assert talk.get("/usage")["status"] == "sync"

    untouched = good(talk.post("/context", {"compact": "never"}))
    compacted = good(talk.post("/context", {"compact": "if_needed", "format": "openai"}, Idempotency_Key="k"))
    repeated = good(talk.post("/context", {"compact": "if_needed", "format": "openai"}, Idempotency_Key="k"))
    after = good(talk.post("/context", {"compact": "if_needed"}))

    assert untouched["compaction"] is None
    assert compacted["compaction"]["status"] == "applied"
    assert compacted["compaction"]["trigger"] == "sync"
    assert compacted["compaction"]["summary"]
    assert compacted["gauge"]["tokens"] < untouched["gauge"]["tokens"]
    assert compacted["gauge"]["status"] == "ok"
    assert repeated == compacted
    assert after["compaction"] is None
    assert len(talk.compactions()) == 1
    assert compacted["messages"][-1]["content"].startswith("And now something")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"format": "xml"}, "format"),
        ({"budget": -1}, "budget"),
        ({"budget": 0}, "budget"),
        ({"budget": "500"}, "budget"),
        ({"compact": True}, "compact"),
        ({"sections": {"tail": False}}, "sections.tail"),
        ({"sections": {"levels": ["L7"]}}, "sections.levels.0"),
        ({"segments": []}, "segments"),
    ],
)
def test_bad_input_is_named(offline: Service, start_talk: StartTalk, body: Json, field: str) -> None:
    talk = start_talk(offline)
    assert [one["field"] for one in refused(talk.post("/context", body), 422, "invalid_input")["errors"]] == [field]


def test_an_empty_conversation_has_a_context_in_every_format(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline)
    assert talk.get("/context", format="anthropic")["messages"] == []
    assert talk.get("/context", format="gemini")["messages"] == []
    assert [message["role"] for message in talk.get("/context", format="openai")["messages"]] == ["system"]
