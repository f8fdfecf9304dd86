"""Measures fidelity: how much of a conversation still reaches a model, at a share of its tokens.

``python -m bench.fidelity [--data file.jsonl …] [--every n] [--jobs 2] [--write]`` folds each conversation as a whole
with the offline model and assembles a context for each question within 5, 10, 20 and 50 % of the conversation's own
tokens. Everything served counts against the budget except the system prompt and the awareness block. It prints

* evidence recall: whether the text of every message that holds the answer is in the context, by category; this is an
  upper bound on what a model can answer, not accuracy;
* answer-token recall: the share of the answer's content words that are in it;
* questions that ask for a summary or an order of events, separately, with and without the state;
* exact values (names, numbers, dates) that a context without a question still holds;
* expand hit@k: whether the segment with the evidence is among the first that a question leads to;
* the same for conversations in which one side's messages are joined to long ones.

For comparison, selections of whole messages of the same size are measured. Intervals are 95 %, by bootstrap over
questions with a fixed seed. Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench import measurements
from bench.fidelity_measures import CONTROL, FIRST, OURS, SHARES, STATELESS, Conversation, Hit, Kept, Served, by_name
from bench.recall_talks import CATEGORIES, Talk, talks, with_long_answers
from bench.report import write_json
from bench.survival import DATA

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
_DRAWS: Final = 1_000
_HEAD: Final = " | ".join(f"{share:.0%}".replace("%", " %") for share in SHARES)
_RULE: Final = "---:|" * len(SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that was measured on one conversation."""

    talk: str
    questions: int
    served: tuple[Served, ...]
    kept: tuple[Kept, ...]
    hits: tuple[Hit, ...]
    joined: tuple[Served, ...]


def measured(talk: Talk, every: int = 1) -> Found:
    """The measures of one conversation, as it is and with long answers."""
    whole = Conversation(talk)
    return Found(
        talk=talk.id,
        questions=len(talk.questions[::every]),
        served=tuple(whole.served(every)),
        kept=tuple(whole.kept()),
        hits=tuple(whole.hits(every)),
        joined=tuple(Conversation(with_long_answers(talk)).served(every)),
    )


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its 95 % interval by bootstrap."""
    if not values:
        return 0.0, 0.0, 0.0
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(_DRAWS))
    return statistics.fmean(values), means[int(0.025 * _DRAWS)], means[int(0.975 * _DRAWS) - 1]


def cell(values: Sequence[float]) -> str:
    """A cell with mean and interval in per cent."""
    if not values:
        return "–"
    mean, low, high = interval(values)
    return f"{100 * mean:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def _row(name: str, rows: Sequence[Served], value: Callable[[Served], float | None]) -> str:
    cells = [
        cell([found for one in rows if one.share == share and (found := value(one)) is not None]) for share in SHARES
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _evidence(one: Served) -> float:
    return float(one.evidence)


def _answer(one: Served) -> float | None:
    return one.answer


def evidence_table(found: Sequence[Served], *, by_category: bool = True) -> str:
    """A table of all questions by method, then of Throughline's by category."""
    plain = [one for one in found if not one.broad]
    lines = [f"| | {_HEAD} |", f"|---|{_RULE}"]
    lines += [_row(name, rows, _evidence) for name, rows in by_name(plain).items()]
    ours = [one for one in plain if one.name == OURS]
    if by_category:
        lines += ["", f"Of {OURS}, by category:", "", f"| | questions | {_HEAD} |", f"|---|---:|{_RULE}"]
        known = [name for name in CATEGORIES.values() if any(one.category == name for one in ours)]
        for category in dict.fromkeys([*known, *(one.category for one in ours)]):
            rows = [one for one in ours if one.category == category]
            lines.append(_row(f"{category} | {len(rows) // len(SHARES)}", rows, _evidence))
    return "\n".join(lines)


