"""The preset ``research`` over several days: findings and their sources, assumptions, open questions and next steps."""

from __future__ import annotations

from typing import Final

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import Json, Talk, block_of, text_of

TASK: Final = "Find out why the bees of the Ahrtal die in winter, and compare at least three sources."
FOUND: Final = (
    "The report BVL-2025-118 at https://bvl.example.org/r/118 counts 31.4 % losses in 2024.",
    "Dr. Ines Vogt measured 12 mites per 100 bees on 3 October 2025, see page 47 of her thesis.",
    "The archive holds 1 204 samples; the key of the sample series is AHR-7731.",
)
SUPPOSED: Final = "I suspect that the mites come with the swarms of the station AHR-09."
NEXT: Final = "I will write to the station Mayen by 14 March 2026 and ask for the data of 2023."
ASKED: Final = "Which of the stations treated their bees with oxalic acid in 2024?"
EVADED: Final = "I don't know yet, I have to look into it."
FIELDS: Final = {"findings", "hypotheses", "open_questions", "next_actions", "research_summary"}
WINDOW: Final[Json] = {"context_window": 16_000}


def told(state: Json, field: str) -> str:
    return "\n".join(state[field])


def served(talk: Talk) -> str:
    return "\n".join(item["content"] for item in talk.context()["messages"])


def studied(talk: Talk) -> None:
    """A first day of research."""
    talk.append(TASK)
    talk.append("Let me look.", role="assistant")
    for number, found in enumerate(FOUND):
        talk.append(found, role="user")
        talk.append(f"Noted, that is finding {number + 1}.", role="assistant")
    talk.append(SUPPOSED)
    talk.append(NEXT, role="assistant")
    talk.append(ASKED)
    talk.append(EVADED, role="assistant")


def filled(talk: Talk, messages: int = 30) -> None:
    """Talk that finds nothing."""
    talk.batch([("assistant" if number % 2 else "user", text_of(110 + number)) for number in range(messages)])


def test_it_is_shown_with_its_matrix(offline: Service, start_talk: StartTalk) -> None:
    policy = start_talk(offline, preset="research").created["policy"]
    assert (policy["state_schema"], policy["state_tokens"], policy["anchor_share"]) == ("research", 2_000, 0.2)
    assert policy["protect"] == ["turn_0", "constraint", "goal"]
    assert (policy["levels"], policy["recall"]) == (["L1", "L2", "L3"], "auto")
    assert [(one["name"], one["at"]["share"]) for one in policy["triggers"]] == [("background", 0.7), ("sync", 0.85)]


@pytest.mark.long
def test_each_kind_of_result_stands_in_its_field(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, preset="research", policy=WINDOW | {"anchor_share": 0})
    studied(talk)
    filled(talk)
    talk.compact(keep_tail_messages=0)
    conversation = talk.get()
    state = conversation["compressed_state"]
    assert set(state) == FIELDS
    assert conversation["state_schema"] == "research"
    assert "station AHR-09" in told(state, "hypotheses")
    assert "station AHR-09" not in told(state, "findings"), "what is supposed is no finding"
    assert "Mayen" in told(state, "next_actions")
    assert "oxalic" in told(state, "open_questions")
    block = block_of(talk.context())
    assert block is not None
    for value in ("BVL-2025-118", "https://bvl.example.org/r/118", "31.4 %", "AHR-7731", "12 mites per 100 bees"):
        assert value in block, "found, with its source"


@pytest.mark.long
def test_what_was_found_on_the_first_day_is_there_after_many(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, preset="research", policy=WINDOW)
    studied(talk)
    for day in range(8):
        filled(talk)
        talk.append(f"On day {day} the probe PR-{day}-55 weighed {day}.7 grams.")
        talk.append("Noted.", role="assistant")
        talk.compact(keep_tail_messages=0)
    assert talk.get()["compression_count"] == 8
    context = talk.context()
    block = block_of(context)
    assert block is not None
    assert [value for value in ("BVL-2025-118", "AHR-7731", "PR-7-55", "31.4 %") if value not in block] == []
    assert talk.get("/usage")["breakdown"]["state"] <= 2 * 2_000
    assert TASK in [item["content"] for item in context["messages"]]


def test_its_first_message_constraints_and_goals_are_held_goal_statements_are_not(
    offline: Service, start_talk: StartTalk
) -> None:
    talk = start_talk(offline, preset="research", policy=WINDOW)
    talk.append(TASK)
    held = [
        talk.append("Only peer-reviewed sources.", event_type="constraint"),
        talk.append("A table of losses by year.", event_type="goal"),
    ]
    free = [talk.append("My goal is to be done by May."), talk.append("Signed in.", event_type="auth_checkpoint")]
    assert [one["protected_reason"] for one in held] == ["explicit_constraint", "goal_statement"]
    assert [one["protected_reason"] for one in free] == ["compressible", "compressible"]
    filled(talk)
    talk.compact(keep_tail_messages=0)
    served = [item["content"] for item in talk.context()["messages"]]
    assert all(one["content"] in served for one in held)
    assert TASK in served
    assert not any(one["content"] in served for one in free)


@pytest.mark.long
def test_a_question_brings_the_original_back(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, preset="research", policy=WINDOW | {"anchor_share": 0, "state_tokens": 50})
    studied(talk)
    for _ in range(6):
        filled(talk)
    talk.compact(keep_tail_messages=0)
    reply = talk.chat("Which key does the sample series of the archive have?")
    assert "AHR-7731" in reply["message"]["content"] + str(reply.get("recalled", "")) + served(talk)
    assert talk.get("/stats")["expansions"]["total"] >= 1
