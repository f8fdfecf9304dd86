"""Writes the figures of the tests: how many there are, how long they take, and how much of the code they run.

``python -m bench.figures.tests --junit FILE --out FOLDER`` writes ``tests.json`` (cases and seconds by tier and file)
and ``tests.csv.gz`` (every test with its outcome and its seconds). ``--coverage FILE``, a coverage file with branches
whose paths still exist, adds ``coverage.json`` (lines and branches by package).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coverage import Coverage

from bench.figures.junit import Case, cases_of

_COUNTS: Final = {
    "lines": "num_statements",
    "lines_run": "covered_lines",
    "branches": "num_branches",
    "branches_taken": "covered_branches",
}
"""The names of the counts in ``coverage.json``, and those of the coverage library."""


def figures_of(cases: Sequence[Case]) -> dict[str, Any]:
    """Numbers of cases by outcome, and seconds: of all, by tier (the folder) and by file."""
    tiers: dict[str, list[Case]] = defaultdict(list)
    files: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        tiers[case.file.split("/")[1]].append(case)
        files[case.file].append(case)
    return {
        "all": _sums(cases),
        "tiers": {tier: _sums(tiers[tier]) for tier in sorted(tiers)},
        "files": {file: _sums(files[file]) for file in sorted(files)},
    }


def _sums(cases: Sequence[Case]) -> dict[str, Any]:
    endings = {ending: sum(case.ending == ending for case in cases) for ending in ("passed", "failed", "skipped")}
    return {
        "cases": len({case.test for case in cases}),
        **endings,
        "seconds": round(sum(case.seconds for case in cases), 2),
    }


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Write every test as a line of compressed CSV, in the order of the run; the same cases give the same bytes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["test", "ending", "seconds"])
    table.writerows([case.test, case.ending, f"{case.seconds:.3f}"] for case in cases)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def coverage_of(file: Path) -> dict[str, Any]:
    """Lines and branches, in all and by package; the code must still be where it was measured."""
    coverage = Coverage(data_file=str(file), config_file=False)
    coverage.load()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        coverage.json_report(outfile=report.name)
        measured = json.loads(Path(report.name).read_text("utf-8"))
    packages: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COUNTS, 0))
    for name, one in measured["files"].items():
        for count, theirs in _COUNTS.items():
            packages[package_of(name)][count] += one["summary"][theirs]
    total = {count: sum(package[count] for package in packages.values()) for count in _COUNTS}
    return {
        "all": _with_shares(total),
        "packages": {name: _with_shares(packages[name]) for name in sorted(packages)},
    }


def package_of(file: str) -> str:
    """The package below ``app`` or ``worker`` that a file belongs to; a module directly in one of them counts as it."""
    parts = Path(file).parts
    start = max(place for place, part in enumerate(parts[:-1]) if part in {"app", "worker"})
    return ".".join(parts[start : min(start + 2, len(parts) - 1)])


def _with_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """The counts with percentages; a package without branches has no percentage of branches."""
    shares = {
        f"{what}_percent": round(100 * counts[run] / counts[what], 2)
        for what, run in (("lines", "lines_run"), ("branches", "branches_taken"))
        if counts[what]
    }
    return {**counts, **shares}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures.tests", description="Write the tests' figures.")
    parser.add_argument("--junit", type=Path, help="written by pytest --junitxml")
    parser.add_argument("--coverage", type=Path, help="a coverage file with branches")
    parser.add_argument("--out", type=Path, required=True, help="the folder")
    asked = parser.parse_args(arguments)
    if asked.junit:
        cases = list(cases_of(asked.junit))
        _write(asked.out / "tests.json", figures_of(cases))
        write_cases(asked.out / "tests.csv.gz", cases)
    if asked.coverage:
        _write(asked.out / "coverage.json", coverage_of(asked.coverage))
    return 0


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
