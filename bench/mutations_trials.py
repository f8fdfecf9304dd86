"""Tries mutations: changes one line in a copy of the tree, and runs the tests that reach that line.

The tree itself is only read. Copies are made next to it, so that tests find what is next to it (``../shared``). They
are removed at the end, like every process that a trial has started.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from coverage import CoverageData

from bench import mutations_plugin
from bench.figures.junit import cases_of
from bench.mutations_operators import Mutation, definition_lines, line_of, mutated, statement_lines

Outcome = Literal["killed", "survived", "timeout", "gone", "unreached"]

TIERS: Final = ("tests/unit/", "tests/integration/", "tests/acceptance/")
"""The folders of tests, the quickest first."""
MAX_SECONDS: Final = 120.0
"""Seconds of one trial: if no test has failed by then, it ends as ``timeout``."""
_UNKNOWN: Final = 1e6  # seconds assumed for a test that was not timed
_GRACE: Final = 15.0  # seconds in which an interrupted run may stop its servers
_MAX_NOISE: Final = 20  # tests that fail without the mutation too; after so many a trial has no verdict
_LEFT_OUT: Final = (".git", ".venv", ".data", ".hypothesis", ".*_cache", ".coverage*", "*.egg-info", "build")
_CLOCK: Final = re.compile("perf_counter|process_time|thread_time|monotonic")
_MARK: Final = "MUTATIONS_TRIAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of a mutation."""

    mutation: Mutation
    outcome: Outcome
    test: str | None = None
    """The test that killed it."""
    seconds: float = 0.0
    reaching: int = 0
    """How many tests reach the line."""
    passed: int = 0
    """How many of those tests passed before the end."""
    noise: tuple[str, ...] = ()
    """Tests that failed, but also fail without the mutation, or do not fail again with it."""

    def as_json(self) -> dict[str, Any]:
        """The trial for the file of results."""
        fields = asdict(self)
        return {**fields.pop("mutation"), **fields, "seconds": round(self.seconds, 1)}

    @classmethod
    def of_json(cls, fields: Mapping[str, Any]) -> Trial:
        """Read back what ``as_json`` has written."""
        mutation = Mutation(**{name: fields[name] for name in Mutation.__dataclass_fields__})
        own = {name: fields[name] for name in cls.__dataclass_fields__ if name != "mutation"}
        return cls(mutation=mutation, **(own | {"noise": tuple(own["noise"])}))


class Reach:
    """Which tests run which lines of a tree, and in which order they are tried."""

    def __init__(self, coverage_file: Path, tree: Path, seconds: Mapping[str, float]) -> None:
        """Read a coverage file.

        Args:
            coverage_file: The file, made on this very tree with ``--cov-context=test``.
            tree: The root of the tree.
            seconds: The seconds of each test, by id; tests without seconds come after the others.
        """
        self._data = CoverageData(basename=str(coverage_file))
        self._data.read()
        self._tree = tree
        self._seconds = seconds
        self._file_seconds: dict[str, float] = defaultdict(float)
        for test, spent in seconds.items():
            self._file_seconds[_file_of(test)] += spent
        self._one_at_a_time = threading.Lock()
        self._measured = self._data.measured_files()
        if not self._measured:
            raise ValueError(f"{coverage_file} holds no measured file; make it with --cov-context=test")

    def tests(self, mutation: Mutation) -> list[str]:
        """The tests that run the mutated line, tier by tier, the shortest first.

        A line that runs at import (a constant, a default, what a constant is made with) is reached by the tests that
        run any function of its module; in a module of nothing but data, by those that run any of its package.
        """
        source = (self._tree / mutation.file).read_text("utf-8")
        line = line_of(source, mutation)
        if line is None:
            return []
        with self._one_at_a_time:
            contexts = self._contexts(mutation.file)
            here = _contexts_of(contexts, statement_lines(source, line))
            if line in definition_lines(source) or "" in here:
                here |= _contexts_of(contexts, contexts)
                here = here if here - {""} else self._contexts_of_package(mutation.file)
        return sorted({_test_of(context) for context in here - {""}}, key=self._order)

    def _contexts(self, file: str) -> Mapping[int, Sequence[str]]:
        name = next((name for name in self._measured if name.endswith(f"/{file}")), None)
        return {} if name is None else self._data.contexts_by_lineno(name)

    def _contexts_of_package(self, file: str) -> set[str]:
        package = Path(file).parent
        files = [path.name for path in (self._tree / package).glob("*.py")]
        every = [self._contexts((package / name).as_posix()) for name in files]
        return {context for contexts in every for context in _contexts_of(contexts, contexts)}

    def _order(self, test: str) -> tuple[int, float, str, float, str]:
        """Tests with servers stay together by file, since a database is made for each file: the shortest file first."""
        tier, file = tier_of(test), _file_of(test)
        together = (self._file_seconds.get(file, _UNKNOWN), file) if tier else (0.0, "")
        return tier, *together, self._seconds.get(test, _UNKNOWN), test


