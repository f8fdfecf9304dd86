"""Presets changed in mid-conversation: the state is carried over by roles, and every version stays what it was."""

from __future__ import annotations

from typing import Final

import pytest

from app.core.text.sentences import sentences
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, Talk, block_of, good, lines, text_of

FACTS: Final = (
    "The contract number is NW-2026-118 and it costs 48 500 euros.",
    "The door code of the store is 4711-K.",
    "Hanna Voss from Ulm signs it on 3 May 2027.",
)
ROUTE: Final = ("handoff", "turn_end", "research", "hierarchical", "sessions", "semantic")
SMALL: Final[Json] = {"context_window": 16_000}


def texts(state: Json) -> str:
    parts = (value if isinstance(value, list) else [value] for value in state.values())
    return "\n".join(text for part in parts for text in part)


def filled(talk: Talk) -> None:
    """Talk without values: there is room for all facts in any state, so that what is missing was lost."""
    talk.batch([("assistant" if number % 2 else "user", text_of(110 + number)) for number in range(24)])


def served(talk: Talk) -> str:
    return "\n".join(item["content"] for item in talk.context()["messages"])


def begun(start_talk: StartTalk, service: Service) -> Talk:
    # Without anchors everything that is known is in the state, or is lost.
    talk = start_talk(service, policy={**SMALL, "anchor_share": 0, "protect": []})
    for fact in FACTS:
        talk.append(fact)
        talk.append("Noted.", role="assistant")
    filled(talk)
    talk.compact(keep_tail_messages=0)
    return talk


@pytest.mark.long
def test_no_value_gets_lost_on_the_way_through_all_presets_and_back(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    schemas = [talk.get()["state_schema"]]
    for number, preset in enumerate(ROUTE, start=1):
        before = talk.state()
        good(talk.patch({"preset": preset, "policy": {**SMALL, "anchor_share": 0, "protect": []}}))
        assert talk.state() == before, "a change alone leaves the state as it was, in its own schema"
        assert "NW-2026-118" in served(talk)
        filled(talk)
        talk.append(f"The parcel of {preset} is JD-{number}-77.")
        talk.append("Noted.", role="assistant")
        talk.compact(keep_tail_messages=0)
        conversation = talk.get()
        schemas.append(conversation["state_schema"])
        told = texts(conversation["compressed_state"])
        for value in ("NW-2026-118", "48 500 euros", "4711-K", "3 May 2027", f"JD-{number}-77", "JD-1-77"):
            assert value in told, (preset, value)
        assert [row["status"] for row in talk.compactions()] == ["applied"] * (number + 1)
    assert schemas == ["session", "handoff", "summary", "research", "session", "session", "session"]


@pytest.mark.long
def test_versions_of_different_schemas_are_compared_and_restored(offline: Service, start_talk: StartTalk) -> None:
    talk = begun(start_talk, offline)
    first = talk.get()
    for preset in ("handoff", "turn_end"):
        good(talk.patch({"preset": preset, "policy": {**SMALL, "anchor_share": 0, "protect": []}}))
        filled(talk)
        talk.compact(keep_tail_messages=0)
    versions = {one["version"]: one["state_schema"] for one in talk.pages("/states")}
    assert versions == {1: "session", 2: "handoff", 3: "summary"}

    changes = talk.get("/states", a=1, b=3)
    told = [one["text"] for one in changes["added"]] + [one["after"] for one in changes["changed"]]
    assert {one["field"] for one in changes["added"]} | {one["field"] for one in changes["changed"]} == {"summary"}
    assert {one["field"] for one in changes["removed"]} >= {"logos"}
    assert any("NW-2026-118" in text for text in told)

    good(talk.post("/restore", {"state_version": 1}))
    restored = talk.get()
    assert (restored["state_schema"], restored["compressed_state"]) == ("session", first["compressed_state"])
    block = block_of(talk.context())
    assert block is not None
    assert '"logos"' in block or "logos" in block
    talk.compact(keep_tail_messages=0)
    after = talk.get()
    assert after["state_schema"] == "summary", "the policy's schema is what is written next"
    assert all(value in texts(after["compressed_state"]) for value in ("NW-2026-118", "4711-K", "3 May 2027"))


@pytest.mark.long
@pytest.mark.parametrize(
    "preset",
    [
        "handoff",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("semantic", "hierarchical", "research", "sessions")),
    ],
)
def test_one_text_is_kept_word_for_word_by_every_other_preset_and_back(
    offline: Service, start_talk: StartTalk, preset: str
) -> None:
    alone = {**SMALL, "anchor_share": 0, "protect": []}
    talk = start_talk(offline, preset="turn_end", policy=alone)
    for fact in FACTS:
        talk.append(fact)
        talk.append("Noted.", role="assistant")
    filled(talk)
    talk.compact(keep_tail_messages=0)
    text = talk.get()["compressed_state"]["summary"]
    said = sentences(text)
    assert len(said) >= len(FACTS)

    good(talk.patch({"preset": preset, "policy": alone}))
    filled(talk)
    talk.compact(keep_tail_messages=0)
    conversation = talk.get()
    assert conversation["state_schema"] == conversation["policy"]["state_schema"] != "summary"
    told = texts(conversation["compressed_state"]).replace("\n", " ")
    places = [told.find(sentence) for sentence in said]
    assert -1 not in places, [sentence for sentence in said if sentence not in told]
    assert places == sorted(places), "in the order in which they stood"

    good(talk.patch({"preset": "turn_end", "policy": alone}))
    filled(talk)
    talk.compact(keep_tail_messages=0)
    back = talk.get()["compressed_state"]["summary"]
    assert all(sentence in back for sentence in said[1:]), "but for what it is about, which is told anew each time"


