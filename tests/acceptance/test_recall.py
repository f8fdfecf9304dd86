"""Evidence recall as a client measures it: import, compact everything, and a context per question within a budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final

import pytest

from app.core.text.token_counts import estimate_text
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, Talk, good
from tests.acceptance.test_talks import bring_in
from tests.talks import locomo, made_talk, with_locomo

SHARE: Final = 0.10
EVERY: Final = 6
FLOOR: Final = 0.78
"""A floor for a sample of the questions on these talks, for all of which 95 % and 85 % are measured."""
CONTROL: Final = 0.10

FACT: Final = "The lantern of the museum was repaired by Ferreira in an afternoon."
TALK: Final = [("user", f"On walk {number} we spoke of crates and of the weather.") for number in range(1, 60)]


@pytest.mark.long
@pytest.mark.parametrize("chosen", with_locomo(lambda: made_talk("sessions_en"), lambda: locomo()[1]))
def test_most_questions_find_their_evidence_at_a_tenth_of_the_tokens(
    offline: Service, start_talk: StartTalk, chosen: Callable[[], Json]
) -> None:
    given = chosen()
    talk = start_talk(offline, policy={"max_tokens": -1})
    bring_in(talk, given["messages"])
    compacted = talk.compact(keep_tail_messages=0)
    assert compacted["status"] == "applied", json.dumps(compacted)
    texts = [message["content"] for message in given["messages"]]
    budget = math.floor(SHARE * sum(map(estimate_text, texts)))
    questions = [one for one in given["questions"] if one["evidence"]][::EVERY]

    found = [holds(told(talk, {"budget": budget, "query": one["question"]}), texts, one) for one in questions]
    unasked = told(talk, {"budget": budget})
    control = [holds(unasked, texts, one) for one in questions]

    print(f"{sum(found)} of {len(questions)}, without a query {sum(control)}")
    assert sum(found) / len(questions) >= FLOOR
    assert sum(control) / len(questions) <= CONTROL


def holds(text: str, texts: list[str], asked: Json) -> bool:
    """Whether the text contains every evidence message."""
    return all(texts[seq - 1] in text for seq in asked["evidence"])


def told(talk: Talk, body: Json) -> str:
    """The served texts after the system prompt; they must keep to the budget."""
    context = good(talk.post("/context", body))
    gauge = context["gauge"]
    assert gauge["tokens"] - gauge["breakdown"]["system"] <= body["budget"]
    return "\n".join(message["content"] for message in context["messages"] if message["role"] != "system")


def folded(offline: Service, start_talk: StartTalk, **policy: str) -> Talk:
    talk = start_talk(offline, policy={**MANUAL, **policy, "protect": [], "anchor_share": 0, "levels": []})
    talk.batch([*TALK[:20], ("assistant", FACT), *TALK[20:], ("assistant", "Noted.")])
    talk.compact(keep_tail_messages=0)
    return talk


def test_the_two_ways_of_asking_are_the_same_and_every_message_says_why(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = folded(offline, start_talk)
    question = "Who repaired the lantern of the museum?"
    got = talk.get("/context", query=question, budget=300)
    posted = good(talk.post("/context", {"query": question, "budget": 300, "format": "plain", "compact": "never"}))

    assert got == posted
    assert FACT in got["messages"][-1]["content"]
    (best, *_) = got["recalled"]
    assert (best["level"], best["seqs"]) == ("full", [21])
    segment = talk.get(f"/segments/{best['segment_id']}")
    assert segment["from_seq"] <= 21 <= segment["to_seq"]
    assert best["reasons"]
    assert got["gauge"]["breakdown"]["recalled"] > 0
    assert sorted(seq for one in got["recalled"] for seq in one["seqs"]) == [
        seq for section in got["sections"] if section["kind"] == "recalled" for seq in section["seqs"]
    ]


@pytest.mark.long
def test_a_turn_says_what_it_recalled_and_a_request_can_do_without(offline: Service, start_talk: StartTalk) -> None:
    talk = folded(offline, start_talk)
    asked = {"content": "Who repaired the lantern of the museum?"}
    without = good(talk.post("/chat", {**asked, "recall": False}))
    found = good(talk.post("/chat", asked))
    thanked = good(talk.post("/chat", {"content": "Thanks a lot!"}))

    assert [without["recalled"], thanked["recalled"]] == [[], []]
    assert 21 in [seq for run in found["recalled"] for seq in run["seqs"]]
    assert "Ferreira" in found["reply"]["content"]
    assert found["message"]["content"] == asked["content"]


def test_passages_of_the_caller_are_served_with_their_source(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy=MANUAL)
    talk.append("When do you open?")
    body = {"passages": [{"text": "From nine to five.", "source": "handbook"}]}
    context = good(talk.post("/context", body))

    assert '<passage source="handbook">\nFrom nine to five.\n</passage>' in context["messages"][-1]["content"]
    assert context["messages"][-1]["content"].endswith("When do you open?")
