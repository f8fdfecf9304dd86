"""In CI a test may be skipped only for want of Docker, a Debian package, a package index, the history, or time.

Anything else is a failure.

A plugin of pytest: ``pytest_plugins = ["tests.skips"]`` in ``tests/conftest.py`` puts it to work where ``CI`` is true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from typing import Final

import pytest

ALLOWED: Final[Mapping[str, re.Pattern[str]]] = {
    "Docker": re.compile(r"needs a Docker engine|docker compose is not installed"),
    "a Debian package": re.compile(
        r"needs the Debian package \S+|the distribution's PostgreSQL is not installed|the example calls curl"
        r"|the examples are for a shell"
    ),
    "a package index": re.compile(r"needs a package index"),
    "the git history": re.compile(r"needs the git history: "),
    "a package registry": re.compile(r"the packages of the example cannot be installed here"),
    "time": re.compile(r"left out: "),
}
"""What may be missing, with the beginning of the skip's reason."""


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether tests run in CI, which most services show with ``CI=true`` or ``CI=1``."""
    return environment.get("CI", "").strip().casefold() in {"1", "true", "yes"}


def is_allowed(reason: str) -> bool:
    """Whether CI may skip a test for that reason."""
    said = reason.removeprefix("Skipped: ")
    return any(pattern.match(said) for pattern in ALLOWED.values())


def refusal(reason: str) -> str:
    """The message about a skip that CI does not allow."""
    said = reason.removeprefix("Skipped: ") or "no reason given"
    return f"skipped in CI: {said}\nIn CI only what needs {', '.join(ALLOWED)} may be skipped (tests/skips.py)."


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    place = report.longrepr
    reason = str(place[2]) if isinstance(place, tuple) else str(place or "")
    if is_ci(os.environ) and not is_allowed(reason):
        report.outcome = "failed"
        report.longrepr = refusal(reason)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a failure of a test's skip, be it by a mark, in a fixture or in the test."""
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make a failure of a module that is skipped as a whole."""
    report = yield
    _refuse(report)
    return report
