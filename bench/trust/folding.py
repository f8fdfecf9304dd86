"""Puts recorded answers through the checks and merges of the current checkout, and returns what is served at the end.

Run it as ``python bench/trust/folding.py < talks.json > served.json``, with the checkout as the current folder and in
``PYTHONPATH``. It uses only what ``bench/replay.py`` has had since commit d479d5f.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from typing import Any
from unittest.mock import patch

from app.core.model.model_io import Proposal, SummaryRequest
from app.core.planning.compaction import CompactionPlan
from app.core.state.apply import AppliedCandidate
from app.core.validation import gate
from bench import replay
from bench.replay import Replay

FOLDED = 8_000
"""Tokens of a usual chunk, which is assumed for all chunks. Those of the corpus are smaller, and their records longer
than was asked for; whether a record is smaller than what it replaces is not measured here."""


def folded(request: Mapping[str, Any]) -> dict[str, Any]:
    """Play one conversation under one preset: the text served after its last round, and why answers were refused.

    A chunk whose answer is refused is summarized offline instead, as the service does.
    """
    line = Replay.in_window(request["window"], request["preset"])
    entries: dict[str, str] = {}
    refused: list[str] = []
    for one in request["rounds"]:
        for message in request["messages"][one["first"] - 1 : one["last"]]:
            line.say(message["role"], message["content"], message["parts"], at=datetime.fromisoformat(message["at"]))
        plan = _plan(line, one["first"], one["last"])
        applied = _taken(line, plan, json.dumps(_numbered(one["answer"], entries), ensure_ascii=False))
        if isinstance(applied, str):
            refused.append(applied)
            line.take(plan)
        line.boundary = one["last"]
        entries = {_key(entry.field, entry.text): entry.id for entry in line.previous}
    return {
        "talk": request["talk"],
        "served": line.served(),
        "tokens": line.remembered_tokens(),
        "refused": refused,
    }


def _taken(line: Replay, plan: CompactionPlan, answer: str) -> AppliedCandidate | str:
    """Apply the recorded answer instead of the offline one, as that of a model that repeats itself if asked again."""
    proposal = Proposal(text=answer, finish="stop", model="recorded")
    with (
        patch.object(replay, "compress", lambda _: answer),
        patch.object(replay, "judge", lambda _, request: _judged(proposal, request)),
    ):
        return line.take(plan)


def _judged(proposal: Proposal, request: SummaryRequest) -> Any:
    report = gate.judge(proposal, request)
    examined = getattr(report, "examined", None)
    if examined is None or not examined.failures:
        return report
    doubts = import_module("app.core.validation.asking").doubts_of(examined.failures)
    second = {"statements": [{"n": n, "text": doubt.statement} for n, doubt in enumerate(doubts, start=1)]}
    again = Proposal(text=json.dumps(second, ensure_ascii=False), finish="stop", model="recorded")
    return gate.judge_again(report, again, replace(request, doubts=doubts))


def _numbered(answer: dict[str, Any], entries: Mapping[str, str]) -> dict[str, Any]:
    """The answer with the ids that its entries have here; an entry that is not served here cannot be given up."""
    made = {
        field: [{**item, "replaces": _ids(item["replaces"], entries)} for item in value]
        if isinstance(value, list) and field not in {"dropped", "anchors"}
        else value
        for field, value in answer.items()
    }
    dropped = [
        {**drop, "entry": entries[_key(*drop["entry"])]}
        for drop in answer["dropped"]
        if _key(*drop["entry"]) in entries
    ]
    return {**made, "dropped": dropped}


def _ids(named: list[list[str]], entries: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(entries[_key(*one)] for one in named if _key(*one) in entries))


def _key(field: str, text: str) -> str:
    return f"{field} {' '.join(text.split())}"


def _plan(line: Replay, first: int, last: int) -> CompactionPlan:
    span = line.messages[first - 1 : last]
    return CompactionPlan(
        from_seq=first,
        to_seq=last,
        messages=len(span),
        folded_tokens=FOLDED,
        goal_seq=last,
        predicted_tokens=line.breakdown().total,
        irreducible=False,
    )


if __name__ == "__main__":
    json.dump([folded(one) for one in json.load(sys.stdin)], sys.stdout, ensure_ascii=False)
