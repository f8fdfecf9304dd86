"""What only the earlier text told is marked in each language with such marks, and can be found by them."""

from __future__ import annotations

import pytest

from app.core.model import doubt_marks
from app.core.model.doubt_marks import own_and_earlier_text, with_doubt_marks, without_doubt_mark
from app.core.model.schemas import SUMMARY
from app.core.model.state import StateEntry
from app.core.state.pruning import state_of

TOLD = StateEntry(id="N1", field="summary", role="narrative", text="They bake in Porto.", since_version=1)
EARLIER = StateEntry(
    id="N2", field="summary", role="narrative", text="It was to cost 18,900 euros.", since_version=1, in_doubt=True
)
CODES = sorted(doubt_marks._EARLIER)


def test_every_language_that_marks_an_entry_marks_a_paragraph() -> None:
    assert sorted(doubt_marks._IN_DOUBT) == CODES
    assert len(set(doubt_marks._EARLIER.values())) >= len(CODES) - 1


@pytest.mark.parametrize("code", CODES)
def test_what_was_told_earlier_is_found_in_a_served_text(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubt_marks, "likeliest", lambda _: code)
    state = state_of(SUMMARY, [EARLIER, TOLD])
    assert state["summary"] == f"{TOLD.text}\n\n{doubt_marks._EARLIER[code]}: {EARLIER.text}"
    assert own_and_earlier_text(state["summary"]) == (TOLD.text, EARLIER.text)
    assert own_and_earlier_text(with_doubt_marks([EARLIER])[0]) == ("", EARLIER.text), "alone"


@pytest.mark.parametrize("text", ["", "They bake.", "They bake.\n\nThey sell.", "Said earlier: it may have changed."])
def test_control_a_text_without_the_mark_is_all_told_now(text: str) -> None:
    assert own_and_earlier_text(text) == (text, "")
    assert without_doubt_mark(text) == (text, False)
