"""What two readers call worse, of the honest texts that were changed: figures by their word, and their agreement.

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
    """What both say of the changes of one kind of text."""

    texts: int
    """Honest texts of that kind, changed or not."""
    changed: int
    by_both: int
    """Called worse by both readers."""
    by_either: int


def judgements(path: Path) -> dict[str, bool]:
    """By the change's id, whether a reader calls it worse.

    Raises:
        ValueError: A line is no judgement, or two are about one change.
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
    """By kind of text (item, narrative, digest, answer).

    Args:
        changes: As ``--changes`` writes them.
        one: The first reader's judgements.
        other: The second's.
        texts: How many honest texts there are of each kind.

    Raises:
        ValueError: A change was not judged by both, or a judgement is about none.
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
    """Cohen's kappa of two readers' judgements on the same changes; ``None`` where chance alone explains all.

    Args:
        one: In an order that both have.
        other: Of the same length.
    """
    pairs = list(zip(one, other, strict=True))
    if not pairs:
        return None
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    first, second = sum(one) / len(pairs), sum(other) / len(pairs)
    by_chance = first * second + (1 - first) * (1 - second)
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
