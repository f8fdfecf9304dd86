"""Tests whether a compaction's continuity score follows what was really lost or falsified.

``python -m bench.continuity [--draws 4] [--write]`` plants losses that do not depend on the probes. From each state
block a share drawn by seed is removed, statement by statement (entries, sentences of narratives, lines of anchors and
digests), and recorded lies of the open half of ``bench/trust`` replace honest items. It prints

* the correlation (Pearson, Spearman) across conversations between the share that was removed and the recall that was
  lost, by kind of probe: for states of the offline model, and for states of recorded models;
* the correlation between the share of a talk's statements that was falsified and the share of answers that are lost or
  contradicted, for all lies and by what they are about; and which kinds of lies are noticed at all;
* controls: the scores of other trials (shuffled), and probes of another talk asked of this talk's states;
* where people asked questions about a talk, the correlation of the score with the words of their answers that are left;
* the processor time of probes and answers.

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
from app.core.model.continuity import PROBE_KINDS, Continuity
from app.core.model.conversation import Layout
from app.core.text.sentences import sentences
from app.core.text.words import stems
from bench import measurements
from bench.recall_talks import Talk, replay_of, talks
from bench.report import write_json
from bench.survival import DATA
from bench.trust.lies import Lie, kind_of, lies_of_case
from bench.trust.playing import played
from bench.trust.rounds import Case, cases

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "continuity.md"
MADE: Final = Path(__file__).with_name("made_talks")
AIRLINE: Final = DATA.parents[1] / "tau_bench" / "airline.jsonl"
FOLDED: Final = 150
"""Messages of a talk that are folded; the others are its tail, whose newest part is looked at."""
OFFLINE: Final = "offline model"
RECORDED: Final = "recorded models"
MIN_PROBES: Final = 8
"""The fewest probes of a conversation: with fewer the score cannot be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A stretch of messages with its probes, and the honest state block that replaced it."""

    talk: str
    exam: Exam
    state: Mapping[str, Any]
    layout: Layout
    answers: tuple[frozenset[str], ...] = ()
    """The words of people's answers to questions about the stretch."""
    case: Case | None = None
    """The recorded answer that it comes from."""
    seconds: float = 0.0
    """Processor time of making the probes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One conversation with a planted loss: the loss, and the score."""

    talk: str
    planted: float
    lost: float
    """The share of the honest state's recall that is lost: 0–1."""
    recall: float
    by_kind: Mapping[str, float]
    """``lost`` by kind of probe."""
    stranger: float
    """The share of another talk's probes that this state answers."""
    words: float | None
    """The share of the words of people's answers that is left; ``None`` without questions."""


