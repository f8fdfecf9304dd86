"""Measures fidelity on talks of other kinds than recall was fitted on: made up, since no real ones may be kept here.

``python -m bench.fidelity_made [--write]`` reads ``bench/made_talks`` and prints evidence recall by talk, for all
questions and for those that nobody looks at while working on recall (the even-numbered ones), compared with BM25's
selection of whole messages of the same size. "Packing alone" is recall without the rest of a context: in talks this
short the state and the lines around it take more room than in real ones. Questions that ask for a summary or an order
of events (``broad.json``) are counted separately, with and without the state.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.core.retrieval.question_completion import completed_question
from bench import measurements
from bench.fidelity import PAGE, broad_table
from bench.fidelity_measures import OURS, SHARES, Conversation, Served, corpus_of_conversation
from bench.ranking import choose
from bench.recall_baselines import Baselines
from bench.recall_talks import Talk, TalkQuestion, talks
from bench.report import write_json

FOLDER: Final = Path(__file__).resolve().parent / "made_talks"
BROAD: Final = FOLDER / "broad.json"
"""The file with the questions of each talk that no single message answers."""
ALONE: Final = "packing alone"
BM25: Final = "BM25"
MAX_SHARE: Final = 0.9
"""The share of the tokens that recall may take, as in the service."""

Found = dict[str, list[tuple[bool, ...]]]
"""For each method and question, whether all evidence of the question is served at each share."""


def found_in(talk: Talk) -> Found:
    """Which evidence of one talk is served, by method."""
    whole, by_words = Conversation(talk), Baselines(talk.texts).all()[BM25]
    corpus = corpus_of_conversation(whole)
    rooms = [math.floor(share * talk.tokens) for share in SHARES]

    def packed(asked: TalkQuestion, budget: int) -> bool:
        question = completed_question(asked.text, corpus)
        chosen = {
            one.source.seq for one in choose(corpus, question, room=math.floor(MAX_SHARE * budget)) if not one.excerpt
        }
        return chosen.issuperset(asked.evidence)

    def served(asked: TalkQuestion, budget: int) -> bool:
        served_text = whole.served_text(asked.text, budget)
        return all(talk.texts[seq - 1] in served_text for seq in asked.evidence)

    def selected(asked: TalkQuestion, budget: int) -> bool:
        return by_words(asked.text, budget).issuperset(asked.evidence)

    ways = {OURS: served, ALONE: packed, BM25: selected}
    return {
        name: [tuple(serves(asked, room) for room in rooms) for asked in talk.questions]
        for name, serves in ways.items()
    }


def asking_broadly(talk: Talk) -> Talk:
    """The talk with its questions that ask for a summary or an order of events instead of the others."""
    rows = json.loads(BROAD.read_text(encoding="utf-8")).get(talk.id, [])
    questions = (
        TalkQuestion(text=row["question"], answer=row["answer"], evidence=tuple(row["evidence"]), category="broad")
        for row in rows
    )
    return replace(talk, questions=tuple(questions))


def broadly(given: Sequence[Talk]) -> Iterator[Served]:
    """What is served for the questions of such talks, with the state and without it."""
    for talk in map(asking_broadly, given):
        yield from Conversation(talk).served()


def table(found: Sequence[tuple[Talk, Found]]) -> str:
    """A table with a line for each talk and method: all questions, and the unseen ones."""
    head = " | ".join(f"{share:.0%}".replace("%", " %") for share in SHARES)
    lines = [f"| | tokens | questions | {head} |", f"|---|---:|---:|{'---:|' * len(SHARES)}"]
    for talk, by_method in found:
        for name, rows in by_method.items():
            lines.append(_line(f"{talk.id}: {name}", talk.tokens, rows))
        lines.append(_line(f"{talk.id}: {OURS}, unseen questions", talk.tokens, by_method[OURS][1::2]))
    return "\n".join(lines)


def figures(found: Sequence[tuple[Talk, Found]]) -> dict[str, dict[str, list[float]]]:
    """The same figures for the JSON."""
    return {talk.id: {name: _means(rows) for name, rows in by_method.items()} for talk, by_method in found}


def _line(name: str, tokens: int, rows: Sequence[tuple[bool, ...]]) -> str:
    return f"| {name} | {tokens} | {len(rows)} | {' | '.join(f'{100 * mean:.1f}' for mean in _means(rows))} |"


def _means(rows: Sequence[tuple[bool, ...]]) -> list[float]:
    return [statistics.fmean(row[place] for row in rows) for place in range(len(SHARES))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the table into ``docs/fidelity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.fidelity_made", description="Fidelity on made-up talks.")
    parser.add_argument("--write", action="store_true", help="into docs/fidelity.md")
    asked = parser.parse_args(arguments)
    given = [talk for path in sorted(FOLDER.glob("*.jsonl")) for talk in talks(path)]
    found = [(talk, found_in(talk)) for talk in given]
    for name, text in {"made": table(found), "made_broad": broad_table(list(broadly(given)))}.items():
        print(f"\n{text}")
        if asked.write:
            measurements.write(name, text, PAGE)
    write_json("fidelity_made", figures(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
