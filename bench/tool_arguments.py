"""Measures whether the values that later tool calls use are still served, at a fifth of the tokens.

``python -m bench.tool_arguments [--data file.jsonl] [--share 0.2] [--write]`` cuts each agent run of
``../shared/data/tau_bench`` in half. The first half is imported (its system message as ``system_prompt``, which does
not count) and folded as a whole by the offline model. For every tool call in the second half, those scalar values among
its arguments that are in the first half are looked for in a context with a share of the first half's other tokens: once
without a query, once with the latest user message before the call as the query. Runs without such calls are skipped.
Selections of whole messages of the same size are measured for comparison. Nothing of the data is printed or kept.
``--made`` (and ``--write``) also measures made-up runs of other kinds of agents (``bench.made_runs``), on which less
was tuned.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from app.core.model.errors import BudgetTooSmallError
from app.core.retrieval.corpus import Corpus
from app.core.text.token_counts import estimate_text
from bench import measurements
from bench.made_runs import KINDS, rows
from bench.recall_baselines import Baselines
from bench.recall_talks import context, corpus_in, material_of, replay_of
from bench.report import write_json
from bench.survival import DATA as TALKS

DATA: Final = TALKS.parents[1] / "tau_bench" / "airline.jsonl"
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
SHARE: Final = 0.20
OURS: Final = "Throughline"
CONTROL: Final = "Throughline, everything compacted forgotten"
_DRAWS: Final = 1_000
_RANDOM: Final = 20  # random selections per run
_LETTER: Final = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A later tool call: the latest user message before it, and its argument values that were said before the cut."""

    query: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An agent run, cut in half."""

    id: str
    system: str
    first: tuple[dict[str, Any], ...]
    calls: tuple[Call, ...]

    @property
    def texts(self) -> list[str]:
        """The text of each message of the first half, without repetitions."""
        return [text_of(message) for message in self.first]

    @property
    def tokens(self) -> int:
        """The tokens of the first half's messages, without the system message and without overhead."""
        return sum(map(estimate_text, self.texts))

    @property
    def values(self) -> tuple[str, ...]:
        """The values that the later calls use, each once."""
        return tuple(dict.fromkeys(value for call in self.calls for value in call.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many of the values that were looked for in one run were served."""

    name: str
    run: str
    asked: bool
    """Whether a query was given: then every call's values count; otherwise each value counts once."""
    served: int
    of: int
    words: tuple[int, int] = (0, 0)
    """How many values that are not bare numbers were served, and how many there are."""


def runs(path: Path = DATA) -> list[Run]:
    """The runs whose later calls use something said before; empty if the data is missing."""
    if not path.exists():
        return []
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [run for run in map(run_of, rows) if run.values]


def run_of(row: Mapping[str, Any]) -> Run:
    """One run, cut in half."""
    system = "\n\n".join(message["content"] for message in row["messages"] if message["role"] == "system")
    others = [_imported(message) for message in row["messages"] if message["role"] != "system"]
    half = len(others) // 2
    first = tuple(others[:half])
    before = "\n".join(map(text_of, first))
    return Run(id=row["id"], system=system, first=first, calls=tuple(_calls(others, half, before)))


def _imported(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as the service's API requires it: a result names its call."""
    parts = [
        {**part, "tool_call_id": part.get("tool_call_id", part.get("id"))} if part["type"] == "tool_result" else part
        for part in message.get("parts") or ()
    ]
    return {**message, "content": message.get("content") or "", "parts": parts}


def _calls(messages: Sequence[Mapping[str, Any]], half: int, before: str) -> Iterator[Call]:
    query = ""
    for index, message in enumerate(messages):
        query = message["content"] if message["role"] == "user" else query
        made = [part for part in message["parts"] if part["type"] == "tool_call"] if index >= half else []
        for part in made:
            values = dict.fromkeys(
                value for value in _scalars(_parsed(part["arguments"])) if contains_value(value, before)
            )
            if values:
                yield Call(query=query, values=tuple(values))


def _parsed(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif isinstance(value, bool):
        yield str(value).lower()
    elif value not in (None, ""):
        yield str(value)


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text: its content, calls and results, without repetitions."""
    texts = [message["content"]]
    for part in message["parts"]:
        if part["type"] == "tool_call":
            arguments = part["arguments"]
            given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            texts.append(f"{part['name']} {given}")
        elif part["type"] == "tool_result" and part["content"] != message["content"]:
            content = part["content"]
            texts.append(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))
    return "\n".join(filter(None, texts))


@cache
def _pattern(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


def contains_value(value: str, text: str) -> bool:
    """Whether a value is in a text verbatim, as a whole word."""
    return _pattern(value).search(text) is not None


def outcomes(run: Run, share: float = SHARE) -> Iterator[Outcome]:
    """The outcomes of Throughline and the other methods on one run."""
    room = math.floor(share * run.tokens)
    served = Serving(run)
    texts = run.texts
    selections = {name: choose for name, choose in Baselines(texts).all().items() if name != "random"}  # drawn below
    yield _outcome(OURS, run, [(served.served_text("", room), run.values)], asked=False)
    yield _outcome(OURS, run, [(served.served_text(call.query, room), call.values) for call in run.calls], asked=True)
    forgotten = Serving(run, forgets=True)
    yield _outcome(CONTROL, run, [(forgotten.served_text("", room), run.values)], asked=False)
    for name, choose in selections.items():

        def chosen(query: str, choose: Any = choose) -> str:
            return "\n".join(texts[seq - 1] for seq in sorted(choose(query, room)))

        if name != "BM25":
            yield _outcome(name, run, [(chosen(""), run.values)], asked=False)
        yield _outcome(name, run, [(chosen(call.query), call.values) for call in run.calls], asked=True)
    for seed in range(_RANDOM):
        selection = _at_random(texts, room, seed)
        yield _outcome("random", run, [(selection, run.values)], asked=False)
        yield _outcome("random", run, [(selection, call.values) for call in run.calls], asked=True)


class Serving:
    """The first half as the service handles it, and what is served of it."""

    def __init__(self, run: Run, *, forgets: bool = False) -> None:
        self._replay = replay_of(run.first, fold=True)
        if forgets:
            self._replay.forget()
        self._material = material_of(self._replay)
        self._corpus = corpus_in(self._replay)

    def served_text(self, query: str, room: int) -> str:
        """Everything served after the system prompt; empty if not even the last user message fits."""
        try:
            found = context(self._material, self._corpus if query else Corpus(()), query, room)
        except BudgetTooSmallError:
            return ""
        spent = found.gauge.breakdown.total - found.gauge.breakdown.system
        if spent > room:
            raise AssertionError(f"{spent} tokens in a budget of {room}")
        return "\n".join(
            text_of({"content": message.content, "parts": message.parts}) for message in found.messages[1:]
        )


def _at_random(texts: Sequence[str], room: int, seed: int) -> str:
    order = list(range(len(texts)))
    random.Random(seed).shuffle(order)
    kept: list[int] = []
    for index in order:
        cost = estimate_text(f"{texts[index]}\n")
        if cost <= room:
            room -= cost
            kept.append(index)
    return "\n".join(texts[index] for index in sorted(kept))


def _outcome(name: str, run: Run, found: Sequence[tuple[str, Sequence[str]]], *, asked: bool) -> Outcome:
    hits = [(value, contains_value(value, text)) for text, values in found for value in values]
    words = [hit for value, hit in hits if _LETTER.search(value)]
    return Outcome(
        name=name,
        run=run.id,
        asked=asked,
        served=sum(hit for _, hit in hits),
        of=len(hits),
        words=(sum(words), len(words)),
    )


def interval(found: Sequence[Outcome]) -> tuple[float, float, float]:
    """The share of all values that was served, and its 95 % interval by bootstrap over runs."""
    by_run: dict[str, list[Outcome]] = {}
    for one in found:
        by_run.setdefault(one.run, []).append(one)
    groups = [(sum(one.served for one in group), sum(one.of for one in group)) for group in by_run.values()]
    if not groups:
        return 0.0, 0.0, 0.0
    draw = random.Random(1)
    shares = sorted(_share(draw.choices(groups, k=len(groups))) for _ in range(_DRAWS))
    return _share(groups), shares[int(0.025 * _DRAWS)], shares[int(0.975 * _DRAWS) - 1]


def _share(groups: Sequence[tuple[int, int]]) -> float:
    return sum(served for served, _ in groups) / max(sum(of for _, of in groups), 1)


def table(found: Sequence[Outcome]) -> str:
    """A table of the values served by each method, without and with a query."""
    lines = ["| | without a query | with the latest user message as query |", "|---|---:|---:|"]
    for name in dict.fromkeys(one.name for one in found):
        cells = [_cell([one for one in found if one.name == name and one.asked == asked]) for asked in (False, True)]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    ours = [one for one in found if one.name == OURS and not one.asked]
    words = _share([one.words for one in ours])
    numbers = _share([(one.served - one.words[0], one.of - one.words[1]) for one in ours])
    count = sum(one.of for one in ours)
    mean = statistics.fmean(one.served / one.of for one in ours)
    note = (
        f"{len(ours)} runs with {count} values; of {OURS} without a query: values with a letter in them {words:.1%},"
        f" bare numbers and dates {numbers:.1%}; mean of the runs {mean:.1%}."
    )
    return "\n".join([*lines, "", note])


def _cell(found: Sequence[Outcome]) -> str:
    if not found:
        return "–"
    mean, low, high = interval(found)
    return f"{100 * mean:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def made_table(share: float, seed: int = 1) -> str:
    """The same table for made-up runs, by kind, compared with the newest messages."""
    lines = ["| | values | without a query | with a query | newest first |", "|---|---:|---:|---:|---:|"]
    for kind in KINDS:
        found = [one for row in rows(kind, seed=seed) if (run := run_of(row)).values for one in outcomes(run, share)]
        ours = {asked: [one for one in found if one.name == OURS and one.asked == asked] for asked in (False, True)}
        newest = [one for one in found if one.name == "newest first" and not one.asked]
        count = sum(one.of for one in ours[False])
        lines.append(f"| {kind} | {count} | {_cell(ours[False])} | {_cell(ours[True])} | {_cell(newest)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the table into ``docs/fidelity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.tool_arguments", description="Tool arguments.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--share", type=float, default=SHARE, help="of the first half's tokens")
    parser.add_argument("--made", action="store_true", help="also made-up runs of other kinds")
    parser.add_argument("--seed", type=int, default=1, help="of the made-up runs")
    parser.add_argument("--write", action="store_true", help="into docs/fidelity.md")
    asked = parser.parse_args(arguments)
    found = [one for run in runs(asked.data) for one in outcomes(run, asked.share)]
    if not found:
        print(f"skipped: no data at {asked.data}")
        return 0
    text = table(found)
    if asked.made or asked.write:
        text = f"{text}\n\nMade-up runs, fifteen of each kind:\n\n{made_table(asked.share, asked.seed)}"
    print(text)
    names = dict.fromkeys((one.name, one.asked) for one in found)
    write_json(
        "tool_arguments",
        {
            f"{name}, {'query' if query else 'no query'}": interval(
                [one for one in found if (one.name, one.asked) == (name, query)]
            )
            for name, query in names
        },
    )
    if asked.write:
        measurements.write("tool_arguments", text, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