def folded_talk(talk: Talk) -> Folded | None:
    """The beginning of a talk, folded by the offline model."""
    count = min(len(talk.messages) - 1, FOLDED)
    whole, line = replay_of(talk.messages), replay_of(talk.messages[:count], fold=True)
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
    """A recorded answer of a model, as the service would serve it, with the probes of its stretch."""
    outcome = played(case)
    if outcome.applied is None:
        return None
    began = time.process_time()
    exam = Exam(case.request.messages, anchors=case.request.anchors)
    spent = time.process_time() - began
    state, layout = outcome.applied.state, replace(outcome.applied.layout, held=())
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
    """Trials of each conversation with ``draws`` planted losses, from none to all."""
    every = list(found)
    for number, one in enumerate(every):
        draw = random.Random(f"{seed} {one.talk}")
        honest = one.exam.compare(one.state, one.layout).continuity
        if honest.total.before < MIN_PROBES or not honest.total.after:
            continue
        strangers = every[(number + len(every) // 2) % len(every)].exam.probes
        for _ in range(draws):
            planted, state, layout = removed(one, draw.random(), draw)
            score = one.exam.compare(state, layout).continuity
            other = one.exam.compare(state, layout, probes=strangers).continuity
            stems_kept = frozenset(stems(f"{json.dumps(state, ensure_ascii=False)} {layout.anchors}"))
            words = [len(answer & stems_kept) / len(answer) for answer in one.answers]
            yield Trial(
                talk=one.talk,
                planted=planted,
                lost=_lost(honest, score) or 0.0,
                recall=score.recall or 0.0,
                by_kind=_by_kind(honest, score),
                stranger=other.recall or 0.0,
                words=statistics.fmean(words) if words else None,
            )


def _lost(honest: Continuity, score: Continuity) -> float | None:
    return 1 - score.total.after / honest.total.after if honest.total.after else None


def _by_kind(honest: Continuity, score: Continuity) -> dict[str, float]:
    return {kind: 1 - score.kinds[kind].after / one.after for kind, one in honest.kinds.items() if one.after}


def pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Linear correlation; ``None`` for fewer than five pairs, or if one side is constant."""
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
    """One talk whose states have some of its lies of one group."""

    planted: float
    """The share of the statements of its states that are falsified."""
    noticed: float
    """The share of the probes whose answers are lost or contradicted, compared with the honest states."""


EVERY: Final = "all lies"
VALUES: Final = "values (numbers, days, outdated ones)"
PEOPLE: Final = "people (swapped, wrongly attributed)"
OTHERS: Final = "others (invented, done instead of planned, negated, orders)"


def group_of(lie: Lie) -> str:
    """The group of a lie: what it falsifies."""
    if lie["kind"] in {"wrong_number", "wrong_date", "old_value"}:
        return VALUES
    return PEOPLE if lie["kind"] in {"swapped_person", "wrong_attribution"} else OTHERS


def lying(found: Sequence[Folded], draws: int, seed: int = 1) -> dict[str, list[Lied]]:
    """Talks with a share of their lies planted, by group of lies."""
    by_talk: dict[str, list[Folded]] = defaultdict(list)
    for one in found:
        by_talk[one.talk.partition("/")[0]].append(one)
    rows: dict[str, list[Lied]] = defaultdict(list)
    for talk, ones in by_talk.items():
        draw = random.Random(f"{seed} {talk}")
        for group in (EVERY, VALUES, PEOPLE, OTHERS):
            rows[group] += [_lied(ones, group, draw.random(), draw) for _ in range(draws)]
    return rows


def _lied(ones: Sequence[Folded], group: str, share: float, draw: random.Random) -> Lied:
    statements = planted = noticed = probes = 0
    for one in ones:
        state = one.state
        for lie in lies_of_case(one.case) if one.case else ():
            falsified = state_with_lie(replace(one, state=state), lie) if group in {EVERY, group_of(lie)} else None
            if falsified is not None and draw.random() < share:
                planted, state = planted + 1, falsified
        statements += sum(
            len(sentences(value)) if isinstance(value, str) else len(value) for value in one.state.values()
        )
        probes += len(one.exam.probes)
        if state is not one.state:
            honest, false = (
                one.exam.compare(state_served, one.layout).continuity.total for state_served in (one.state, state)
            )
            noticed += (honest.after - honest.contradicted) - (false.after - false.contradicted)
    return Lied(planted=planted / max(statements, 1), noticed=noticed / max(probes, 1))


def seen(found: Sequence[Folded]) -> dict[str, tuple[int, int, int]]:
    """For each kind of lie, planted one at a time: how many, how many are contradicted, how many lower the recall."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in found:
        honest = one.exam.compare(one.state, one.layout).continuity.total
        for lie in lies_of_case(one.case) if one.case else ():
            if (state := state_with_lie(one, lie)) is not None:
                total = one.exam.compare(state, one.layout).continuity.total
                count = counts[kind_of(lie)]
                count[0] += 1
                count[1] += total.contradicted > honest.contradicted
                count[2] += total.after < honest.after
    return {kind: (count[0], count[1], count[2]) for kind, count in sorted(counts.items())}


def lies_table(found: Sequence[Folded], draws: int) -> str:
    """A table of the correlation by group of lies, and of how many lies of each kind are noticed."""
    lines = ["| lies about | Pearson | Spearman |", "|---|---:|---:|"]
    for group, rows in lying(found, draws).items():
        pairs = [(one.planted, one.noticed) for one in rows]
        lines.append(f"| {group} | {_cell(pearson(pairs))} | {_cell(spearman(pairs))} |")
        if group == EVERY:
            others = [one.noticed for one in rows]
            random.Random(1).shuffle(others)
            pairs = [(one.planted, other) for one, other in zip(rows, others, strict=True)]
            lines.append(
                f"| control: scores shuffled among the talks | {_cell(pearson(pairs))} | {_cell(spearman(pairs))} |"
            )
    lines += ["", "| kind of lie | planted, one at a time | contradicted | recall lower |", "|---|---:|---:|---:|"]
    lines += [f"| {kind} | {' | '.join(map(str, counts))} |" for kind, counts in seen(found).items()]
    return "\n".join(lines)


def cost_table(groups: Mapping[str, Sequence[Folded]]) -> str:
    """A table of processor times."""
    lines = ["| | probes made: median | most | answered: median | most |", "|---|---:|---:|---:|---:|"]
    for name, ones in groups.items():
        cells = []
        for took in (sorted(one.seconds for one in ones), sorted(map(answering_seconds, ones))):
            cells += [f"{1_000 * statistics.median(took):.0f} ms", f"{1_000 * took[-1]:.0f} ms"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def answering_seconds(one: Folded) -> float:
    """The processor time of asking a state all probes."""
    began = time.process_time()
    one.exam.compare(one.state, one.layout)
    return time.process_time() - began


def state_with_lie(one: Folded, lie: Lie) -> Mapping[str, Any] | None:
    """The state with this lie in place of the honest text; ``None`` if the state does not have that text."""
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
    """A table by group: all probes, each kind of probe, the controls."""
    names: list[tuple[str, Callable[[Trial], float | None]]] = [
        ("all probes", lambda one: one.lost),
        ("recall itself, not beside the honest state's", lambda one: 1 - one.recall),
        *((f"`{kind}`", lambda one, kind=kind: one.by_kind.get(kind)) for kind in PROBE_KINDS),
    ]
    lines = ["| | " + " | ".join(f"{name}: Pearson | Spearman" for name in groups) + " |"]
    lines.append("|---|" + "---:|" * (2 * len(groups)))
    for name, value in names:
        cells = []
        for rows in groups.values():
            pairs = [(one.planted, found) for one in rows if (found := value(one)) is not None]
            cells += [_cell(pearson(pairs)), _cell(spearman(pairs))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    shuffled, strangers = [], []
    for rows in groups.values():
        draw = random.Random(1)
        others = [one.lost for one in rows]
        draw.shuffle(others)
        pairs = list(zip((one.planted for one in rows), others, strict=True))
        shuffled += [_cell(pearson(pairs)), _cell(spearman(pairs))]
        pairs = [(one.planted, 1 - one.stranger) for one in rows]
        strangers += [_cell(pearson(pairs)), _cell(spearman(pairs))]
    lines.append(f"| control: scores shuffled among the trials | {' | '.join(shuffled)} |")
    lines.append(f"| control: probes of another talk | {' | '.join(strangers)} |")
    counts = (
        f"{name}: {len({one.talk for one in rows})} stretches, {len(rows)} losses" for name, rows in groups.items()
    )
    levels = [
        f"{name}: {100 * statistics.fmean(one.recall for one in rows):.0f} % of its own probes answered, "
        f"{100 * statistics.fmean(one.stranger for one in rows):.1f} % of another talk's"
        for name, rows in groups.items()
    ]
    people = [(one.recall, one.words) for one in groups[OFFLINE] if one.words is not None]
    asked = f"Recall against the words of people's answers: {_cell(pearson(people))}, {_cell(spearman(people))}."
    return "\n".join([*lines, "", "; ".join(counts) + ".", "; ".join(levels) + ".", asked])


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the tables into ``docs/continuity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.continuity", description="Whether the score follows losses.")
    parser.add_argument("--draws", type=int, default=4, help="planted losses per conversation")
    parser.add_argument("--write", action="store_true", help="into docs/continuity.md")
    asked = parser.parse_args(arguments)
    files = [path for path in (DATA, AIRLINE, *sorted(MADE.glob("*.jsonl"))) if path.exists()]
    offline = [one for path in files for talk in talks(path) if (one := folded_talk(talk))]
    recorded = [one for case in cases() if (one := folded_case(case))]
    folded = {OFFLINE: offline, RECORDED: recorded}
    cost = cost_table(folded)
    groups = {name: list(trials(ones, asked.draws)) for name, ones in folded.items()}
    tables = {"losses": correlation_table(groups), "lies": lies_table(recorded, asked.draws), "cost": cost}
    for name, text in tables.items():
        print(f"\n## {name}\n\n{text}")
        if asked.write:
            measurements.write(name, text, PAGE)
    pairs = {name: [(one.planted, one.lost) for one in rows] for name, rows in groups.items()}
    figures = {name: {"pearson": pearson(both), "spearman": spearman(both)} for name, both in pairs.items()}
    write_json("continuity", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
