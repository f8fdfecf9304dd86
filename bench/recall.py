"""Evidence recall: is what answers a question served, at a share of the conversation's tokens?

``python -m bench.recall fidelity [--write]`` folds each talk of ``../shared/data/locomo`` as a whole with the offline
model, assembles a context for each question within 5, 10, 20 and 50 % of the talk's own tokens, and looks whether the
text of every message that holds the answer stands in it. Everything served counts against the budget but the system
prompt and the awareness block. Beside it selections of whole messages of the same size. It is an upper bound on what a
model can answer, not accuracy. Nothing of the data is printed or kept.

``python -m bench.recall fit`` fits the weights again (with ``uv run --group bench``, or numpy installed) and prints
them with what they reach on talks that they were not fitted on.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import measurements
from bench.recall_baselines import Baselines
from bench.recall_talks import CATEGORIES, Asked, Talk, context, folded, room_of, talks
from bench.report import write_json
from bench.survival import DATA

SHARES: Final = (0.05, 0.10, 0.20, 0.50)
OURS: Final = "Throughline"
CONTROL: Final = "the same without a query"
_DRAWS: Final = 1_000
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "recall.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether all evidence of a question was served."""

    name: str
    category: int
    share: float
    served: bool


def outcomes(talk: Talk, every: int = 1) -> Iterator[Outcome]:
    """Ours and the others on one talk; of its questions every n-th."""
    material, corpus = folded(talk)
    texts = talk.texts
    baselines = Baselines(texts).all()
    for share in SHARES:
        room = room_of(talk, share)
        plain = _text_of(context(material, corpus, "", room).messages)
        for asked in talk.questions[::every]:
            found = context(material, corpus, asked.text, room)
            spent = found.gauge.breakdown.total - found.gauge.breakdown.system
            if spent > room:
                raise AssertionError(f"{spent} tokens in a budget of {room}")
            told = _text_of(found.messages)
            yield _outcome(OURS, asked, share, served=all(texts[seq - 1] in told for seq in asked.evidence))
            yield _outcome(CONTROL, asked, share, served=all(texts[seq - 1] in plain for seq in asked.evidence))
            for name, choose in baselines.items():
                yield _outcome(name, asked, share, served=set(asked.evidence) <= choose(asked.text, room))


def _outcome(name: str, asked: Asked, share: float, *, served: bool) -> Outcome:
    return Outcome(name=name, category=asked.category, share=share, served=served)


def _text_of(messages: Sequence[object]) -> str:
    return "\n".join(str(getattr(message, "content", "")) for message in messages[1:])


def interval(served: Sequence[bool]) -> tuple[float, float, float]:
    """The share, and the 95 % interval of it by bootstrap over questions."""
    if not served:
        return 0.0, 0.0, 0.0
    draw = random.Random(1)
    shares = sorted(statistics.fmean(draw.choices(served, k=len(served))) for _ in range(_DRAWS))
    return statistics.fmean(served), shares[int(0.025 * _DRAWS)], shares[int(0.975 * _DRAWS) - 1]


def table(found: Sequence[Outcome]) -> str:
    """All questions by method, then ours by category."""
    lines = ["| | 5 % | 10 % | 20 % | 50 % |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {name} | {_cells(rows)} |" for name, rows in _by_name(found).items()]
    ours = [one for one in found if one.name == OURS]
    lines += ["", f"Of {OURS}, by category:", "", "| | questions | 5 % | 10 % | 20 % | 50 % |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for category, name in CATEGORIES.items():
        rows = [one for one in ours if one.category == category]
        if rows:
            lines.append(f"| {name} | {len(rows) // len(SHARES)} | {_cells(rows)} |")
    return "\n".join(lines)


def _by_name(found: Sequence[Outcome]) -> Mapping[str, list[Outcome]]:
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in found:
        groups[one.name].append(one)
    return groups


def _cells(rows: Sequence[Outcome]) -> str:
    cells = []
    for share in SHARES:
        mean, low, high = interval([one.served for one in rows if one.share == share])
        cells.append(f"{100 * mean:.1f} ({100 * low:.1f}–{100 * high:.1f})")
    return " | ".join(cells)


def fidelity(*, every: int, write: bool) -> int:
    """Measure, print, and with ``write`` put the table into ``docs/recall.md``."""
    found: list[Outcome] = []
    for talk in talks():
        found += outcomes(talk, every)
        print(f"{talk.id}: {len(talk.questions[::every])} questions", file=sys.stderr)
    if not found:
        print(f"skipped: no data at {DATA}")
        return 0
    text = table(found)
    print(text)
    shares = {
        name: {f"{share:.0%}": statistics.fmean(one.served for one in rows if one.share == share) for share in SHARES}
        for name, rows in _by_name(found).items()
    }
    write_json("recall", shares)
    if write:
        measurements.write("fidelity", text, PAGE)
    return 0


def fit() -> int:
    """Fit the weights and print them."""
    try:
        from bench.recall_fit import report  # noqa: PLC0415 - numpy is there for this command alone
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install --require-hashes -r requirements-bench.lock")
        return 1
    found = talks()
    print(report(found) if found else f"skipped: no data at {DATA}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description="Evidence recall.")
    parser.add_argument("command", choices=["fidelity", "fit"])
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    parser.add_argument("--write", action="store_true", help="into docs/recall.md")
    asked = parser.parse_args(arguments)
    return fit() if asked.command == "fit" else fidelity(every=asked.every, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
