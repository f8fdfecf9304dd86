"""Measures how the offline compressor's time grows with the number of messages.

``python -m bench.growth [--most 1600] [--repeats 3]`` compacts generated talks of 100, 200, 400 … messages: proposal,
gate and apply, as one compaction does them. It fits the exponent of the growth (1 is linear) and says how many times
faster than the published design's own "100 turns in two seconds" it is.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.budgets import budgets_of
from app.core.model.policies.resolving import resolve
from app.core.model.schemas.session import SESSION
from app.core.planning.compaction import CompactionPlan
from app.core.state.apply import AppliedCandidate, ApplyContext, apply_candidate
from app.core.summarizer.offline.extractive import compress
from app.core.text.token_counts import weigh
from app.core.validation.gate import judge
from bench.report import print_table, write_json

PROMISED_TURNS: Final = 100
PROMISED_SECONDS: Final = 2.0
"""The time for 100 turns in the Contextual Compression Engine's own list of success criteria."""

LINEAR: Final = 1.15
"""An exponent up to this counts as linear: n·log n over these sizes has 1.13, and noise adds a little."""

_FIRST: Final = 100
_LIMIT: Final = 1_048_576  # the input limit of the default chat model: every talk is one chunk
_BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
_NAMES: Final = ("Dana", "Tiago", "Mia", "Olek", "Priya", "Jonas", "Amina", "Ravi", "Ines", "Kenji")
_USER_LINES: Final = (
    "We need the {thing} by {month} {day}, and it must not cost more than €{amount}.",
    "{name} says order {code} is late again, can you find out why?",
    "Let's use {tool} for the {thing}; {name} knows it well.",
    "Actually, no: {name} will do the {thing} instead, with {tool}.",
    "How many {thing}s can we handle per minute? I would guess {amount}.",
    "The error was `{code}` in src/{thing}/{name}.py, line {day}, after the update to version {day}.{amount}.",
    "Thanks, that helps a lot. I keep my answers short, since I read this on my phone.",
)
_ANSWERED: Final = (
    "Noted: {thing} by {month} {day}. There are several ways to do it, and each of them has its merits.",
    "I looked at {code}: {name} had changed the {thing}, so {tool} refused it. I will write to {name} today.",
    "In general it helps to take such things step by step. Should I ask {name} about the {thing} first?",
    "I suggest {tool}. It takes about {day} days and costs €{amount}, and the {thing} can stay as it is.",
)
_THINGS: Final = (
    "report",
    "invoice",
    "menu",
    "delivery",
    "contract",
    "backup",
    "ticket",
    "label",
    "schedule",
    "survey",
)
_TOOLS: Final = ("Postgres", "Redis", "FastAPI", "Stripe", "Twilio", "Grafana", "Terraform", "Kafka")
_MONTHS: Final = ("January", "March", "May", "June", "August", "October", "December")


def talk(messages: int, seed: int = 1) -> tuple[Message, ...]:
    """A generated talk; a longer one begins with the shorter one of the same seed."""
    chosen = random.Random(seed)
    return tuple(_message(seq, chosen) for seq in range(1, messages + 1))


def _message(seq: int, chosen: random.Random) -> Message:
    lines = _USER_LINES if seq % 2 else _ANSWERED
    content = " ".join(
        chosen.choice(lines).format(
            thing=chosen.choice(_THINGS),
            tool=chosen.choice(_TOOLS),
            name=chosen.choice(_NAMES),
            month=chosen.choice(_MONTHS),
            day=chosen.randint(1, 28),
            amount=chosen.randint(100, 90_000),
            code=f"ORD-{chosen.randint(10_000, 99_999)}",
        )
        for _ in range(chosen.randint(1, 4))
    )
    weight = weigh("user", content)
    return Message(
        id=UUID(int=seq),
        conversation_id=UUID(int=0),
        seq=seq,
        role="user" if seq % 2 else "assistant",
        content=content,
        token_count=weight.tokens,
        byte_length=weight.bytes,
        created_at=_BEGIN + timedelta(minutes=seq),
    )


