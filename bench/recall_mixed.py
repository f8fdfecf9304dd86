"""Measures what the room for tools' data takes from recall, in long talks with a few tool calls.

Made-up runs of agents are put into talks of LoCoMo, whose questions are asked in the real assembly. For comparison,
tools' data keeps its full room even if the tools returned little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from app.core.context import recalled_messages
from bench.made_runs import rows
from bench.recall_talks import Talk, context, folded
from bench.tool_arguments import run_of

SHARES: Final = (0.03, 0.05, 0.10)
RUNS: Final = 4
KINDS: Final = ("retail", "telecom")
"""The kinds of runs that are put into the first talk, the second one …"""
_ALWAYS: Final = 1_000


def mixed(talk: Talk, kind: str) -> Talk:
    """The talk with the first halves of some runs between its messages, and with every second question."""
    runs = [run_of(row).first for row in rows(kind)][:RUNS]
    places = {len(talk.messages) * number // (RUNS + 1): number for number in range(1, RUNS + 1)}
    messages: list[dict[str, Any]] = []
    moved: dict[int, int] = {}
    for seq, message in enumerate(talk.messages, start=1):
        number = places.get(seq)
        run = runs[number - 1] if number else ()
        messages += [{**_numbered(one, number), "created_at": message["created_at"]} for one in run]
        messages.append(message)
        moved[seq] = len(messages)
    asked = tuple(replace(one, evidence=tuple(map(moved.__getitem__, one.evidence))) for one in talk.questions[::2])
    return Talk(id=f"{talk.id}-{kind}", messages=tuple(messages), questions=asked)


def report(locomo: Sequence[Talk]) -> Iterator[str]:
    """The table; shares are of the tokens without the runs."""
    given = list(zip(locomo, KINDS, strict=False))
    now, before = zip(*(_served(mixed(talk, kind), talk.tokens) for talk, kind in given), strict=True)
    count = sum(len(talk.questions[::2]) for talk, _ in given)
    yield f"| {count} questions | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|---|{'---:|' * len(SHARES)}"
    for name, found in (("however little tools said", before), ("as much as tools said", now)):
        yield f"| {name} | {' | '.join(f'{100 * sum(each) / count:.1f}' for each in zip(*found, strict=True))} |"


def _numbered(message: dict[str, Any], number: int | None) -> dict[str, Any]:
    # The runs' call ids, which each begin at one, are made unique.
    names = ("id", "tool_call_id")
    parts = [
        {**part, **{name: f"{part[name]}_{number}" for name in names if name in part}} for part in message["parts"]
    ]
    return {**message, "parts": parts}


def _served(talk: Talk, tokens: int) -> tuple[list[int], list[int]]:
    """For how many questions all evidence is recalled at each share: now, and with full room for data."""
    material, corpus = folded(talk)

    def at(share: float) -> int:
        room = math.floor(share * tokens)
        found = ((asked, context(material, corpus, asked.text, room).recalled) for asked in talk.questions)
        return sum(
            {one.source.seq for one in chosen if not one.excerpt} >= {*asked.evidence} for asked, chosen in found
        )

    now = [at(share) for share in SHARES]
    with patch.object(recalled_messages, "TOOL_DATA_RATIO", _ALWAYS):
        return now, [at(share) for share in SHARES]
