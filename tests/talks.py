"""Whole conversations with questions: made-up ones, which are a part of this repository, and those of LoCoMo.

LoCoMo may not be redistributed: its cases are added if it is next to this checkout, and belong to the long tier.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

Json = dict[str, Any]

ROOT: Final = Path(__file__).parents[1]
MADE: Final = ROOT / "bench" / "made_talks"
LOCOMO: Final = ROOT.parent / "shared" / "data" / "locomo" / "conversations.jsonl"


def made_talk(name: str) -> Json:
    """One of ``bench/made_talks``: ``id``, ``messages`` and ``questions`` with the ``seq`` of their evidence."""
    (talk,) = _read(MADE / f"{name}.jsonl")
    return talk


def locomo() -> list[Json]:
    """The talks of LoCoMo in the same form; empty if they are not there."""
    return _read(LOCOMO) if LOCOMO.exists() else []


def with_locomo(own: object, theirs: object) -> list[Any]:
    """Parameters of a test: a value (or a tuple of several) for made-up talks, and one for LoCoMo's if it is there."""
    more = [pytest.param(*_values(theirs), marks=pytest.mark.long, id="locomo")] if LOCOMO.exists() else []
    return [pytest.param(*_values(own), id="made"), *more]


def _values(given: object) -> tuple[object, ...]:
    return given if isinstance(given, tuple) else (given,)


def _read(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