DECIDED: Final = (
    "We decided to use PostgreSQL 16 for the ledger.",
    "I promise to send Hanna Voss the signed contract NW-2026-118 by 3 May 2027.",
    "Who approves the budget of the Ulm branch?",
)


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("before", "preset"),
    [
        ("semantic", "handoff"),
        ("hierarchical", "turn_end"),
        pytest.param("research", "handoff", marks=pytest.mark.long),
        pytest.param("semantic", "turn_end", marks=pytest.mark.long),
        pytest.param("hierarchical", "handoff", marks=pytest.mark.long),
        pytest.param("research", "turn_end", marks=pytest.mark.long),
    ],
)
def test_anchors_go_into_a_state_that_none_stand_beside(
    offline: Service, start_talk: StartTalk, before: str, preset: str
) -> None:
    """What is served in addition to one state is in the next one; at any time at least one of them has it."""
    alone = {**SMALL, "protect": []}
    talk = start_talk(offline, preset=before, policy=alone)
    for text in DECIDED:
        talk.append(text)
        talk.append("Noted.", role="assistant")
    filled(talk)
    talk.compact(keep_tail_messages=0)
    anchored = served(talk).partition("<anchors>")[2]
    assert all(text in anchored for text in DECIDED), "they stand beside the state, not in it"

    good(talk.patch({"preset": preset, "policy": alone}))
    assert all(text in served(talk) for text in DECIDED), "a change alone takes nothing out of sight"
    filled(talk)
    talk.compact(keep_tail_messages=0)
    told = texts(talk.get()["compressed_state"])
    assert all(text in told for text in DECIDED)
    assert "<anchors>" not in served(talk)
    if preset == "handoff":
        state = talk.get()["compressed_state"]
        fields = ("key_decisions", "next_steps", "next_steps")
        assert all(said in "\n".join(state[field]) for field, said in zip(fields, DECIDED, strict=True))

    good(talk.post("/restore", {"state_version": 1}))
    anchored = served(talk).partition("<anchors>")[2]
    assert all(text in anchored for text in DECIDED), "what is restored has its anchors beside it again"


@pytest.mark.long
def test_a_share_of_none_within_a_schema_serves_no_anchors(offline: Service, start_talk: StartTalk) -> None:
    """The control: if the anchors lose their room and no other state is to hold them, they are not served."""
    talk = start_talk(offline, policy={**SMALL, "protect": []})
    for text in DECIDED:
        talk.append(text)
        talk.append("Noted.", role="assistant")
    filled(talk)
    talk.compact(keep_tail_messages=0)
    assert "<anchors>" in served(talk)
    good(talk.patch({"policy": {"anchor_share": 0}}))
    assert "<anchors>" not in served(talk)


GOAL: Final = "Let us look at the tables first, they come early."
STATE_ALONE: Final[Json] = {**MANUAL, "anchor_share": 0, "recall": "off", "levels": []}


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "preset",
    [
        "semantic",
        "turn_end",
        pytest.param("handoff", marks=pytest.mark.long),
        pytest.param("hierarchical", marks=pytest.mark.long),
    ],
)
def test_what_is_no_longer_held_goes_into_the_next_state(offline: Service, start_talk: StartTalk, preset: str) -> None:
    talk = start_talk(offline, preset="sessions", policy=STATE_ALONE)
    talk.append("Good morning.")
    talk.append("Good morning to you.", role="assistant")
    talk.append(GOAL, event_type="goal")
    talk.append("Noted.", role="assistant")
    talk.batch(lines(40))
    talk.compact(keep_tail_messages=0)
    assert GOAL in served(talk)
    assert GOAL not in texts(talk.get()["compressed_state"]), "it is held beside the state"

    good(talk.patch({"preset": preset, "policy": STATE_ALONE}))
    talk.batch(lines(30, 50))
    talk.compact(keep_tail_messages=0)
    told = texts(talk.get()["compressed_state"])
    assert f'The user wrote: "{GOAL}"' in told
    talk.batch(lines(30, 90))
    talk.compact(keep_tail_messages=0)
    assert texts(talk.get()["compressed_state"]).count(GOAL) == 1


@pytest.mark.daily(1)
@pytest.mark.parametrize("is_unpinned", [True, False], ids=["unpinned", "control"])
def test_what_was_pinned_when_it_was_folded_goes_into_the_state_once_it_is_unpinned(
    offline: Service, start_talk: StartTalk, *, is_unpinned: bool
) -> None:
    talk = start_talk(offline, policy={**STATE_ALONE, "protect": []})
    talk.append("Good morning.")
    talk.append("Good morning to you.", role="assistant")
    pinned = talk.append(GOAL)
    good(talk.http.put(talk.path(f"/messages/{pinned['id']}/pin")))
    talk.append("Noted.", role="assistant")
    talk.batch(lines(40))
    talk.compact(keep_tail_messages=0)
    assert GOAL not in texts(talk.get()["compressed_state"])
    if is_unpinned:
        good(talk.http.delete(talk.path(f"/messages/{pinned['id']}/pin")))
    talk.batch(lines(30, 50))
    talk.compact(keep_tail_messages=0)
    assert (GOAL in texts(talk.get()["compressed_state"])) == is_unpinned
    assert GOAL in served(talk)
