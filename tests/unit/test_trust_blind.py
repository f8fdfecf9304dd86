"""Requests for blind recorders show no label, and their answers are played against today's claims."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.trust import blind
from bench.trust.blind import Planned, collect, plan, recorded, write_requests
from bench.trust.heard import recorded_effects
from bench.trust.playing import played
from bench.trust.rounds import Case
from bench.trust.verified import asked_of, labelled
from tests.unit.trust_cases import plays


@cache
def answers() -> list[Case]:
    """The answers to be recorded; they are made when a test asks, since that takes seconds."""
    return [play.case for play in plays() if play.case.preset != "semantic"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(blind, "VERDICTS", tmp_path / "verdicts")
    monkeypatch.setattr(blind, "PLAN", tmp_path / "verdicts" / "plan.json")
    return tmp_path / "asked"


@cache
def planned_once() -> list[Planned]:
    return plan(answers())


def answer_all(folder: Path, *, honestly: bool) -> int:
    """Answer the requests of a folder honestly, or by supporting everything; return the number of lies."""
    planned = planned_once()
    assert write_requests(folder / "requests", planned) == len(planned) == len(answers())
    given: dict[str, Any] = {}
    for number, one in enumerate(planned, start=1):
        asked = asked_of(one.case, played(one.case, one.answer))
        rows = [
            {
                "n": said.n,
                "verdict": said.verdict if honestly else "supported",
                "seq": said.seq or 0,
                "quote": said.quote,
            }
            for said in labelled(asked, one.lies)
        ]
        given[f"{number:03}"] = {"verdicts": rows}
    (folder / "answers").mkdir()
    told = {"recorder": "Somebody", "model": "a model", "answers": given}
    (folder / "answers" / "S.json").write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    return sum(len(one.lies) for one in planned)


@pytest.mark.long
@pytest.mark.parametrize("honestly", [pytest.param(True, marks=pytest.mark.long), False])
def test_what_was_answered_is_played(folder: Path, *, honestly: bool) -> None:
    lies = answer_all(folder, honestly=honestly)
    (path,) = collect(folder, answers())
    assert path.name == "somebody-a-model.json"
    heard = recorded_effects(list(recorded(answers(), path.parent)))
    assert heard is not None
    assert lies > 0
    assert (heard.recorders, heard.requests, heard.current) == (("Somebody (a model)",), len(answers()), len(answers()))
    assert (heard.lies_gone["all"].found, heard.lies_gone["all"].count) == (lies if honestly else 0, lies)
    assert heard.honest_lost["all"].found == 0


@pytest.mark.long
def test_no_request_tells_which_claims_are_false(folder: Path) -> None:
    answer_all(folder, honestly=True)
    for path in sorted((folder / "requests").glob("*.json")):
        told = json.loads(path.read_text("utf-8"))
        assert set(told) == {"id", "system", "user", "schema"}
        truths = [str(one.lie["truth"]) for play in plays() for one in play.lies]
        assert [truth for truth in truths if truth in told["user"]] == []


@pytest.mark.long
def test_answers_to_another_request_are_refused(folder: Path) -> None:
    answer_all(folder, honestly=True)
    path = folder / "requests" / "001.json"
    told = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**told, "user": f"{told['user']} "}, ensure_ascii=False), encoding="utf-8")
    with pytest.raises(ValueError, match="request 001"):
        collect(folder, answers())
