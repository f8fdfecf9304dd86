"""The lies of the corpus: single edits of honest answers, and whether they still mislead anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from app.core.model.claims import Claim
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentences
from bench.trust.playing import Played
from bench.trust.rounds import ANSWERS, SEALED, Case

Lie = Mapping[str, Any]
"""A lie as it is in the corpus, with its place there as ``number``."""


def lies_of_case(case: Case) -> list[Lie]:
    """The lies that were planted in copies of this answer, and name only entries that its state has."""
    known = {entry.id for entry in case.request.previous}
    return [
        lie
        for lie in _lies(case.talk.id)
        if lie["case"] == f"{case.preset}-{case.round}"
        and known.issuperset([*lie.get("replaces", ()), *([lie["entry"]] if "entry" in lie else [])])
    ]


def kind_of(lie: Lie) -> str:
    """The kind of a lie, with whether its value occurs anywhere."""
    return f"{lie['kind']}, {lie['label']}" if lie.get("label") else str(lie["kind"])


def planted(case: Case, *lies: Lie) -> str:
    """The case's answer with these lies in it."""
    answer = json.loads(case.answer)
    for lie in lies:
        _plant(answer, lie)
    return json.dumps(answer, ensure_ascii=False)


def is_served(case: Case, lie: Lie, outcome: Played) -> bool:
    """Whether somebody is misled: the false statement is served, or the valid entry is not served any more."""
    if outcome.applied is None:
        return False
    if lie["kind"] == "dropped_valid":
        return lie["entry"] not in outcome.items
    if lie["kind"] == "replaced_valid":  # the invented item itself is counted with the invented ones
        return not all(entry in outcome.items for entry in lie["replaces"])
    if lie.get("field") == "segments":
        number = json.loads(case.answer)["segments"][lie["index"]]["segment"]
        return outcome.briefs.get(number, "") == false_texts(case, lie)[0]
    if lie.get("index") is None:
        return any(one in outcome.texts.get(lie["field"], "") for one in false_texts(case, lie))
    return false_texts(case, lie)[0] in outcome.items.values()


def false_texts(case: Case, lie: Lie) -> list[str]:
    """The false texts: a whole item or digest, or the sentences of a narrative that the honest one lacks."""
    if "text" not in lie:
        return []
    text = " ".join(str(lie["text"]).split())
    if lie.get("index") is not None:
        return [text]
    honest = " ".join(str(json.loads(case.answer)[lie["field"]]).split())
    return [one for one in sentences(text) if one not in honest]


def honest_sentences(case: Case, lie: Lie) -> list[str]:
    """The sentences of a false item that its honest twin has too; none for other lies."""
    index = lie.get("index", -1)
    if lie.get("field") == "segments" or index is None or index < 0:
        return []
    honest = sentences(json.loads(case.answer)[lie["field"]][index]["text"])
    return [one for one in sentences(lie["text"]) if one in honest]


def is_claim_of(claim: Claim, case: Case, lie: Lie) -> bool:
    """Whether a claim makes the lie's statement, or gives up the lie's entry."""
    if claim.gives_up:
        return claim.target in {*lie.get("replaces", ()), lie.get("entry")}
    false, text = false_texts(case, lie), without_added_days(" ".join(claim.text.split()))
    if claim.kind == "digest":
        return lie.get("field") == "segments" and any(text.endswith(one) for one in false)
    return claim.field == lie.get("field") and text in false


def _plant(answer: dict[str, Any], lie: Lie) -> None:
    field, index = str(lie.get("field")), lie.get("index")
    if lie["kind"] == "dropped_valid":
        drop = {"entry": lie["entry"], "reason": lie["reason"], "by_seq": lie["by_seq"]}
        answer.setdefault("dropped", []).append(drop)
    elif index is None:
        answer[field] = lie["text"]
    elif index == -1:
        made = {"text": lie["text"], "from": lie.get("from", []), "replaces": lie.get("replaces", [])}
        answer.setdefault(field, []).append(made)
    elif field == "segments":
        answer[field][index]["brief"] = lie["text"]
    else:
        answer[field][index]["text"] = lie["text"]


@cache
def _lies(talk: str) -> list[dict[str, Any]]:
    for folder in (ANSWERS, SEALED):
        if (path := folder / f"{talk}.json").exists():
            found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["lies"]
            return [{**lie, "number": number} for number, lie in enumerate(found)]
    return []
