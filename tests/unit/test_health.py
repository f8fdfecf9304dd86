"""The faults that a doctor looks for in a stored state, and healthy states that look odd."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.model.schemas import SESSION
from app.core.validation.health import findings
from tests.corpus import assert_values, corpus


def sick(**state: Any) -> list[tuple[str, str | None]]:
    return [(found.kind, found.field) for found in findings(SESSION, state, covered_messages=20)]


def test_what_is_no_memory_is_found_and_what_only_looks_odd_is_healthy() -> None:
    assert_values(corpus("health"), lambda state: sick(**state))


def test_an_empty_state_that_stands_for_many_messages() -> None:
    assert sick(logos=[], conversation_summary="  ") == [("empty", None)]
    assert findings(SESSION, {}, covered_messages=3) == []


def test_a_summary_that_went_for_want_of_room_is_not_missing() -> None:
    before, now = {"conversation_summary": "Anna plans the trip to Riga."}, {"logos": ["Anna leads the project."]}
    (missing,) = findings(SESSION, now, covered_messages=20, before=before)
    assert (missing.kind, missing.field) == ("missing", "conversation_summary")
    assert findings(SESSION, now, covered_messages=20, before=before, fields_given_up={"conversation_summary"}) == []


@pytest.mark.parametrize(
    ("text", "sickness"),
    [
        ("I can't provide the documents before Friday", "no_summary"),
        ("ValueError: bad token in auth.py is the cause.", "error_text"),
        ("502 Bad Gateway is what the shop answers (in doubt)", "error_text"),
    ],
)
def test_an_item_that_rests_on_messages_may_tell_of_an_error(text: str, sickness: str) -> None:
    state = {"logos": ["Anna leads the project.", text]}
    told = {text.removesuffix(" (in doubt)")}
    assert findings(SESSION, state, covered_messages=20, sourced_texts=told) == []
    assert sick(**state) == [(sickness, "logos")], "control: nothing says that it rests on any"
