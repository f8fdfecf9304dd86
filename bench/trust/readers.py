"""Counts which changes of honest texts two readers call worse, and how far the readers agree.

Each reads the rows of ``--changes`` without knowing the checks, and writes a JSON line ``{"id", "worse"}`` for each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Both readers' judgements of the changes of one kind of text."""

    texts: int
    """How many honest texts of that kind there are, changed or not."""
    changed: int
    by_both: int
    """How many changes both readers call worse."""
    by_either: int


def judgements(path: Path) -> dict[str, bool]:
    """Whether a reader calls each change worse, by the change's id.

    Raises:
        ValueError: A line is not a judgement, or two are about one change.
    """
    found: dict[str, bool] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        row = json.loads(line)
        if not isinstance(row, dict) or not isinstance(row.get("worse"), bool) or str(row.get("id")) in found:
            raise ValueError(f"{path}, line {number}")
        found[str(row["id"])] = row["worse"]
    return found


def readings_of(
    changes: Iterable[Mapping[str, Any]], one: Mapping[str, bool], other: Mapping[str, bool], texts: Mapping[str, int]
) -> dict[str, Reading]:
    """The readings by kind of text (item, narrative, digest, answer).

    Args:
        changes: As ``--changes`` writes them.
        one: The first reader's judgements.
        other: The second reader's judgements.
        texts: How many honest texts there are of each kind.

    Raises:
        ValueError: A change was not judged by both readers, or a judgement is about no change.
    """
    kinds = {str(change["id"]): str(change["kind"]) for change in changes}
    if kinds.keys() != one.keys() or kinds.keys() != other.keys():
        raise ValueError("Both readers judge each change, and nothing else.")
    changed = Counter(kinds.values())
    both = Counter(kind for id_, kind in kinds.items() if one[id_] and other[id_])
    either = Counter(kind for id_, kind in kinds.items() if one[id_] or other[id_])
    return {
        kind: Reading(texts=count, changed=changed[kind], by_both=both[kind], by_either=either[kind])
        for kind, count in texts.items()
    }


def kappa(one: Sequence[bool], other: Sequence[bool]) -> float | None:
    """Cohen's kappa of two readers' judgements on the same changes; ``None`` if chance alone explains all.

    Args:
        one: The first reader's judgements.
        other: The second reader's judgements of the same changes, in the same order.
    """
    pairs = list(zip(one, other, strict=True))
    if not pairs:
        return None
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    first, second = sum(one) / len(pairs), sum(other) / len(pairs)
    by_chance = first * second + (1 - first) * (1 - second)
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