def tier_of(test: str) -> int:
    """The index of a test's tier in ``TIERS``; one after the last for a test elsewhere."""
    return next((place for place, folder in enumerate(TIERS) if test.startswith(folder)), len(TIERS))


def _contexts_of(contexts: Mapping[int, Sequence[str]], lines: Iterable[int]) -> set[str]:
    return {context for line in lines for context in contexts.get(line, ())}


def _file_of(test: str) -> str:
    return test.split("::", maxsplit=1)[0]


def _test_of(context: str) -> str:
    """The test of a context such as ``tests/unit/test_x.py::test_y[a|b]|run``, without the phase."""
    return context.rpartition("|")[0]


def seconds_of(junit: Path) -> dict[str, float]:
    """Seconds of each test by id, read from a JUnit file that pytest has written."""
    found: dict[str, float] = {}
    for case in cases_of(junit):
        found[case.test] = found.get(case.test, 0.0) + case.seconds
    return found


class Bench:
    """Copies of one tree, in which mutations are tried."""

    def __init__(self, tree: Path, reach: Reach, *, most_seconds: float = MAX_SECONDS) -> None:
        self._tree = tree
        self._reach = reach
        self._most_seconds = most_seconds
        self._clean: Path | None = None
        self._fails_anyway: dict[str, bool] = {}
        self._one_at_a_time = threading.Lock()

    def try_one(self, mutation: Mutation, *, copy: Path) -> Trial:
        """Change the line in the copy, run the tests that reach it, put the line back."""
        path = copy / mutation.file
        source = path.read_text("utf-8") if path.exists() else ""
        changed = mutated(source, mutation)
        if changed is None:
            return Trial(mutation=mutation, outcome="gone")
        tests = self._reach.tests(mutation)
        if not tests:
            return Trial(mutation=mutation, outcome="unreached")
        try:
            _write_module(path, changed)
            return self._tried(mutation, tests, copy)
        finally:
            _write_module(path, source)

    def _tried(self, mutation: Mutation, tests: Sequence[str], copy: Path) -> Trial:
        begun = time.monotonic()
        trial = Trial(mutation=mutation, outcome="survived", reaching=len(tests))
        for tier in range(len(TIERS) + 1):
            trial = self._tried_tier(trial, [test for test in tests if tier_of(test) == tier], copy, begun)
            if trial.outcome != "survived":
                break
        return replace(trial, seconds=time.monotonic() - begun)

    def _tried_tier(self, trial: Trial, tests: Sequence[str], copy: Path, begun: float) -> Trial:
        waiting = list(tests)
        while waiting:
            left = self._most_seconds - (time.monotonic() - begun)
            run = run_tests(copy, waiting, seconds=left) if left > 0 else Run(ended=False)
            trial = replace(trial, passed=trial.passed + len(run.passed))
            if run.failed is None:
                return trial if run.ended else replace(trial, outcome="timeout")
            if not self._fails_without_mutation(run.failed) and _fails_again(copy, run.failed, self._most_seconds):
                return replace(trial, outcome="killed", test=run.failed)
            trial = replace(trial, noise=(*trial.noise, run.failed))
            if len(trial.noise) > _MAX_NOISE:
                raise RuntimeError(f"too many tests fail, but not because of the mutation: {', '.join(trial.noise)}")
            done = {run.failed, *run.passed}
            waiting = [test for test in waiting if test not in done and not test.startswith(f"{run.failed}::")]
        return trial

    def _fails_without_mutation(self, test: str) -> bool:
        """Whether a test fails on the unchanged tree; for a file that could not be collected, any of its tests."""
        with self._one_at_a_time:
            if self._clean is None:
                raise RuntimeError("copies are made by copies()")
            if test not in self._fails_anyway:
                run = run_tests(self._clean, [test], seconds=2 * self._most_seconds)
                self._fails_anyway[test] = run.failed is not None or not run.ended
            return self._fails_anyway[test]

    @contextlib.contextmanager
    def copies(self, count: int) -> Iterator[list[Path]]:
        """Make so many copies of the tree to try mutations in, and one more that stays unchanged."""
        with contextlib.ExitStack() as stack:
            made = [stack.enter_context(_copy_of(self._tree)) for _ in range(count + 1)]
            self._clean = made.pop()
            yield made


