"""Counts honest texts that were changed, entries that were wrongly removed or kept, and lies that are gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from app.core.model.candidate import Candidate
from app.core.model.segments import SegmentDigest
from app.core.summarizer.candidate import parse_candidate
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentences
from bench.trust.lies import is_served, kind_of
from bench.trust.playing import Played
from bench.trust.plays import Play, honest_plays_of
from bench.trust.rounds import Case

Figure = tuple[str, int]
"""A share in per cent, and the number of all."""


def figures_of(corpus: Sequence[Case]) -> dict[str, Figure]:
    """Every figure of honest answers, including answers in which no lies were planted."""
    return honest_figures_of(honest_plays_of(corpus))


def honest_figures_of(plays: Sequence[Play]) -> dict[str, Figure]:
    """The same figures of answers that were played."""
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for play in plays:
        case, outcome = play.case, play.outcome
        counts["honest answers accepted at the first attempt"].append(outcome.reason is None)
        counts["honest answers asked about again"].append(outcome.asked_again)
        if outcome.applied is None:
            continue
        for name, verdicts in _judged(case, outcome):
            counts[name] += verdicts
    return {name: (_percent(found), len(found)) for name, found in counts.items()}


def changes_of(plays: Sequence[Play]) -> list[dict[str, Any]]:
    """Every honest text that is not served as written, with what is served instead, and an id for readers."""
    rows = (row for play in plays for row in _changes(play.case, play.outcome))
    return [{"id": str(number), **row} for number, row in enumerate(rows, start=1)]


def texts_of(plays: Sequence[Play]) -> dict[str, int]:
    """How many honest texts of each kind there are."""
    counts = Counter({"answer": len(plays)})
    for play in plays:
        candidate = parse_candidate(play.case.answer, play.case.request.schema)
        counts["item"] += len(candidate.items)
        counts["narrative"] += len(candidate.narrative)
        counts["digest"] += len(_asked_digests(play.case, candidate))
    return dict(counts)


def lies_of(plays: Sequence[Play]) -> tuple[dict[str, tuple[int, int, int]], list[dict[str, Any]]]:
    """By kind: lies gone if the writer repeats them, gone if the writer mends them, and all; then those that passed."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    through: list[dict[str, Any]] = []
    for play in plays:
        for one in play.lies:
            counted = counts[kind_of(one.lie)]
            counted[0] += not one.is_served
            counted[1] += not is_served(play.case, one.lie, one.mended)
            counted[2] += 1
            if one.is_served:
                through.append({"talk": play.case.talk.id, **one.lie})
    return {kind: (gone, mended, count) for kind, (gone, mended, count) in counts.items()}, through


def _changes(case: Case, outcome: Played) -> Iterator[dict[str, Any]]:
    if outcome.applied is None:
        yield {"case": case.id, "kind": "answer", "field": "", "before": "(the whole answer)", "after": outcome.reason}
        return
    candidate = parse_candidate(case.answer, case.request.schema)
    written = {item.text for item in candidate.items}
    known = {entry.text for entry in case.request.previous}
    new = [text for text in outcome.items.values() if text not in written and text not in known]
    for item in candidate.items:
        if item.text not in outcome.items.values():
            yield {"case": case.id, "kind": "item", "field": item.field, "before": item.text, "after": new}
    for field, text in candidate.narrative.items():
        if not _is_whole(text, outcome.texts.get(field, "")):
            after = outcome.texts.get(field)
            yield {"case": case.id, "kind": "narrative", "field": field, "before": text, "after": after}
    for digest in _asked_digests(case, candidate):
        if (brief := outcome.briefs.get(digest.number)) != digest.brief:
            yield {"case": case.id, "kind": "digest", "field": "segments", "before": digest.brief, "after": brief}


def _asked_digests(case: Case, candidate: Candidate) -> list[SegmentDigest]:
    """The digests of stretches that were asked for."""
    return [one for one in candidate.digests if 1 <= one.number <= len(case.request.segments)]


def _judged(case: Case, outcome: Played) -> Iterator[tuple[str, list[bool]]]:
    candidate = parse_candidate(case.answer, case.request.schema)
    served = set(outcome.items.values())
    yield "honest items changed or gone", [item.text not in served for item in candidate.items]
    yield "honest items that lost a source which they name", [bool(lost) for lost, _ in _sources(case, outcome)]
    yield (
        "honest items given a source that neither they nor what they replace name",
        [bool(added) for _, added in _sources(case, outcome)],
    )
    yield (
        "honest narratives changed",
        [not _is_whole(text, outcome.texts.get(field, "")) for field, text in candidate.narrative.items()],
    )
    digests = _asked_digests(case, candidate)
    yield "honest digests changed", [outcome.briefs.get(one.number) != one.brief for one in digests]
    before = {entry.id: entry for entry in case.request.previous if entry.role != "narrative"}
    replaced = [name for item in candidate.items for name in item.replaces if name in before]
    dropped = [drop.entry for drop in candidate.dropped if drop.entry in before]
    yield "honest `replaces` that took effect", [name not in outcome.items for name in replaced]
    yield "honest `dropped` that took effect", [name not in outcome.items for name in dropped]
    named = {*replaced, *dropped}
    yield "valid entries still served", [name in outcome.items for name in before if name not in named]


def _sources(case: Case, outcome: Played) -> Iterator[tuple[set[int], set[int]]]:
    """For each item as written: the sources that it lost, and those that only code added."""
    known = {entry.id: set(entry.from_seqs) for entry in case.request.previous}
    made = (
        {without_added_days(entry.text): set(entry.from_seqs) for entry in outcome.applied.entries}
        if outcome.applied
        else {}
    )
    for item in parse_candidate(case.answer, case.request.schema).items:
        named, has = set(item.from_seqs), made.get(item.text)
        if has is not None:
            yield named - has, has - named.union(*(known.get(name, set()) for name in item.replaces))


def _is_whole(written: str, served: str) -> bool:
    return all(sentence in served for sentence in sentences(" ".join(written.split())))


def _percent(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / len(found):.1f} %" if found else "-"
