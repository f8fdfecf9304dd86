"""Lists the licences of everything that ``requirements.lock`` installs, as the packages themselves state them.

``python -m bench.licences`` prints them, ``--write`` puts them into ``docs/licences.md``. It reads the metadata of the
packages in this environment: run it after ``make check``, which installs what the lock names.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

from bench.measurements import write

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "requirements.lock"
PAGE: Final = ROOT / "docs" / "licences.md"
ELSEWHERE: Final = "installed only on some platforms or versions of Python"
UNSTATED: Final = "not stated"
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==", re.MULTILINE)
_CLASSIFIER: Final = "License :: OSI Approved :: "
_MAX_NAME_LENGTH: Final = 60
"""Characters: a longer ``License`` field holds the text of the licence, whose first line names it."""


@dataclass(frozen=True, slots=True)
class Licensed:
    """A package with its licence."""

    name: str
    licence: str


def licences(lock: str) -> Iterator[Licensed]:
    """Every pinned package of a lock file, in its order."""
    for name in _PINNED.findall(lock):
        try:
            yield Licensed(name, licence_of(metadata(name)))
        except PackageNotFoundError:
            yield Licensed(name, ELSEWHERE)


def licence_of(stated: PackageMetadata) -> str:
    """The licence in a package's metadata: the SPDX expression, else the classifiers, else the old free field."""
    if expression := _first(stated, "License-Expression"):
        return expression
    given: list[str] = stated.get_all("Classifier") or []
    approved = sorted(one.removeprefix(_CLASSIFIER) for one in given if one.startswith(_CLASSIFIER))
    return " or ".join(approved) or _first(stated, "License") or UNSTATED


def _first(stated: PackageMetadata, field: str) -> str:
    """The first line of a field; empty where it is missing."""
    lines = [line.strip() for text in stated.get_all(field) or [] for line in str(text).splitlines()]
    return next(filter(None, lines), "")[:_MAX_NAME_LENGTH].strip()


def table(found: Sequence[Licensed]) -> str:
    """The table as it is on the page."""
    rows = [f"| {one.name} | {one.licence} |" for one in found]
    return "\n".join(["| package | licence |", "|---|---|", *rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/licences.md")
    asked = parser.parse_args(arguments)
    found = table(list(licences(LOCK.read_text(encoding="utf-8"))))
    print(found)
    if asked.write:
        write("bench:licences", found, PAGE)


if __name__ == "__main__":
    main()
