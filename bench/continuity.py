"""Continuity: whether the score of a compaction follows what was really lost, or falsified.

``python -m bench.continuity [--draws 4] [--write]`` plants losses that know nothing of the probes: of each state block
a share drawn by seed is removed, statement by statement (entries, sentences of narratives, lines of anchors and
digests), and recorded lies of the open half of ``bench/trust`` are put in the place of honest items. Printed are

* the correlation (Pearson, Spearman) across conversations between the share that was removed and the recall that was
  lost, of states that the offline model and of states that recorded models wrote; by kind of probe;
* the same for the share of lies planted and the contradiction found, and which kinds of lies are seen at all;
* controls: probes of another conversation, and probes whose answers were exchanged among themselves;
* where people asked questions about a talk, the correlation of the score with the words of their answers that are left;
* what probes and answers cost in processor time.

Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.core.continuity.comparing import Exam
from app.core.continuity.probes import Probe
from app.core.model.continuity import PROBE_KINDS, Continuity
from app.core.model.conversation import Layout
from app.core.text.sentences import sentences
from app.core.text.words import stems
from bench.recall_talks import Talk, said, talks
from bench.survival import DATA
from bench.trust.lies import Lie, kind_of, lies_of_case
from bench.trust.playing import played
from bench.trust.rounds import Case, cases

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "continuity.md"
MADE: Final = Path(__file__).with_name("made_talks")
AIRLINE: Final = DATA.parents[1] / "tau_bench" / "airline.jsonl"
FOLDED: Final = 150
"""Messages of a talk that are folded; the rest is its tail, of which the newest part is looked at."""
LEAST: Final = 8
"""Probes: a conversation with fewer is none to judge a score by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A stretch with its probes, and the honest state block that took its place."""

    talk: str
    exam: Exam
    state: Mapping[str, Any]
    layout: Layout
    answers: tuple[frozenset[str], ...] = ()
    """The words of what people answer to questions about the stretch."""
    case: Case | None = None
    """The recorded answer that it comes from."""
    seconds: float = 0.0
    """Processor time of making the probes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One conversation with a planted loss: what was planted, and what the score says."""

    talk: str
    planted: float
    lost: float
    """Of the recall of the honest state, the part that is gone: 0–1."""
    recall: float
    by_kind: Mapping[str, float]
    """The same as ``lost``, by kind."""
    shuffled: float | None
    """The same with the answers exchanged; ``None`` where those are never answered."""
    words: float | None
    """Of people's answers, the share of words that is left; ``None`` without questions."""


def folded_talk(talk: Talk) -> Folded | None:
    """The beginning of a talk, folded by the offline model."""
    count = min(len(talk.messages) - 1, FOLDED)
    whole, line = said(talk.messages), said(talk.messages[:count], fold=True)
    if line.layout is None:
        return None
    began = time.process_time()
    active = [anchor for anchor in whole.anchors if anchor.status == "active"]
    exam = Exam(whole.messages[:count], later=whole.messages[count:], anchors=active)
    asked = [one for one in talk.questions if max(one.evidence) <= count and one.answer]
    return Folded(
        talk=talk.id,
        exam=exam,
        state=json.loads(line.layout.text),
        layout=replace(line.layout, held=()),
        answers=tuple(found for one in asked if (found := frozenset(stems(one.answer)))),
        seconds=time.process_time() - began,
    )


def folded_case(case: Case) -> Folded | None:
    """A recorded answer of a model, as the service would serve it."""
    told = played(case)
    if told.applied is None:
        return None
    began = time.process_time()
    exam = Exam(case.request.messages, anchors=case.request.anchors)
    spent = time.process_time() - began
    state, layout = told.applied.state, replace(told.applied.layout, held=())
    return Folded(talk=case.id, exam=exam, state=state, layout=layout, case=case, seconds=spent)


def removed(one: Folded, share: float, draw: random.Random) -> tuple[float, Mapping[str, Any], Layout]:
    """The block without about that share of its statements, and the share of its characters that is gone."""
    total = gone = 0

    def kept(texts: Sequence[str]) -> list[str]:
        nonlocal total, gone
        left = []
        for text in texts:
            total += len(text)
            if draw.random() < share:
                gone += len(text)
            else:
                left.append(text)
        return left

    state = {
        name: " ".join(kept(sentences(value))) if isinstance(value, str) else kept(value)
        for name, value in one.state.items()
    }
    layout = replace(
        one.layout,
        anchors="\n".join(kept(one.layout.anchors.splitlines())),
        digests="\n".join(kept(one.layout.digests.splitlines())),
    )
    return gone / max(total, 1), state, layout


