"""``python -m bench.anchors.outdated``: whether replaced entries show that anchors are outdated.

If an answer replaces or drops an entry, an anchor from one of that entry's messages may not be true any more. Rules
that could find such anchors are tried on the recorded answers of ``bench.trust`` (the open half, and the open sets of
its ordinary talks). ``outdated.jsonl`` holds the anchors that one reader judged: sixty drawn at random, and all that
lost a value. ``--unread`` prints the anchors that a rule marks and nobody has judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from app.core.anchors.prompt_ids import anchors_by_prompt_id
from app.core.anchors.ranking import ranking_of
from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate
from app.core.model.state import StateEntry
from app.core.summarizer.candidate import parse_candidate
from app.core.text.token_counts import estimate_text
from app.core.text.values import ValueIndex, values
from bench.prompt_words import WRITTEN, recorded
from bench.report import print_table, write_json
from bench.trust.ordinary import answers
from bench.trust.rounds import ROUNDS, anchors_of, cases, talks

LABELS: Final = Path(__file__).parent / "outdated.jsonl"
SETS: Final = ("open", "work-open")
VERSIONS: Final = ("summary-3", "summary-4")
Key = tuple[str, int, str]


class Judged(NamedTuple):
    """A reader's judgement of an anchor."""

    is_outdated: bool
    """Whether the anchor was untrue, settled or out of date by then."""
    by_lot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """An anchor whose message is a source of entries that were removed because of a later message."""

    fold: str
    anchor: FoundAnchor
    is_cited: bool
    """Whether the entries in their place name the anchor's message as a source again."""
    lost: frozenset[str]
    """The kinds of the anchor's values that the removed entries had and no later entry has."""
    gained: frozenset[str]
    """The kinds of the values that are new in the entries in their place."""

    @property
    def key(self) -> Key:
        """The key by which its judgement is found."""
        return self.fold, self.anchor.seq, self.anchor.content


RULES: Final[Mapping[str, Callable[[Marked], bool]]] = {
    "all of them": lambda _: True,
    "not cited again": lambda one: not one.is_cited,
    "a value is told no more": lambda one: bool(one.lost),
    "… and another of its kind is": lambda one: bool(one.lost & one.gained),
}


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors.outdated", description=__doc__)
    parser.parse_args()
    judged = read()
    found = {one.key: one for one in marked()}
    rows = [[name, *_counted([key for key, one in found.items() if rule(one)], judged)] for name, rule in RULES.items()]
    print_table(["marked as outdated", "anchors", "judged", "right", "share"], rows)
    print()
    named = [[version, *_claimed(version, judged)] for version in VERSIONS]
    print_table(["dropped under", "passages", "by a later message", "claimed to be over", "judged", "right"], named)
    each, changes = _days()
    print(f"\nThe day before each anchor: +{each:.0%} of their tokens; in a line where it changes: +{changes:.0%}")
    write_json("outdated", {"rules": rows, "dropped": named, "days": [each, changes]})
    return 0


def read() -> dict[Key, Judged]:
    """The judgements, by fold, position and words of the anchor."""
    rows = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    return {(row["fold"], row["seq"], row["text"]): Judged(row["outdated"], row["by_lot"]) for row in rows}


def marked() -> Iterator[Marked]:
    """The marked anchors of all recorded folds."""
    for case in cases():
        candidate = parse_candidate(case.answer, case.request.schema)
        yield from marked_in(case.id, case.request.previous, candidate, case.request.anchors)
    for number, answer in enumerate(chain.from_iterable(map(answers, SETS))):
        yield from marked_in(f"{answer.talk} {number}", answer.previous, answer.candidate, answer.anchors)


