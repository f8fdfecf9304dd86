"""Makes agent runs of kinds that no data set at hand has: by code, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.made_runs import bank, cluster, coding, diary, hotel, office, retail, telecom

KINDS: Final[Mapping[str, Callable[[random.Random, str], dict[str, Any]]]] = {
    "retail": retail.run,
    "coding": coding.run,
    "telecom": telecom.run,
    "office": office.run,
    "hotel": hotel.run,
    "bank": bank.run,
    "cluster": cluster.run,
    "diary": diary.run,
}
"""The function that makes one run of each kind, by name."""

RUNS: Final = 15


def rows(kind: str, count: int = RUNS, seed: int = 1) -> list[dict[str, Any]]:
    """Runs of one kind; the same for the same seed.

    Raises:
        KeyError: There is no such kind.
    """
    make = KINDS[kind]
    return [make(random.Random(f"{kind}-{seed}-{number}"), f"made-{kind}-{number:03}") for number in range(count)]
