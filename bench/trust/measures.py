"""What is counted: honest texts that were changed, entries that went or stayed wrongly, lies that are gone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.summarizing.candidate import parse_candidate
from app.domain.words.text import sentences
from bench.trust.playing import Played, planted, played
from bench.trust.rounds import ANSWERS, SEALED, Case

Figure = tuple[str, int]
"""A share in percent, and of how many."""


def figures_of(corpus: Sequence[Case]) -> dict[str, Figure]:
    """Every figure that honest answers give."""
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for case in corpus:
        told = played(case)
        counts["honest answers accepted at the first attempt"].append(told.reason is None)
        counts["honest answers asked about again"].append(told.asked_again)
        if told.applied is None:
            continue
        for name, verdicts in _judged(case, told):
            counts[name] += verdicts
    return {name: (_percent(found), len(found)) for name, found in counts.items()}


def changes_of(corpus: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Every honest text that is not served as it was written, and what is served instead."""
    for case in corpus:
        told = played(case)
        if told.applied is None:
            yield {"case": case.id, "field": "", "before": "(the whole answer)", "after": told.reason}
            continue
        candidate = parse_candidate(case.answer, case.request.schema)
        written = {item.text for item in candidate.items}
        known = {entry.text for entry in case.request.previous}
        new = [text for text in told.items.values() if text not in written and text not in known]
        for item in candidate.items:
            if item.text not in told.items.values():
                yield {"case": case.id, "field": item.field, "before": item.text, "after": new}
        for field, text in candidate.narrative.items():
            if not _is_whole(text, told.texts.get(field, "")):
                yield {"case": case.id, "field": field, "before": text, "after": told.texts.get(field)}
        for digest in candidate.digests:
            if told.briefs.get(digest.number) != digest.brief:
                yield {
                    "case": case.id,
                    "field": "segments",
                    "before": digest.brief,
                    "after": told.briefs.get(digest.number),
                }


def lies_of(corpus: Sequence[Case]) -> tuple[dict[str, tuple[int, int, int]], list[dict[str, Any]]]:
    """By kind (gone where the writer repeats himself, gone where he mends it, of how many), and what went through."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    through: list[dict[str, Any]] = []
    by_id = {case.id: case for case in corpus}
    for talk in dict.fromkeys(case.talk.id for case in corpus):
        for lie in _lies(talk):
            preset, _, number = lie["case"].rpartition("-")
            case = by_id[f"{talk}/{preset}/{number}"]
            known = {entry.id for entry in case.request.previous}
            if not known.issuperset([*lie.get("replaces", ()), *([lie["entry"]] if "entry" in lie else [])]):
                continue  # the state that it was written for has no such entry any more
            kind = f"{lie['kind']}, {lie['label']}" if lie.get("label") else lie["kind"]
            false = planted(case, lie)
            gone = _is_gone(case, lie, played(case, false))
            counts[kind][0] += gone
            counts[kind][1] += _is_gone(case, lie, played(case, false, twin=case.answer))
            counts[kind][2] += 1
            if not gone:
                through.append({"talk": talk, **lie})
    return {kind: (gone, mended, count) for kind, (gone, mended, count) in counts.items()}, through


def _judged(case: Case, told: Played) -> Iterator[tuple[str, list[bool]]]:
    candidate = parse_candidate(case.answer, case.request.schema)
    served = set(told.items.values())
    yield "honest items changed or gone", [item.text not in served for item in candidate.items]
    yield (
        "honest narratives changed",
        [not _is_whole(text, told.texts.get(field, "")) for field, text in candidate.narrative.items()],
    )
    asked = {segment for segment, _ in enumerate(case.request.segments, start=1)}
    digests = [one for one in candidate.digests if one.number in asked]
    yield "honest digests changed", [told.briefs.get(one.number) != one.brief for one in digests]
    before = {entry.id: entry for entry in case.request.previous if entry.role != "narrative"}
    replaced = [name for item in candidate.items for name in item.replaces if name in before]
    dropped = [drop.entry for drop in candidate.dropped if drop.entry in before]
    yield "honest `replaces` that took effect", [name not in told.items for name in replaced]
    yield "honest `dropped` that took effect", [name not in told.items for name in dropped]
    named = {*replaced, *dropped}
    yield "valid entries still served", [name in told.items for name in before if name not in named]


def _is_whole(written: str, served: str) -> bool:
    return all(sentence in served for sentence in sentences(" ".join(written.split())))


def _is_gone(case: Case, lie: Mapping[str, Any], told: Played) -> bool:
    """Whether nobody is misled any more: the false statement is not served, or the valid entry still is."""
    if told.applied is None:
        return True
    if lie["kind"] == "dropped_valid":
        return lie["entry"] in told.items
    if lie["kind"] == "replaced_valid":  # the invented item itself is counted with the invented ones
        return all(entry in told.items for entry in lie["replaces"])
    text = " ".join(str(lie["text"]).split())
    if lie.get("field") == "segments":
        number = json.loads(case.answer)["segments"][lie["index"]]["segment"]
        return told.briefs.get(number, "") != text
    if lie.get("index") is None:
        honest = " ".join(str(json.loads(case.answer)[lie["field"]]).split())
        false = [one for one in sentences(text) if one not in honest]
        return not any(one in told.texts.get(lie["field"], "") for one in false)
    return text not in told.items.values()


def _lies(talk: str) -> list[dict[str, Any]]:
    for folder in (ANSWERS, SEALED):
        if (path := folder / f"{talk}.json").exists():
            found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["lies"]
            return found
    return []


def _percent(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / len(found):.1f} %" if found else "-"
