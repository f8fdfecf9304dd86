"""Writes the outcome of an attack: to the terminal, and between the marks of ``docs/attacks.md``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.attack.findings import Finding, Outcome
from bench.measurements import write

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"
FOLDER: Final = Path(".data") / "bench" / "attack"
"""The folder for the outcomes of the parts, relative to the current folder."""
MARK: Final = "bench:attack"
NOT_PLAYED: Final = "not played"
MAX_SHOWN: Final = 40
"""The most findings of one part that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcomes of all parts under one seed."""

    seed: int
    outcomes: Sequence[Outcome]

    @property
    def is_clean(self) -> bool:
        """Whether everything held."""
        return not any(outcome.findings for outcome in self.outcomes)


def print_outcome(outcome: Outcome) -> None:
    """Print numbers, and what did not hold."""
    parts = [f"{name} {count}" for name, count in outcome.counts.items()]
    parts += [f"{name} {figure}" for name, figure in outcome.figures.items()]
    print(f"{outcome.part}: {', '.join(parts)}; findings {len(outcome.findings)}", flush=True)
    for finding in outcome.findings[:MAX_SHOWN]:
        print(f"  {finding}", flush=True)


def save(outcome: Outcome, seed: int) -> None:
    """Write the outcome of a part to a file, for ``saved``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    row = {
        "counts": dict(outcome.counts),
        "figures": outcome.figures,
        "findings": [asdict(finding) for finding in outcome.findings],
    }
    (FOLDER / f"{seed}-{outcome.part}.json").write_text(json.dumps(row), encoding="utf-8")


def saved(part: str, seed: int) -> Outcome | None:
    """The outcome of a part when it was last run with that seed; ``None`` if it never was."""
    if not (FOLDER / f"{seed}-{part}.json").exists():
        return None
    row = json.loads((FOLDER / f"{seed}-{part}.json").read_text(encoding="utf-8"))
    findings = [Finding(**finding) for finding in row["findings"]]
    return Outcome(part, Counter(row["counts"]), row["figures"], findings)


def table(runs: Sequence[Run], command: str) -> str:
    """A row for each number, a column for each seed."""
    head = ["part", "what", *(f"seed {run.seed}" for run in runs)]
    lines = [f"`{command}`, on two cores that others used at the same time:", "", _row(head), _row(["---"] * len(head))]
    for part in dict.fromkeys(outcome.part for run in runs for outcome in run.outcomes):
        played = [next((one for one in run.outcomes if one.part == part), None) for run in runs]
        names = dict.fromkeys(name for one in played if one for name in (*one.counts, *one.figures))
        lines += [_row([part, name, *(_cell(one, name) for one in played)]) for name in names]
        lines.append(_row([part, "**findings**", *(_findings(one) for one in played)]))
    return "\n".join(lines)


def write_page(runs: Sequence[Run], command: str) -> None:
    """Write the table into the page."""
    write(MARK, table(runs, command), PAGE)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(outcome: Outcome | None, name: str) -> str:
    if outcome is None:
        return NOT_PLAYED
    return outcome.figures.get(name) or str(outcome.counts[name])


def _findings(outcome: Outcome | None) -> str:
    if outcome is None:
        return NOT_PLAYED
    kinds = Counter(finding.what for finding in outcome.findings)
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "0"
