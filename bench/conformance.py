"""Runs the offline compactor under the compaction conformance kit: which planted statements are still served.

``python -m bench.conformance [--rounds 5] [--seeds 1-4] [--budgets 10%,20%,30%] [--write]`` compares the service's own
compaction (compress, gate, merge, anchors, block: the pure core, no database) with the kit's compactors, runs the kit's
corpus command, and exits with 1 when a type is flagged or falls off a cliff.

A conversation stays the same over the rounds, as it does in the service: the first round folds the whole session; a
later round has nothing new to fold, and nothing changes. ``--news`` makes rounds harder than the kit's own: before
each, the talk goes on (``NEWS``, with exact values that the kit does not know) and is folded again. The kit sees what
would be served: the block with its anchors, held messages, and tail. A leading system turn is the conversation's system
prompt, which is served as it is and not counted here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from compaction_kit import cli
from compaction_kit.benchmark import budget_benchmark_to_markdown, run_budget_benchmark
from compaction_kit.compacted import CompactedContext
from compaction_kit.corpus import build_random_session
from compaction_kit.report import build_report
from compaction_kit.runner import run_conformance
from compaction_kit.session import Turn

from app.core.model.conversation import Role
from app.core.model.records import FoldRequest
from app.core.state.apply import MIN_QUOTE_TOKENS, QUOTES_DIVISOR
from bench.measurements import write
from bench.replay import EVERYTHING, Replay

Fold = Callable[[Replay, FoldRequest], int]

NAME: Final = "throughline-offline"
DEFAULT_BUDGET: Final = (
    900  # tokens for state and anchors if the kit gives no budget: what a window of 4 000 gives them
)
ANCHORS: Final = 0.15  # share of the room, as ``anchor_share``; none if the state has no room for a line's marks
OWN: Final = 0.75  # share of the state's cap; the rest is for exact values that code brings back
WITHOUT_QUOTES: Final = QUOTES_DIVISOR * MIN_QUOTE_TOKENS - 1  # the largest cap of a state that code adds no quotes to
PINS: Final = 0.10  # share of the room: the default share for held messages
TRIES: Final = 8  # sizes that are tried to come as near to a budget in characters as tokens allow
CHARACTERS: Final = 4.2  # about so many characters per token of a block: the first size tried
NEWS: Final = (
    ("user", "The caterer for the summer party called: the buffet comes to {n},480 euros for {n}0 people."),
    ("assistant", "Thanks, I have written it down. Is there a date by which they need to hear from us?"),
    ("user", "Her number is +49 30 5550 11{n}, and she needs our answer by {n} May 2027."),
    ("assistant", "Understood. The party is in the courtyard of the old brewery, then, as we said last time?"),
    ("user", "It is. The band of our neighbour Ottokar plays from {n}:30 on, for {n}50 euros."),
    ("assistant", "That will be a long evening. I wonder whether the neighbours on the other side have been told."),
    ("user", "They have, I rang all of them up, and order {n}-KX-{n}07 for the chairs is out as well."),
    (
        "assistant",
        "Good. Then the chairs, the buffet and the band are done; only the weather is left.",
    ),
    ("user", "My aunt says it never rains on that day, and she has lived there since 19{n}1."),
    ("assistant", "I shall quote her if anybody asks. Shall we go back to the project now?"),
    ("user", "Yes, back to work."),
    ("assistant", "Acknowledged. Continuing with the plan."),
)
"""The messages between two rounds, with other values each time."""


class Offline:
    """Implements the kit's protocol for one conversation in memory."""

    name = NAME

    def __init__(self, news: Sequence[tuple[Role, str]] = (), fold: Fold = Replay.fold) -> None:
        self._news = news
        self._fold = fold
        self._talk: Replay | None = None

    def compact(self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None) -> CompactedContext:
        """Fold everything, within this many characters if the kit gives a budget."""
        before = self._continued(self._talk, round_num) if self._talk else self._begun(turns, budget_chars)
        if budget_chars is None:
            self._talk = self._folded(before, DEFAULT_BUDGET)
        else:
            self._talk = self._within(before, budget_chars)
        return CompactedContext(text=self._talk.served(), compactor_name=self.name, round_num=round_num)

    def _begun(self, turns: Sequence[Turn], budget_chars: int | None) -> Replay:
        budget = DEFAULT_BUDGET if budget_chars is None else int(budget_chars / CHARACTERS)
        talk = Replay.in_window(1_000_000)
        talk.budgets = replace(talk.budgets, pin_tokens=int(PINS * budget))
        spoken = turns[1:] if turns and turns[0].role == "system" else turns
        for turn in spoken:
            talk.say(turn.role, turn.text)
        return talk

    def _continued(self, before: Replay, round_num: int) -> Replay:
        talk = deepcopy(before)
        for role, text in self._news:
            talk.say(role, text.format(n=10 + round_num))
        return talk

    def _within(self, before: Replay, budget_chars: int) -> Replay:
        """The largest of the tried blocks that fits into this many characters, or the smallest if none fits."""
        budget, tried = budget_chars / CHARACTERS, []
        most = WITHOUT_QUOTES if budget < WITHOUT_QUOTES else budget * 2
        for _ in range(TRIES):
            after = self._folded(before, int(budget))
            tried.append(after)
            budget = min(budget * 0.99 * budget_chars / max(len(after.served()), 1), most)
        fitting = [talk for talk in tried if len(talk.served()) <= budget_chars]
        return (
            max(fitting, key=lambda talk: len(talk.served()))
            if fitting
            else min(tried, key=lambda talk: len(talk.served()))
        )

    def _folded(self, before: Replay, budget: int) -> Replay:
        talk = deepcopy(before)
        anchors = 0 if budget <= WITHOUT_QUOTES else int(ANCHORS * budget)
        cap = budget - anchors
        own = cap if cap <= WITHOUT_QUOTES else int(OWN * cap)
        talk.budgets = replace(talk.budgets, state_tokens=own, state_cap=cap, anchor_tokens=anchors)
        self._fold(talk, EVERYTHING)
        return talk


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The kit's judgement of one session at one budget."""

    budget: float | None
    seed: int
    curves: dict[str, list[float]]
    """The share that survives of each type, round by round."""
    flagged: tuple[str, ...]
    cliffs: tuple[str, ...]
    within_budget: bool


