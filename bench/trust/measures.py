"""What is counted: honest texts that were changed, entries that went or stayed wrongly, lies that are gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.summarizing.candidate import parse_candidate
from app.domain.words.text import sentences
from bench.trust.lies import is_served, kind_of, lies_of_case, planted
from bench.trust.playing import Played, played
from bench.trust.rounds import Case

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
    for case in corpus:
        for lie in lies_of_case(case):
            false = planted(case, lie)
            told = played(case, false)
            mended = played(case, false, twin=case.answer) if told.asked_again else told
            counts[kind_of(lie)][0] += not is_served(case, lie, told)
            counts[kind_of(lie)][1] += not is_served(case, lie, mended)
            counts[kind_of(lie)][2] += 1
            if is_served(case, lie, told):
                through.append({"talk": case.talk.id, **lie})
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


def _percent(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / len(found):.1f} %" if found else "-"
