"""Reads what pytest says of each test from the file that ``--junitxml`` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

Ending = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test of a run."""

    file: str
    name: str
    """The id without the file: class, function and parameters."""
    ending: Ending
    seconds: float
    """Seconds of the test, set-up and tear-down included."""

    @property
    def test(self) -> str:
        """The id that pytest knows it by."""
        return f"{self.file}::{self.name}"


def cases_of(junit: Path) -> Iterator[Case]:
    """Every test in the file; one that also failed in its tear-down comes twice."""
    for case in ET.parse(junit).iter("testcase"):  # noqa: S314 - our own file
        file, classes = _module_and_classes(case.get("classname", ""))
        yield Case(
            file=file,
            name="::".join([*classes, case.get("name", "")]),
            ending=_ending(case),
            seconds=float(case.get("time", "0")),
        )


def _ending(case: ET.Element) -> Ending:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def _module_and_classes(classname: str) -> tuple[str, list[str]]:
    """The module's path and the names of the classes in it, from a name such as ``tests.unit.test_x.TestY``."""
    parts = classname.split(".")
    last = max((place for place, part in enumerate(parts) if part.startswith("test_")), default=len(parts) - 1)
    return "/".join(parts[: last + 1]) + ".py", parts[last + 1 :]
