"""Tests whether the tests notice small defects: single-line mutations, chosen once, tried on any version of the code.

``python -m bench.mutations choose --seed 7 --count 72`` writes ``bench/mutations.json``: mutations of planning,
policies, merge, leases and tenancy, in equal parts. ``run --tree PATH --reach FILE --out FILE`` tries each with the
tests that reach its line, up to the first failure or for two minutes. ``--reach`` is a coverage file of that tree, made
with ``COVERAGE_FILE=FILE python -m pytest --cov=app --cov=worker --cov-branch --cov-context=test``. With the file that
``--junitxml`` wrote in the same run, given as ``--seconds``, the shortest tests come first.

``compare BEFORE AFTER`` names each mutation that was killed before and is not any more; if there are any, it exits with
status 1.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, get_args

from bench.mutations_operators import Mutation, chosen, mutations_of
from bench.mutations_trials import Bench, Outcome, Reach, Trial, seconds_of
from bench.report import print_table

AREAS: Final[Mapping[str, Sequence[str]]] = {
    "planning": ("app/core/planning/*.py",),
    "policies": ("app/core/model/policies/*.py",),
    "merge": ("app/core/state/merge.py", "app/core/state/apply.py"),
    "leases": (
        "app/usecases/shared/lease.py",
        "app/usecases/compaction/claiming.py",
        "app/usecases/chat/turn_watch.py",
        "app/storage/repositories/database_time.py",
        "app/storage/repositories/turns.py",
        "app/storage/repositories/compactions.py",
    ),
    "tenancy": (
        "app/storage/tenancy.py",
        "app/storage/scoped_session.py",
        "app/storage/unit_of_work.py",
        "app/storage/repositories/base.py",
    ),
}
"""The files in which mutations are chosen: patterns relative to the root of the tree, by area."""
LIST: Final = Path(__file__).with_suffix(".json")
_MAX_AT_ONCE: Final = 2


def candidates(tree: Path) -> list[Mutation]:
    """Every mutation of every area."""
    return [
        mutation
        for area, patterns in AREAS.items()
        for pattern in patterns
        for path in sorted(tree.glob(pattern))
        for mutation in mutations_of(path.read_text("utf-8"), file=path.relative_to(tree).as_posix(), area=area)
    ]


def read_list(path: Path = LIST) -> list[Mutation]:
    """The mutations that were chosen."""
    return [Mutation(**fields) for fields in json.loads(path.read_text("utf-8"))["mutations"]]


def choose(tree: Path, *, count: int, seed: int, out: Path) -> None:
    """Choose mutations, and write the list."""
    mutations = chosen(candidates(tree), count=count, seed=seed)
    _write(out, {"seed": seed, "count": count, "mutations": [asdict(mutation) for mutation in mutations]})
    by_area = Counter(mutation.area for mutation in mutations)
    print(f"{len(mutations)} mutations: " + ", ".join(f"{area} {number}" for area, number in sorted(by_area.items())))


def run(tree: Path, *, reach: Reach, out: Path, listed: Sequence[Mutation], at_once: int) -> list[Trial]:
    """Try the listed mutations; results that ``out`` already has are kept, so that a run can be continued."""
    done = {trial.mutation: trial for trial in read_trials(out)} if out.exists() else {}
    waiting = [mutation for mutation in listed if mutation not in done]
    if len(waiting) < len(listed):
        print(f"{len(listed) - len(waiting)} results are kept from {out}", file=sys.stderr)
    for trial in _tried(Bench(tree, reach), waiting, at_once=at_once):
        done[trial.mutation] = trial
        results = [done[mutation] for mutation in listed if mutation in done]
        _write(out, {"commit": _commit(tree), "results": [one.as_json() for one in results]})
        print(_line(trial), file=sys.stderr, flush=True)
    return [done[mutation] for mutation in listed]


def _tried(bench: Bench, mutations: Sequence[Mutation], *, at_once: int) -> Iterator[Trial]:
    """Yield each trial as soon as it is over."""
    with bench.copies(at_once) as copies, ThreadPoolExecutor(at_once) as pool:
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)

        def tried(mutation: Mutation) -> Trial:
            copy = free.get()
            try:
                return bench.try_one(mutation, copy=copy)
            finally:
                free.put(copy)

        trials = [pool.submit(tried, mutation) for mutation in mutations]
        try:
            for trial in as_completed(trials):
                yield trial.result()
        finally:
            pool.shutdown(cancel_futures=True)


def read_trials(path: Path) -> list[Trial]:
    """The results of a run."""
    return [Trial.of_json(fields) for fields in json.loads(path.read_text("utf-8"))["results"]]


def print_trials(trials: Sequence[Trial]) -> None:
    """Print a table by area, and the mutations that survived."""
    outcomes = get_args(Outcome)
    areas = sorted({trial.mutation.area for trial in trials})
    counts = Counter((trial.mutation.area, trial.outcome) for trial in trials)
    rows = [[area, *(str(counts[area, outcome]) for outcome in outcomes)] for area in areas]
    totals = [str(sum(counts[area, outcome] for area in areas)) for outcome in outcomes]
    print_table(["area", *outcomes], [*rows, ["all", *totals]])
    for trial in trials:
        if trial.outcome != "killed":
            print(_line(trial))


def differences(before: Iterable[Trial], after: Iterable[Trial]) -> list[str]:
    """Each mutation that was killed before and is not killed after, with its outcome.

    Its file may have another name after, and its line another indent.
    """
    later = {_without_file(trial.mutation): trial.outcome for trial in after}
    became = [(trial, later.get(_without_file(trial.mutation), "not tried")) for trial in before]
    return [
        f"{outcome}, killed before by {trial.test}: {_place(trial.mutation)}"
        for trial, outcome in became
        if trial.outcome == "killed" and outcome != "killed"
    ]


def _without_file(mutation: Mutation) -> Mutation:
    return replace(mutation, file="", old=mutation.old.strip(), new=mutation.new.strip())


def _line(trial: Trial) -> str:
    by = f" by {trial.test}" if trial.test else f" ({trial.passed} of {trial.reaching} tests passed)"
    return f"{trial.outcome}{by}, {trial.seconds:.1f} s: {_place(trial.mutation)}"


def _place(mutation: Mutation) -> str:
    return f"{mutation.file}: {mutation.old.strip()} -> {mutation.new.strip()}"


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _commit(tree: Path) -> str:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.mutations", description="Try the tests with small defects.")
    commands = parser.add_subparsers(dest="command", required=True)
    choosing = commands.add_parser("choose", help="write a list of mutations")
    choosing.add_argument("--tree", type=Path, default=Path(), help="root of the code (this folder)")
    choosing.add_argument("--seed", type=int, default=7)
    choosing.add_argument("--count", type=int, default=72)
    choosing.add_argument("--out", type=Path, default=LIST)
    running = commands.add_parser("run", help="try each mutation with the tests that reach its line")
    running.add_argument("--tree", type=Path, default=Path(), help="root of the code (this folder)")
    running.add_argument("--list", type=Path, default=LIST, help="made by choose")
    running.add_argument("--reach", type=Path, required=True, help="coverage file of that tree, with contexts")
    running.add_argument("--seconds", type=Path, help="JUnit file of the same tests: the shortest are tried first")
    running.add_argument("--out", type=Path, required=True, help="where results go; a run that was ended continues it")
    running.add_argument("--at-once", type=int, choices=range(1, _MAX_AT_ONCE + 1), default=_MAX_AT_ONCE)
    comparing = commands.add_parser("compare", help="exit with 1 if a mutation is not killed any more")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    asked = _parser().parse_args(arguments)
    if asked.command == "choose":
        choose(asked.tree, count=asked.count, seed=asked.seed, out=asked.out)
        return 0
    if asked.command == "run":
        tree = asked.tree.resolve()
        reach = Reach(asked.reach, tree, seconds_of(asked.seconds) if asked.seconds else {})
        print_trials(run(tree, reach=reach, out=asked.out, listed=read_list(asked.list), at_once=asked.at_once))
        return 0
    found = differences(read_trials(asked.before), read_trials(asked.after))
    for difference in found:
        print(difference)
    print(f"{len(found)} of the mutations that were killed before are not killed now" if found else "none is lost")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
