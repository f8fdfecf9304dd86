"""The bench of restored cuts: its calls are blind, and without a quote nothing comes back."""

from __future__ import annotations

import pytest

from app.core.validation.verdicts import Verdict
from bench.trust import cuts
from bench.trust.blind import key_of
from bench.trust.cuts import Answered, counted, recorded

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _without_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the corpus, which takes a minute to play."""
    monkeypatch.setattr(cuts, "_of_corpus", lambda **_: iter(()))


def totals(answered: Answered) -> dict[tuple[bool, str], int]:
    found = counted(answered).values()
    return {
        (honest, what): sum(one[honest, what] for one in found)
        for honest in (True, False)
        for what in ("asked", "supported", "back")
    }


def test_no_call_tells_which_statements_are_honest() -> None:
    found = list(cuts.calls())
    assert len({call.name for call in found}) == len(found)
    for letter in "ab":
        told = [call for call in found if call.name.endswith(letter)]
        assert {call.is_honest for call in told} == {True, False}
        assert len({call.name[:3] for call in told}) == len(told), "of one conversation one call"
    assert not any("honest" in " ".join(call.prompt) for call in found)


def test_recorded_verdicts_bring_back_what_is_honest_and_nothing_else() -> None:
    found = totals(recorded())
    assert found[True, "back"] >= 0.9 * found[True, "asked"] > 100
    assert found[False, "asked"] > 100
    assert found[False, "back"] == 0


def test_control_support_without_quotes_brings_nothing_back() -> None:
    told = {key_of(claim): Verdict(n=0, verdict="supported") for call in cuts.calls() for claim in call.request.claims}
    found = totals(told)
    assert (found[True, "back"], found[False, "back"]) == (0, 0)
    assert found[True, "supported"] > 100