def trials(found: Iterable[Folded], draws: int, seed: int = 1) -> Iterator[Trial]:
    """Each conversation with as many planted losses, from none to all."""
    for one in found:
        draw = random.Random(f"{seed} {one.talk}")
        honest = one.exam.compare(one.state, one.layout).continuity
        if honest.total.before < LEAST or not honest.total.after:
            continue
        mixed = exchanged(one.exam.probes, draw)
        honest_mixed = one.exam.compare(one.state, one.layout, probes=mixed).continuity
        for _ in range(draws):
            planted, state, layout = removed(one, draw.random(), draw)
            score = one.exam.compare(state, layout).continuity
            other = one.exam.compare(state, layout, probes=mixed).continuity
            told = frozenset(stems(f"{json.dumps(state, ensure_ascii=False)} {layout.anchors}"))
            words = [len(answer & told) / len(answer) for answer in one.answers]
            yield Trial(
                talk=one.talk,
                planted=planted,
                lost=_lost(honest, score) or 0.0,
                recall=score.recall or 0.0,
                by_kind=_by_kind(honest, score),
                shuffled=_lost(honest_mixed, other),
                words=statistics.fmean(words) if words else None,
            )


def exchanged(probes: Sequence[Probe], draw: random.Random) -> tuple[Probe, ...]:
    """The probes, each with the answer of another of its kind; those that have no answer of their own left out."""
    found: list[Probe] = []
    for kind in ("value", "when", "who"):
        own = [probe for probe in probes if probe.kind == kind]
        others = own.copy()
        draw.shuffle(others)
        found += [replace(probe, value=other.value, name=other.name) for probe, other in zip(own, others, strict=True)]
    return tuple(found)


def _lost(honest: Continuity, score: Continuity) -> float | None:
    return 1 - score.total.after / honest.total.after if honest.total.after else None


def _by_kind(honest: Continuity, score: Continuity) -> dict[str, float]:
    return {kind: 1 - score.kinds[kind].after / one.after for kind, one in honest.kinds.items() if one.after}


def pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Linear correlation; ``None`` of fewer than five pairs, or where one side never changes."""
    if len(pairs) < 5 or any(len({pair[side] for pair in pairs}) == 1 for side in (0, 1)):
        return None
    return statistics.correlation([one for one, _ in pairs], [other for _, other in pairs])


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Correlation of ranks."""
    first, second = zip(*pairs, strict=True) if pairs else ((), ())
    return pearson(list(zip(_ranks(first), _ranks(second), strict=True)))


