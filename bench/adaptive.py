"""Compares adaptive thresholds with fixed ones, and with wider fixed ones, on recorded talks.

``python -m bench.adaptive [--seeds 1-4] [--write]`` plays the talks of ``../shared/data`` (or a generated one, if they
are missing) against the clock in a window of 16,000 tokens. People answer at once, after one minute or after twenty; a
summarizer takes 3, 12 or 45 seconds. All of it is drawn by seed, so that plays are paired. *Fixed* is ``semantic`` as
it is (0.70 and 0.60 of the budget), *wide* has the ends of the adaptive bounds as fixed numbers (0.80 and 0.40),
*adaptive* is ``semantic`` with ``adaptive: on``. The rule's own numbers were chosen with seed 0. Nothing of the data is
printed or kept.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.core.anchors.detect import detect
from app.core.context.drafts import outline_of
from app.core.model.conversation import Message
from bench import growth
from bench.adaptive_play import Play, Played, Recorded, Rhythm, numbered
from bench.measurements import write
from bench.recall_talks import replay_of, talks, with_long_answers
from bench.report import print_table, write_json
from bench.survival import DATA

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "experiments" / "adaptive.md"
DESK: Final = DATA.parents[1] / "tau_bench" / "airline.jsonl"
WINDOW: Final = 16_000
SYSTEM: Final = 900
"""Tokens of the system prompt of a talk that has none."""
RUNS: Final = 10
"""How many runs of an airline's desk, one after the other, make one talk."""
GAPS: Final = {"at once": 8.0, "a minute": 60.0, "20 minutes": 1_200.0}
SECONDS: Final = (3.0, 12.0, 45.0)
POLICIES: Final[Mapping[str, Mapping[str, object]]] = {
    "fixed": {},
    "wide": {"background_at": 0.80, "target": 0.40},
    "adaptive": {"adaptive": "on"},
}
MEASURES: Final[Mapping[str, Callable[[Played], float]]] = {
    "compactions": lambda played: played.compactions,
    "waits": lambda played: played.waits,
    "seconds waited": lambda played: played.waited,
    "rewrites": lambda played: played.rewrites,
    "cached tokens lost": lambda played: played.lost,
    "tokens sent": lambda played: played.sent,
    "cost": lambda played: played.cost,
    "word for word": lambda played: played.tail / max(played.requests, 1),
}
_SHOWN: Final = {
    "compactions": ".1f",
    "waits": ".1f",
    "seconds waited": ".0f",
    "rewrites": ".1f",
    "cached tokens lost": ",.0f",
    "tokens sent": ",.0f",
    "word for word": ",.0f",
}
_HEADERS: Final = ("talks", "answered", "summary", *_SHOWN, "cost, wide / adaptive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Results for talks of one kind under one rhythm and one policy.

    They are means over talks and seeds, and comparisons with the paired plays under fixed thresholds.
    """

    kind: str
    answered: str
    seconds: float
    policy: str
    plays: int
    means: Mapping[str, float]
    cost_ratio: float
    """The mean over pairs of the cost, divided by the cost under the fixed thresholds."""
    cost_margin: float
    """Half the width of the 95 % interval of ``cost_ratio``."""


def rows_of(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """One row for each kind of talk and rhythm, with all policies in the order of ``POLICIES``."""
    rhythms = dict.fromkeys((cell.kind, cell.answered, cell.seconds) for cell in cells)
    return [_row([cell for cell in cells if (cell.kind, cell.answered, cell.seconds) == rhythm]) for rhythm in rhythms]


def _row(some: Sequence[Cell]) -> tuple[str, ...]:
    def side_by_side(what: str, form: str) -> str:
        return " / ".join(format(cell.means[what], form) for cell in some)

    ratios = " / ".join(f"{cell.cost_ratio:.3f} ± {cell.cost_margin:.3f}" for cell in some if cell.policy != "fixed")
    first = some[0]
    named = (first.kind, first.answered, f"{first.seconds:g} s")
    return (*named, *(side_by_side(what, form) for what, form in _SHOWN.items()), ratios)


def recorded() -> list[Recorded]:
    """The talks: those of people, the same with long answers, and those of an agent with tools."""
    people = talks(DATA)
    if not people:
        return [_recorded("generated", "chat", SYSTEM, growth.talk(800))]
    found = [_recorded(talk.id, "chat", SYSTEM, replay_of(talk.messages).messages) for talk in people]
    long = (with_long_answers(talk) for talk in people)
    found += [_recorded(talk.id, "long answers", SYSTEM, replay_of(talk.messages).messages) for talk in long]
    return [*found, *_desks()]


def _desks() -> Iterator[Recorded]:
    if not DESK.exists():
        return
    runs = [json.loads(line)["messages"] for line in DESK.read_text(encoding="utf-8").splitlines() if line.strip()]
    for first in range(0, len(runs), RUNS):
        lines = [
            _apart(message, number)
            for number, run in enumerate(runs[first : first + RUNS])
            for message in run
            if message["role"] != "system"
        ]
        system = replay_of([one for one in runs[first] if one["role"] == "system"]).messages
        tokens = sum(one.token_count for one in system)
        yield _recorded(f"desk {first // RUNS}", "agent", tokens, replay_of(lines).messages)


def _apart(message: Mapping[str, Any], run: int) -> dict[str, Any]:
    """The message with call ids that no other run has."""
    names = ("id", "tool_call_id")
    parts = [
        {name: f"{run}:{value}" if name in names else value for name, value in part.items()}
        for part in message.get("parts") or ()
    ]
    return {**message, "parts": parts}


def _recorded(name: str, kind: str, system: int, messages: Sequence[Message]) -> Recorded:
    weighed = [
        replace(outline_of(one), is_protected=False, anchor_tokens=sum(anchor.token_count for anchor in detect(one)))
        for one in messages
    ]
    return Recorded(name=name, kind=kind, system_tokens=system, messages=numbered(weighed))


def cells_of(found: Sequence[Recorded], seeds: Sequence[int], *, window: int = WINDOW) -> list[Cell]:
    """The results of every kind of talk under every rhythm and policy."""
    made: list[Cell] = []
    for kind in dict.fromkeys(talk.kind for talk in found):
        some = [talk for talk in found if talk.kind == kind]
        for answered, gap in GAPS.items():
            for seconds in SECONDS:
                rhythm = Rhythm(gap=gap, compaction=seconds)
                made += _compared(some, rhythm, seeds, window, kind=kind, answered=answered)
    return made


def _compared(
    some: Sequence[Recorded], rhythm: Rhythm, seeds: Sequence[int], window: int, *, kind: str, answered: str
) -> Iterator[Cell]:
    pairs = [(talk, seed) for talk in some for seed in seeds]
    played = {
        name: [Play.of(talk, rhythm, window, seed, **policy).whole() for talk, seed in pairs]
        for name, policy in POLICIES.items()
    }
    for name, plays in played.items():
        ratios = [one.cost / fixed.cost for one, fixed in zip(plays, played["fixed"], strict=True)]
        yield Cell(
            kind=kind,
            answered=answered,
            seconds=rhythm.compaction,
            policy=name,
            plays=len(plays),
            means={what: statistics.fmean(map(of, plays)) for what, of in MEASURES.items()},
            cost_ratio=statistics.fmean(ratios),
            cost_margin=_margin(ratios),
        )


def _margin(values: Sequence[float]) -> float:
    return 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _seeds(words: str) -> range:
    first, _, last = words.partition("-")
    return range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_seeds, default=_seeds("1-4"), help="first and last")
    parser.add_argument("--write", action="store_true", help="put the table into docs/experiments/adaptive.md")
    asked = parser.parse_args(arguments)
    found = recorded()
    cells = cells_of(found, asked.seeds)
    rows = rows_of(cells)
    print_table(_HEADERS, rows)
    write_json("adaptive", {"seeds": list(asked.seeds), "window": WINDOW, "cells": [asdict(cell) for cell in cells]})
    if asked.write:
        rule = ["---"] * 3 + ["---:"] * (len(_HEADERS) - 3)
        lines = (_HEADERS, rule, *rows)
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        kinds = ", ".join(
            f"{sum(talk.kind == kind for talk in found)} of {kind}" for kind in dict.fromkeys(one.kind for one in found)
        )
        scope = f"{len(found)} talks ({kinds}), {len(asked.seeds)} seeds each; in each cell fixed / wide / adaptive."
        write("adaptive", f"{scope}\n\n{table}", PAGE)


if __name__ == "__main__":
    main()