def judged(compactor: Callable[[], Offline], *, budget: float | None, seed: int, rounds: int) -> Verdict:
    """The verdict on one randomized session of the kit."""
    session, canaries = build_random_session(seed)
    run = run_conformance(session, compactor(), rounds=rounds, canaries=canaries, budget_fraction=budget)
    report = build_report(run, canaries=canaries, session=session)
    return Verdict(
        budget=budget,
        seed=seed,
        curves={finding.canary_type: finding.curve for finding in report.findings},
        flagged=tuple(report.flagged_types),
        cliffs=tuple(report.cliff_types),
        within_budget=all(result.within_budget for result in run.rounds),
    )


def verdicts_table(verdicts: Sequence[Verdict]) -> str:
    """For each budget, the least share of each type that survived in any round and seed, and what was flagged."""
    types = list(verdicts[0].curves)
    lines = ["| budget | " + " | ".join(types) + " | flagged | cliffs |", "|---|" + "---:|" * len(types) + "---|---|"]
    for budget in dict.fromkeys(verdict.budget for verdict in verdicts):
        some = [verdict for verdict in verdicts if verdict.budget == budget]
        least = [min(min(verdict.curves[type_]) for verdict in some) for type_ in types]
        flagged = sorted({type_ for verdict in some for type_ in verdict.flagged})
        cliffs = sorted({type_ for verdict in some for type_ in verdict.cliffs})
        name = "none" if budget is None else f"{budget:.0%}"
        cells = [name, *(f"{value:.0%}" for value in least), ", ".join(flagged) or "none", ", ".join(cliffs) or "none"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def corpus(seeds: str, rounds: int, *, generated: bool) -> dict[str, Any]:
    """Run the kit's corpus command with the offline compactor added; return medians by type."""
    cli.COMPACTORS[NAME] = Offline
    output = io.StringIO()
    kind = ["--generated"] if generated else []
    with contextlib.redirect_stdout(output):
        cli.main(["corpus", "--compactor", NAME, "--seeds", seeds, "--rounds", str(rounds), *kind])
    result: dict[str, Any] = json.loads(output.getvalue())["by_compactor"][NAME]
    return result


def corpus_table(seeds: str, rounds: int) -> str:
    """A table of the kit's two corpora without a budget: median survival in the first and last round, and updates."""
    lines = ["| corpus | type | first round | last round |", "|---|---|---:|---:|"]
    for generated in (False, True):
        found = corpus(seeds, rounds, generated=generated)
        first, last = found["round1_median_by_type"], found["final_median_by_type"]
        name = "generated" if generated else "randomized"
        lines += [f"| {name} | {type_} | {first[type_]:.0%} | {last[type_]:.0%} |" for type_ in first]
        updates = list(found["supersession"].values())
        both = sum(one["latest"] for one in updates), sum(one["n"] for one in updates)
        stale = sum(one["stale"] for one in updates)
        lines.append(f"| {name} | updated values: latest held | | {both[0]}/{both[1]} (stale beside it: {stale}) |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a type is flagged, falls off a cliff, or a budget is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m bench.conformance", description="The conformance kit on ours.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", default="1-4", help="e.g. 1-4 or 1,3,5")
    parser.add_argument("--budgets", default="10%,20%,30%")
    parser.add_argument("--news", action="store_true", help="let the talk go on between the rounds")
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    asked = parser.parse_args(arguments)
    seeds, budgets = cli._parse_seeds(asked.seeds), cli._parse_budgets(asked.budgets)  # noqa: SLF001 - as the kit reads them
    ours = partial(Offline, news=NEWS if asked.news else ())
    verdicts = [
        judged(ours, budget=budget, seed=seed, rounds=asked.rounds) for budget in [*budgets, None] for seed in seeds
    ]
    text = verdicts_table(verdicts)
    print(text)
    if not asked.news:
        board = run_budget_benchmark({**cli.COMPACTORS, NAME: ours}, budgets=budgets, seeds=seeds, rounds=asked.rounds)
        leaders = budget_benchmark_to_markdown(board).partition("\n## ")
        text = "\n\n".join(
            [text, corpus_table(asked.seeds, asked.rounds), "### " + leaders[2].replace("\n## ", "\n### ")]
        )
        print(text)
    if asked.write:
        write("conformance-news" if asked.news else "conformance", text)
    failed = any(verdict.flagged or verdict.cliffs or not verdict.within_budget for verdict in verdicts)
    return int(failed and not asked.news)


if __name__ == "__main__":
    sys.exit(main())
