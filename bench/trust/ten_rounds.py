"""Counts facts for later questions that are still served after ten rounds, by this code and by an earlier commit.

Each recorded round becomes two: its messages are cut in the middle, and each statement of the answer belongs to the
half that has its last source. From round to round the state passes the checks, the merge and the pruning of the
measured code. A fact is kept if all values of the question's answer are in what is served.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from app.core.model.word_overlap import Overlap
from app.core.text.sentences import sentences
from app.core.text.values import Value, ValueIndex, values
from bench.checkouts import script_for
from bench.trust.rounds import HERE, WINDOW, Case, Talk

SCRIPT: Final = HERE / "folding.py"
ROOT: Final = HERE.parents[1]
_ASIDE: Final = re.compile(r"\([^()]*\)|（[^（）]*）")  # remarks in an answer, such as earlier values
_NO_LISTS: Final = frozenset({"dropped", "anchors", "segments"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result of ten rounds under one preset."""

    facts: int
    kept: int
    by_chance: int
    """How many of these facts are in what is served of another conversation."""
    tokens: int
    """The tokens of state and anchors, of all conversations together."""
    refused: Mapping[str, int]
    """How many rounds had a refused answer, by reason."""


def kept_by(corpus: Sequence[Case], checkout: Path = ROOT) -> dict[str, Kept]:
    """The results by preset, after ten rounds of every conversation, by the code of a checkout.

    Raises:
        subprocess.CalledProcessError: The checkout's code cannot play the rounds.
    """
    lines = [cases for _, cases in _lines(corpus)]
    request = json.dumps([line_of(cases) for cases in lines], ensure_ascii=False)
    done = subprocess.run(
        [sys.executable, "-c", script_for(SCRIPT, checkout)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"},
        input=request,
        capture_output=True,
        text=True,
        check=True,
    )
    found: defaultdict[str, list[Kept]] = defaultdict(list)
    played = json.loads(done.stdout)
    for place, (cases, served) in enumerate(zip(lines, played, strict=True)):
        other = next((one for one in played[place:] + played[:place] if one["talk"] != served["talk"]), None)
        found[cases[0].preset].append(kept_in(cases[0].talk, served, other["served"] if other else ""))
    return {preset: _together(found[preset]) for preset in found}


def kept_in(talk: Talk, served: Mapping[str, Any], other: str = "") -> Kept:
    """How many of the talk's facts are in what is served of it, and in what is served of another talk."""
    facts = list(facts_of(talk))
    return Kept(
        facts=len(facts),
        kept=_standing(facts, served["served"]),
        by_chance=_standing(facts, other),
        tokens=served["tokens"],
        refused=dict(Counter(served["refused"])),
    )


def _standing(facts: Iterable[Sequence[Value]], text: str) -> int:
    given = ValueIndex()
    for number, line in enumerate(text.splitlines(), start=1):
        given.add(number, line)
    return sum(all(given.sources(value) for value in fact) for fact in facts)


def facts_of(talk: Talk) -> Iterator[tuple[Value, ...]]:
    """The values of each question's answer, without those in remarks; answers without values are left out."""
    for question in talk.questions:
        answer_values = tuple(values(_ASIDE.sub(" ", question["answer"])))
        if answer_values:
            yield answer_values


def line_of(cases: Sequence[Case]) -> dict[str, Any]:
    """One conversation under one preset, in the form that the script reads."""
    talk = cases[0].talk
    return {
        "talk": talk.id,
        "preset": cases[0].preset,
        "window": WINDOW,
        "messages": [
            {"role": one.role, "content": one.content, "parts": list(one.parts), "at": one.created_at.isoformat()}
            for one in talk.messages
        ],
        "rounds": [half for case in cases for half in halves_of(case)],
    }


def halves_of(case: Case) -> list[dict[str, Any]]:
    """One recorded round as two."""
    span = case.request.messages
    cut = _cut(case)
    names = {entry.id: (entry.field, entry.text) for entry in case.request.previous}
    answer: dict[str, Any] = json.loads(case.answer)
    early: dict[str, Any] = {"dropped": [], "anchors": []}
    late: dict[str, Any] = {"dropped": [], "anchors": []}
    for field, value in answer.items():
        if field in _NO_LISTS:
            continue
        if isinstance(value, list):
            early[field], late[field] = [], []
            for item in value:
                named = [names[id_] for id_ in item.get("replaces", ()) if id_ in names]
                half = early if item["from"] and max(item["from"]) <= cut else late
                half[field].append({**item, "replaces": named})
        else:
            early[field], late[field] = _begun(case, field, value, cut), value
    for drop in answer.get("dropped", ()):
        if drop["entry"] in names:
            half = early if drop.get("by_seq", 0) <= cut else late
            half["dropped"].append({**drop, "entry": names[drop["entry"]]})
    for anchor in answer.get("anchors", ()):
        (early if anchor.get("seq", 0) <= cut else late)["anchors"].append(anchor)
    return [
        {"first": span[0].seq, "last": cut, "answer": early},
        {"first": cut + 1, "last": span[-1].seq, "answer": late},
    ]


def _begun(case: Case, field: str, text: str, cut: int) -> str:
    """A narrative as it may be in the middle of its round: the earlier one, with the first half's new sentences."""
    before = " ".join(entry.text for entry in case.request.previous if entry.field == field)
    overlap = Overlap(case.request.messages)
    new = [one for one in sentences(text) if (found := overlap.sources(one)) and max(found) <= cut]
    return " ".join(filter(None, [before, *(new or ([] if before else sentences(text)[:1]))]))


def _cut(case: Case) -> int:
    """The last message of the first half: if possible, the next one is a user's."""
    span = case.request.messages
    middle = len(span) // 2
    starts = [place for place in range(middle, len(span)) if span[place].role == "user"]
    return span[(starts[0] if starts else middle) - 1].seq


def _lines(corpus: Iterable[Case]) -> Iterator[tuple[tuple[str, str], list[Case]]]:
    for key, cases in groupby(corpus, key=lambda case: (case.talk.id, case.preset)):
        yield key, list(cases)


def _together(found: Sequence[Kept]) -> Kept:
    return Kept(
        facts=sum(one.facts for one in found),
        kept=sum(one.kept for one in found),
        by_chance=sum(one.by_chance for one in found),
        tokens=sum(one.tokens for one in found),
        refused=dict(sum((Counter(one.refused) for one in found), Counter())),
    )