def answer_table(found: Sequence[Served]) -> str:
    """A table of the share of the answer's content words, by method."""
    lines = [f"| | {_HEAD} |", f"|---|{_RULE}"]
    lines += [_row(name, rows, _answer) for name, rows in by_name([one for one in found if not one.broad]).items()]
    return "\n".join(lines)


def broad_table(found: Sequence[Served]) -> str:
    """A table of questions that ask for a summary or an order: evidence and answer, with and without the state."""
    broad = [one for one in found if one.broad]
    if not broad:
        return "No question of these conversations asks for a summary or an order of events."
    groups = by_name(broad)
    lines = [f"| | {_HEAD} |", f"|---|{_RULE}"]
    for name in (OURS, STATELESS, CONTROL, "BM25"):
        lines.append(_row(f"{name}: evidence", groups[name], _evidence))
        lines.append(_row(f"{name}: answer's words", groups[name], _answer))
    ours = groups[OURS]
    count = sum(one.share == ours[0].share for one in ours)
    return "\n".join([*lines, "", f"{count} questions."])


def values_table(found: Sequence[Kept]) -> str:
    """A table of the exact values that are served without a question."""
    lines = [f"| | {_HEAD} |", f"|---|{_RULE}"]
    for name in dict.fromkeys(one.name for one in found):
        cells = []
        for share in SHARES:
            rows = [one for one in found if one.name == name and one.share == share]
            cells.append(f"{100 * sum(one.kept for one in rows) / max(sum(one.of for one in rows), 1):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    total = sum(one.of for one in found if one.name == OURS and one.share == SHARES[0])
    return "\n".join([*lines, "", f"{total} distinct values."])


def hits_table(found: Sequence[Hit]) -> str:
    """A table of expand hit@k."""
    lines = ["| the first segments are found | " + " | ".join(f"hit@{k}" for k in FIRST) + " |"]
    lines.append("|---|" + "---:|" * len(FIRST))
    for name in dict.fromkeys(one.name for one in found):
        cells = [cell([one.hit for one in found if one.name == name and one.k == k]) for k in FIRST]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    counts = {one.talk: one.segments for one in found}
    return "\n".join([*lines, "", f"{sum(counts.values())} segments in {len(counts)} conversations."])


def tables(found: Sequence[Found]) -> dict[str, str]:
    """The tables by the names of their marks."""
    served = [one for each in found for one in each.served]
    return {
        "evidence": evidence_table(served),
        "answers": answer_table(served),
        "broad": broad_table(served),
        "values": values_table([one for each in found for one in each.kept]),
        "expand": hits_table([one for each in found for one in each.hits]),
        "long": evidence_table([one for each in found for one in each.joined]),
    }


def measure(given: Iterable[Talk], *, every: int, jobs: int) -> list[Found]:
    """Measure all conversations, ``jobs`` at a time."""
    found: list[Found] = []
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for one in pool.map(partial(measured, every=every), given):
            print(f"{one.talk}: {one.questions} questions", file=sys.stderr)
            found.append(one)
    return found


def figures(found: Sequence[Found]) -> dict[str, dict[str, float]]:
    """Evidence recall by method and share, for the JSON."""
    groups = by_name([one for each in found for one in each.served])
    return {
        name: {
            f"{share:.0%}": statistics.fmean([one.evidence for one in rows if one.share == share]) for share in SHARES
        }
        for name, rows in groups.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the tables into ``docs/fidelity.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.fidelity", description="Fidelity of what is served.")
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA], help="files in the format of shared/data")
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help="into docs/fidelity.md")
    asked = parser.parse_args(arguments)
    given = [talk for path in asked.data for talk in talks(path) if talk.questions]
    if not given:
        print(f"skipped: no questions in {', '.join(map(str, asked.data))}")
        return 0
    found = measure(given, every=asked.every, jobs=asked.jobs)
    for name, text in tables(found).items():
        print(f"\n## {name}\n\n{text}")
        if asked.write:
            measurements.write(name, text, PAGE)
    write_json("fidelity", figures(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
