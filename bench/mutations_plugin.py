"""The pytest plugin for trying a mutation: runs the listed tests in the listed order, and notes how each ended.

The files' names come from the environment, so that this module also works in trees that do not contain it.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LISTED = "MUTATIONS_LISTED"
"""The variable with the name of a file: ids of tests, one in each line, the first to be run first."""
NOTED = "MUTATIONS_NOTED"
"""The variable with the name of a file to which a JSON object is added for each outcome: ``test`` and ``failed``."""


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let an interruption end the run in good order, and let no property test fail because the machine is busy."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells tell their jobs to ignore it
    settings.register_profile(
        "mutations", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
    )
    settings.load_profile("mutations")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the listed tests, in that order."""
    places = {test: place for place, test in enumerate(Path(os.environ[LISTED]).read_text("utf-8").split("\n"))}
    left_out = [item for item in items if item.nodeid not in places]
    items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])
    config.hook.pytest_deselected(items=left_out)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note each failure of any phase, and each call that passed."""
    if report.failed or (report.when == "call" and report.passed):
        _note(report.nodeid, failed=report.failed)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that could not be imported."""
    if report.failed:
        _note(report.nodeid, failed=True)


def _note(test: str, *, failed: bool) -> None:
    with Path(os.environ[NOTED]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "failed": failed}) + "\n")
