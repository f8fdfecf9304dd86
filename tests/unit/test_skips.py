"""What CI may skip, and that any other skip fails there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.skips import is_allowed, is_ci

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = """
import pytest

@pytest.mark.skipif(True, reason="needs ../shared/data/locomo")
def test_marked(): ...

def test_within():
    pytest.skip("not today")

@pytest.fixture
def missing():
    pytest.skip("no such thing")

def test_by_a_fixture(missing): ...

@pytest.mark.skip(reason="needs a Docker engine and THROUGHLINE_TESTCONTAINERS=1")
def test_docker(): ...

@pytest.mark.xfail(reason="known")
def test_known():
    raise AssertionError

def test_runs(): ...
"""


@pytest.mark.parametrize(
    "reason",
    [
        "needs a Docker engine and THROUGHLINE_TESTCONTAINERS=1",
        "docker compose is not installed",
        "Skipped: the distribution's PostgreSQL is not installed",
        "the example calls curl",
        "needs the Debian package valkey",
        "needs the git history: commit 150b694 is not there",
        "left out: the 1200 seconds of this run were over",
    ],
)
def test_docker_packages_and_time_are_allowed(reason: str) -> None:
    assert is_allowed(reason)


@pytest.mark.parametrize("reason", ["", "needs ../shared/data/locomo", "flaky", "no Docker, no time", "got empty set"])
def test_nothing_else_is(reason: str) -> None:
    assert not is_allowed(reason)


def test_where_it_is_ci() -> None:
    assert all(is_ci({"CI": value}) for value in ("true", "1", "TRUE"))
    assert not any(is_ci({"CI": value}) for value in ("false", "0", ""))
    assert not is_ci({})


def run(folder: Path, ci: str) -> tuple[int, str]:
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "test_whole.py").write_text('import pytest\npytest.importorskip("no_such_library")\n')
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider", "-p", "no:randomly"]
    env = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    argv += ["-c", os.devnull, "--rootdir", str(folder), "--continue-on-collection-errors", str(folder)]
    done = subprocess.run(argv, cwd=folder, env=env, check=False, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def test_in_ci_other_skips_fail_and_say_why(tmp_path: Path) -> None:
    code, output = run(tmp_path, "true")
    assert code == 1, output
    assert "skipped in CI: needs ../shared/data/locomo" in output
    assert "skipped in CI: not today" in output
    assert "skipped in CI: no such thing" in output
    assert "skipped in CI: could not import 'no_such_library'" in output
    assert "1 passed" in output
    assert "1 skipped" in output
    assert "1 xfailed" in output


@pytest.mark.long
def test_elsewhere_they_are_skipped(tmp_path: Path) -> None:
    """The control: the same suite outside CI."""
    code, output = run(tmp_path, "")
    assert code == 0, output
    assert "5 skipped" in output