def _fails_again(copy: Path, test: str, seconds: float) -> bool:
    """Whether a test fails again. Only tests in files that look at a clock are run again; others count as failing."""
    if "::" not in test or not _CLOCK.search((copy / _file_of(test)).read_text("utf-8")):
        return True
    return run_tests(copy, [test], seconds=seconds).failed is not None


@contextlib.contextmanager
def _copy_of(tree: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutated-", dir=tree.resolve().parent) as folder:
        shutil.copytree(tree, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True, symlinks=True)
        plugin = Path(mutations_plugin.__file__)
        shutil.copy(plugin, Path(folder) / "bench" / plugin.name)
        yield Path(folder)


def _write_module(path: Path, source: str) -> None:
    """Write a module, and remove its compiled form, whose age is compared in whole seconds only."""
    path.write_text(source, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of pytest."""

    ended: bool
    """Whether it ended by itself."""
    failed: str | None = None
    """The test that failed, or the file that could not be collected."""
    passed: tuple[str, ...] = ()


def run_tests(tree: Path, tests: Sequence[str], *, seconds: float) -> Run:
    """Run these tests in this order up to the first failure; all started processes are ended afterwards.

    Args:
        tree: The root of a copy.
        tests: The ids of the tests; the tests of a file that is named itself are only collected.
        seconds: The run is ended after so many seconds.
    """
    with tempfile.TemporaryDirectory(prefix="m-", ignore_cleanup_errors=True) as folder:
        listed, noted = Path(folder) / "listed", Path(folder) / "noted"
        listed.write_text("\n".join(tests), encoding="utf-8")
        noted.touch()
        mark = Path(folder).name
        settings = {
            mutations_plugin.LISTED: str(listed),
            mutations_plugin.NOTED: str(noted),
            _MARK: mark,
            "HYPOTHESIS_PROFILE": "ci",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "TMPDIR": folder,
        }
        ended, status = _run(_command(tests), tree, os.environ | settings, seconds=seconds, mark=mark)
        notes = [json.loads(line) for line in noted.read_text("utf-8").splitlines()]
        failed = next((note["test"] for note in notes if note["failed"]), None)
        if failed is None and status in _BEFORE_ANY_TEST:
            failed = _file_of(tests[0])
        elif failed is None and status not in _WELL:
            ended = False  # ended from outside, which says nothing about the mutation
        return Run(ended=ended, failed=failed, passed=tuple(note["test"] for note in notes if not note["failed"]))


_BEFORE_ANY_TEST: Final = frozenset({pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR})
"""Exit statuses of errors before any test, for example if ``conftest.py`` cannot be imported."""
_WELL: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})


def _command(tests: Sequence[str]) -> list[str]:
    files = dict.fromkeys(_file_of(test) for test in tests)
    plugins = ["no:cacheprovider", "no:randomly", mutations_plugin.__name__]
    options = ["-x", "-q", "--no-header", "--tb=no", "-n", "0", "--hypothesis-seed=0"]
    return [sys.executable, "-m", "pytest", *options, *(f"-p{plugin}" for plugin in plugins), *files]


def _run(
    command: Sequence[str], tree: Path, environment: Mapping[str, str], *, seconds: float, mark: str
) -> tuple[bool, int]:
    """Run a command; return whether it ended by itself, and its exit status."""
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return True, process.wait(max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        return False, _ended(process)
    finally:
        if process.poll() is None:
            _ended(process)
        _end_marked(mark)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Interrupt the whole group, so that it stops its servers; then kill it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _end_marked(mark: str) -> None:
    """Kill the processes that a trial has left, in any session: they have its mark in their environment."""
    until = time.monotonic() + _GRACE
    while (left := _marked(f"{_MARK}={mark}".encode())) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def _marked(wanted: bytes) -> list[int]:
    """The ids of living processes with that in their environment; dead ones show no environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
