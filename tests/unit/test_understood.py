"""What was explained and understood is in the field for what both sides know."""

from __future__ import annotations

from app.core.reading.importance import ratings_of
from app.core.reading.passages import passages_of
from app.core.summarizer.offline.understood_points import understood_items
from tests.unit.test_extractive import CHATTER, state, talk

_ASKED = "U What is a tide table for?\nA A tide table lists the times of high water for one harbour. Do you sail?\n"


def told(text: str) -> list[str]:
    passages = passages_of(talk(text), "en")
    return [item.text for item in understood_items(passages, ratings_of(passages).likely, [])]


def test_a_bare_got_it_leaves_what_was_explained() -> None:
    explained = "Assistant: A tide table lists the times of high water for one harbour."
    assert told(f"{_ASKED}U Got it, thanks!") == [explained]
    assert explained in [item["text"] for item in state(talk(f"{_ASKED}U Got it, thanks!\nA {CHATTER}"))["abstract"]]


def test_a_restatement_is_told_with_what_it_restates() -> None:
    (one,) = told(f"{_ASKED}U Oh, so it's a calendar for the harbour of Cork.")
    assert one.startswith("Assistant: A tide table lists")
    assert one.endswith(" — User: So it's a calendar for the harbour of Cork.")


def test_nothing_is_understood_without_an_explanation_or_with_a_further_question() -> None:
    assert told("U Got it.\nA Fine.") == []
    assert told(f"{_ASKED}U So it's a calendar?") == []
    assert told(f"{_ASKED}U I'd rather sail to Cork tomorrow.") == []
