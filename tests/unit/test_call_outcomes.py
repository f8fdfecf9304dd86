"""A call that changes something is told together with the tool's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.core.model.conversation import Message
from app.core.reading.passages import passages_of
from app.core.reading.tool_data_lines import is_call, parse_line
from tests.unit.test_extractive import PROJECT, message, state, talk

ARGUMENTS = {"booking": "OBUT9V", "cabin": "business"}
TOLD = "update_booking(booking=OBUT9V, cabin=business)"
REFUSED = "Error: not enough seats on flight HAT290"


def called(content: Any, *, name: str = "update_booking", first: int = 1) -> list[Message]:
    call = {"type": "tool_call", "id": "c1", "name": name, "arguments": ARGUMENTS}
    result = {"type": "tool_result", "tool_call_id": "c1", "content": content}
    return [message(first, "assistant", "", (call,)), message(first + 1, "tool", "", (result,))]


def call_in(messages: list[Message]) -> str:
    return next(passage.text for passage in passages_of(messages, "en") if passage.role == "assistant")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (REFUSED, f"{TOLD} — {REFUSED}"),
        (json.dumps({"error": "not enough seats"}), f"{TOLD} — not enough seats"),
        (f"Error: no seat\n{'at line 7 of seats.py ' * 20}", f"{TOLD} — Error: no seat"),
        ("Booked.", f"{TOLD} — Booked."),
        (json.dumps({"booking": "OBUT9V", "paid": 120}), TOLD),
        ("So it went on and on. " * 20, TOLD),
    ],
)
def test_what_a_tool_said_stands_behind_the_call(content: str, told: str) -> None:
    said = call_in(called(content))

    assert said == told
    assert is_call(said)
    assert parse_line(said).codes == parse_line(TOLD).codes


def test_a_call_that_only_reads_says_nothing_of_its_result() -> None:
    assert call_in(called(REFUSED, name="get_booking")) == TOLD.replace("update", "get")


def test_an_id_that_is_used_again_is_of_the_newest_call() -> None:
    first, *_ = passages_of([*called(REFUSED), *called("Booked.", first=3)], "en")
    *_, last = passages_of([*called(REFUSED), *called("Booked.", first=3)], "en")

    assert (first.text, first.result_seq) == (f"{TOLD} — {REFUSED}", 2)
    assert (last.text, last.result_seq) == (f"{TOLD} — Booked.", 4)


def test_the_entry_names_both_messages_and_nothing_else_tells_of_it() -> None:
    facts = state([*talk(PROJECT), *called(REFUSED, first=40)])["logos"]
    (entry,) = [one for one in facts if REFUSED in one["text"]]

    assert entry["text"].endswith(f"{TOLD} — {REFUSED}")
    assert set(entry["from"]) == {40, 41}