def compact(span: Sequence[Message]) -> AppliedCandidate | str:
    """One compaction of the whole span by the offline model, as a service runs it, without database and anchors."""
    policy = resolve("semantic", {})
    budgets = budgets_of(policy, _LIMIT)
    tokens = _tokens(span)
    request = SummaryRequest(schema=SESSION, messages=tuple(span), target_tokens=budgets.state_tokens)
    proposal = Proposal(text=compress(request), finish="stop", model="offline")
    plan = CompactionPlan(
        from_seq=1,
        to_seq=len(span),
        messages=len(span),
        folded_tokens=tokens,
        goal_seq=len(span),
        predicted_tokens=budgets.state_tokens,
        irreducible=False,
    )
    to = ApplyContext(
        schema=SESSION,
        policy=policy,
        budgets=budgets,
        plan=plan,
        span=tuple(span),
        previous=(),
        next_entry=1,
        version=1,
        tokens_before=tokens,
        block_before=0,
        target=budgets.target,
    )
    return apply_candidate(judge(proposal, request), to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of wall time, and of CPU time of this process, which other processes cannot lengthen."""

    wall: float
    own: float


def took(span: Sequence[Message], repeats: int) -> Took:
    """The medians of so many compactions. Raises ``RuntimeError`` when one is refused: then nothing was measured."""
    walls: list[float] = []
    owns: list[float] = []
    for _ in range(repeats):
        gc.collect()
        wall, own = time.perf_counter(), time.process_time()
        applied = compact(span)
        walls.append(time.perf_counter() - wall)
        owns.append(time.process_time() - own)
        if not isinstance(applied, AppliedCandidate):
            raise RuntimeError(f"refused: {applied}")  # noqa: TRY004 - a reason word is an answer, not a wrong type
    return Took(wall=statistics.median(walls), own=statistics.median(owns))


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms: 1 is linear, 2 quadratic."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(value) for value in times]).slope


def main() -> int:
    """Measure, print, write; 1 when the growth is not linear or the promise is not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--most", type=int, default=1_600, help="messages of the longest talk")
    parser.add_argument("--repeats", type=int, default=3, help="runs per talk; their median counts")
    asked = parser.parse_args()
    spans = [talk(_FIRST << doubling) for doubling in range(int(math.log2(asked.most / _FIRST)) + 1)]
    compact(spans[0])  # to warm up: compiling and filling caches is not growth
    sizes = [len(span) for span in spans]
    times = [took(span, asked.repeats) for span in spans]
    slope = exponent(sizes, [each.own for each in times])
    promised = took(talk(2 * PROMISED_TURNS), asked.repeats)
    first = times[0].own / sizes[0]
    print_table(
        ["messages", "tokens", "wall s", "CPU s", "CPU per message, against the first"],
        [
            [
                str(len(span)),
                str(_tokens(span)),
                *map("{:.2f}".format, (each.wall, each.own, each.own / len(span) / first)),
            ]
            for span, each in zip(spans, times, strict=True)
        ],
    )
    print(f"\ngrowth: messages to the power of {slope:.2f} (linear up to {LINEAR})")
    print(
        f"{PROMISED_TURNS} turns: {promised.wall:.2f} s,"
        f" {PROMISED_SECONDS / promised.wall:.1f} times as fast as promised"
        f" ({PROMISED_SECONDS / promised.own:.1f} by CPU time)"
    )
    found = {"sizes": sizes, "took": [asdict(each) for each in times], "exponent": slope}
    write_json(
        "growth", {**found, "turns": {"count": PROMISED_TURNS, "took": asdict(promised), "promised": PROMISED_SECONDS}}
    )
    return 0 if slope <= LINEAR and promised.wall <= PROMISED_SECONDS else 1


def _tokens(span: Sequence[Message]) -> int:
    return sum(message.token_count for message in span)


if __name__ == "__main__":
    sys.exit(main())