def marked_in(
    fold: str, previous: Sequence[StateEntry], candidate: Candidate, anchors: Sequence[FoundAnchor]
) -> Iterator[Marked]:
    """The marked anchors of one answer; ``previous`` are the state's entries before it."""
    gone = [entry for entry in previous if entry.id in _given_up(candidate)]
    stays = [entry.text for entry in previous if entry not in gone]
    after = _given([*stays, *(item.text for item in candidate.items), *candidate.narrative.values()])
    for anchor in anchors:
        entries = [entry for entry in gone if anchor.seq in entry.from_seqs]
        ids = {entry.id for entry in entries}
        items = [item for item in candidate.items if ids.intersection(item.replaces)]
        shown = [drop.by_seq for drop in candidate.dropped if drop.entry in ids and drop.by_seq]
        cited = {seq for item in items for seq in item.from_seqs}
        if anchor.seq < max([*cited, *shown], default=0):
            given_texts = _given([entry.text for entry in entries])
            lost = [one for one in values(anchor.content) if given_texts.sources(one) and not after.sources(one)]
            new = [one for item in items for one in values(item.text) if not given_texts.sources(one)]
            yield Marked(
                fold=fold,
                anchor=anchor,
                is_cited=anchor.seq in cited,
                lost=frozenset(one.kind for one in lost),
                gained=frozenset(one.kind for one in new),
            )


def _claimed(version: str, judged: Mapping[Key, Judged]) -> list[str]:
    """Counts of the passages that a version's answers drop as useless now, and of what becomes of these."""
    counts: Counter[str] = Counter()
    for case in recorded(version, list(cases()), WRITTEN).values():
        request, candidate = case.request, parse_candidate(case.answer, case.request.schema)
        messages = {message.seq: message for message in request.messages}
        ranking = ranking_of(candidate, request.anchors, request.messages, messages)
        over = {claim.anchor_id for claim in ranking.claims if claim.seq}
        known = anchors_by_prompt_id(request.anchors)
        for word in candidate.anchor_answers:
            if word.claims == "withdrawn" and (anchor := known.get(word.id)):
                label = judged.get((case.id, anchor.seq, anchor.content))
                counts["passages"] += 1
                counts["later"] += word.by_seq is not None and word.by_seq > anchor.seq
                counts["claimed"] += anchor.id in over
                counts["judged"] += label is not None
                counts["right"] += label is not None and label.is_outdated
    return [str(counts[name]) for name in ("passages", "later", "claimed", "judged", "right")]


def _days() -> tuple[float, float]:
    """The share that dates add to the lines of anchors at the end of the open talks.

    The first number is for a date on each line, the second for a date only where it changes.
    """
    weights: Counter[str] = Counter()
    for talk in (talk for talk in talks() if not talk.is_sealed):
        anchors = sorted(anchors_of(talk, talk.presets[0], ROUNDS), key=lambda one: (one.seq, one.offset))
        days = [f"{talk.messages[one.seq - 1].created_at:%Y-%m-%d}" for one in anchors]
        changed = [day for before, day in zip(["", *days], days, strict=False) if day != before]
        weights["anchors"] += sum(one.token_count for one in anchors)
        weights["each"] += sum(estimate_text(f", {day}") for day in days)
        weights["changes"] += sum(estimate_text(f"\n{day}:") for day in changed)
    return weights["each"] / weights["anchors"], weights["changes"] / weights["anchors"]


def _given_up(candidate: Candidate) -> frozenset[str]:
    replaced = {name for item in candidate.items for name in item.replaces}
    return frozenset(replaced | {drop.entry for drop in candidate.dropped})


def _given(texts: Sequence[str]) -> ValueIndex:
    given = ValueIndex()
    given.add(1, "\n".join(texts))
    return given


def _counted(found: Sequence[Key], judged: Mapping[Key, Judged]) -> list[str]:
    known = [judged[key] for key in found if key in judged]
    counted = known if len(known) == len(found) else [one for one in known if one.by_lot]
    right = sum(one.is_outdated for one in counted)
    return [str(len(found)), str(len(counted)), str(right), f"{100 * right / len(counted):.0f} %" if counted else "–"]


if __name__ == "__main__":
    sys.exit(main())