def _ranks(values: Sequence[float]) -> list[float]:
    places: dict[float, list[int]] = defaultdict(list)
    for place, value in enumerate(sorted(values)):
        places[value].append(place)
    return [statistics.fmean(places[value]) for value in values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lied:
    """One conversation with lies in its states."""

    talk: str
    planted: float
    """Lies ÷ items."""
    contradiction: float


def lying(found: Sequence[Folded], draws: int, seed: int = 1) -> tuple[list[Lied], dict[str, tuple[int, int, int]]]:
    """(conversations with lies by share, per kind of lie: planted, contradicted, recall lower)."""
    by_talk: dict[str, list[Folded]] = defaultdict(list)
    seen: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in found:
        if one.case is not None:
            by_talk[one.case.talk.id].append(one)
            honest = one.exam.compare(one.state, one.layout).continuity.total
            for lie in lies_of_case(one.case):
                if (state := told_falsely(one, lie)) is not None:
                    total = one.exam.compare(state, one.layout).continuity.total
                    counts = seen[kind_of(lie)]
                    counts[0] += 1
                    counts[1] += total.contradicted > honest.contradicted
                    counts[2] += total.after < honest.after
    rows = []
    for talk, ones in by_talk.items():
        draw = random.Random(f"{seed} {talk}")
        rows += [_lied(talk, ones, draw.random(), draw) for _ in range(draws)]
    return rows, {kind: (counts[0], counts[1], counts[2]) for kind, counts in seen.items()}


def _lied(talk: str, ones: Sequence[Folded], share: float, draw: random.Random) -> Lied:
    planted, total = 0, Continuity()
    for one in ones:
        for lie in lies_of_case(one.case) if one.case else ():
            state = told_falsely(one, lie) if draw.random() < share else None
            planted += state is not None
            one = replace(one, state=state or one.state)  # noqa: PLW2901 - lies add up
        total = total.plus(one.exam.compare(one.state, one.layout).continuity)
    return Lied(talk=talk, planted=planted, contradiction=total.contradiction or 0.0)


def told_falsely(one: Folded, lie: Lie) -> Mapping[str, Any] | None:
    """The state with this lie in the place of the honest text; ``None`` where that does not stand in it."""
    field, index, case = str(lie.get("field")), lie.get("index"), one.case
    if case is None or "text" not in lie or field not in one.state:
        return None
    value = one.state[field]
    false = " ".join(str(lie["text"]).split())
    if isinstance(value, str):
        return {**one.state, field: false}
    if index == -1:
        return {**one.state, field: [*value, false]}
    honest = json.loads(case.answer)[field][index]
    text = " ".join(str(honest["text"] if isinstance(honest, dict) else honest).split())
    if text not in value:
        return None
    return {**one.state, field: [false if item == text else item for item in value]}


def correlation_table(groups: Mapping[str, Sequence[Trial]]) -> str:
    """By group: all probes, each kind, the controls."""
    names: list[tuple[str, Callable[[Trial], float | None]]] = [
        ("all probes", lambda one: one.lost),
        ("recall itself, not beside the honest state's", lambda one: 1 - one.recall),
        *((f"`{kind}`", lambda one, kind=kind: one.by_kind.get(kind)) for kind in PROBE_KINDS),
        ("control: answers exchanged", lambda one: one.shuffled),
    ]
    lines = ["| | " + " | ".join(f"{name}: Pearson | Spearman" for name in groups) + " |"]
    lines.append("|---|" + "---:|" * (2 * len(groups)))
    for name, value in names:
        cells = []
        for rows in groups.values():
            pairs = [(one.planted, found) for one in rows if (found := value(one)) is not None]
            cells += [_cell(pearson(pairs)), _cell(spearman(pairs))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    strangers = []
    for rows in groups.values():
        pairs = [(one.planted, other.lost) for one, other in zip(rows, [*rows[1:], *rows[:1]], strict=True)]
        strangers += [_cell(pearson(pairs)), _cell(spearman(pairs))]
    return "\n".join([*lines, f"| control: the score of another trial | {' | '.join(strangers)} |"])


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the tables into ``docs/continuity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.continuity", description="Whether the score follows losses.")
    parser.add_argument("--draws", type=int, default=4, help="planted losses per conversation")
    parser.add_argument("--write", action="store_true", help="into docs/continuity.md")
    asked = parser.parse_args(arguments)
    files = [DATA, AIRLINE, *sorted(MADE.glob("*.jsonl"))]
    offline = [one for path in files for talk in talks(path) if (one := folded_talk(talk))]
    recorded = [one for case in cases() if (one := folded_case(case))]
    groups = {
        "offline": list(trials(offline, asked.draws)),
        "recorded models": list(trials(recorded, asked.draws)),
    }
    for name, rows in groups.items():
        print(name, len({one.talk for one in rows}), "conversations", len(rows), "trials")
    print(correlation_table(groups))
    people = [(one.recall, one.words) for one in groups["offline"] if one.words is not None]
    print("people's answers:", len(people), _cell(pearson(people)), _cell(spearman(people)))
    lied, seen = lying(recorded, asked.draws)
    pairs = [(one.planted, one.contradiction) for one in lied]
    print("lies:", len(pairs), _cell(pearson(pairs)), _cell(spearman(pairs)))
    for kind, counts in sorted(seen.items()):
        print(kind, counts)
    for name, ones in (("offline", offline), ("recorded", recorded)):
        took = sorted(one.seconds for one in ones)
        print(name, "exam s: median", f"{statistics.median(took):.3f}", "most", f"{took[-1]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
