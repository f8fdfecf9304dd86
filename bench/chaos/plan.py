"""Decides which faults are caused, when and for how long: drawn by a seed, so the same numbers give the same plan."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

NODES: Final = ("node-1", "node-2")
"""Each is one API process and one worker."""
APIS: Final = tuple(f"api-{node}" for node in NODES)
WORKERS: Final = tuple(f"worker-{node}" for node in NODES)
DATABASE: Final = "PostgreSQL"
BROKER: Final = "Valkey"
MODEL: Final = "model"
CLIENT_LINKS: Final = tuple(f"clients to {api}" for api in APIS)
DATABASE_LINKS: Final = tuple(f"{node} to {DATABASE}" for node in NODES)
BROKER_LINKS: Final = tuple(f"{node} to {BROKER}" for node in NODES)
MODEL_LINK: Final = "nodes to model"
LINKS: Final = (*CLIENT_LINKS, *DATABASE_LINKS, *BROKER_LINKS, MODEL_LINK)

_INSTANT: Final = (0.0, 0.0)
_DOWN: Final = (1.0, 4.0)
_SILENT: Final = (2.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The targets and durations of a kind of fault."""

    targets: Sequence[str]
    seconds: tuple[float, float]
    """The shortest and the longest duration; zeros: it is over at once."""
    variants: Sequence[str] = ("",)


SHAPES: Final[Mapping[str, Shape]] = {
    "kill -9": Shape(targets=(*APIS, *WORKERS), seconds=_DOWN),
    "kill -9 of a server": Shape(targets=(DATABASE, BROKER), seconds=_DOWN),
    "kill -9 of the pool": Shape(targets=WORKERS, seconds=_INSTANT),
    "restart": Shape(targets=(*APIS, *WORKERS), seconds=_INSTANT),
    "freeze": Shape(targets=(*APIS, *WORKERS), seconds=_SILENT),
    "freeze of a server": Shape(targets=(DATABASE, BROKER), seconds=_SILENT),
    "flush": Shape(targets=(BROKER,), seconds=_INSTANT),
    "full memory": Shape(targets=(BROKER,), seconds=_SILENT),
    "full disk": Shape(targets=(DATABASE,), seconds=_DOWN),
    "cut": Shape(targets=LINKS, seconds=_INSTANT),
    "delay": Shape(targets=LINKS, seconds=_SILENT, variants=("0.05", "0.3")),
    "refuse": Shape(targets=LINKS, seconds=_DOWN),
    "silence": Shape(targets=LINKS, seconds=_SILENT),
    "clock step": Shape(targets=NODES, seconds=_SILENT, variants=("-300", "-2", "5", "300")),
    "model hangs": Shape(targets=(MODEL,), seconds=_SILENT, variants=("chat:hang", "compaction:hang")),
    "model lies": Shape(
        targets=(MODEL,),
        seconds=_SILENT,
        variants=(
            "compaction:invented",
            "compaction:skeleton",
            "compaction:larger",
            "compaction:foreign",
            "compaction:forgets",
            "chat:empty",
        ),
    ),
    "model breaks off": Shape(
        targets=(MODEL,), seconds=_SILENT, variants=("chat:reset_midway", "compaction:cut", "compaction:reset")
    ),
    "model refuses": Shape(
        targets=(MODEL,),
        seconds=_SILENT,
        variants=("chat:error_429", "chat:error_503", "chat:safety_empty", "compaction:error_500", "compaction:safety"),
    ),
}
"""The shape of each kind; every kind is used before any is used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault."""

    at: float
    """Seconds after the clients began."""
    kind: str
    target: str
    seconds: float
    """Seconds until the fault is ended; 0 if it is over at once."""
    variant: str = ""

    @property
    def ends(self) -> float:
        """The time when it is ended."""
        return self.at + self.seconds

    def __str__(self) -> str:
        variant = f" ({self.variant})" if self.variant else ""
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:7.1f} s  {self.kind}{variant}: {self.target}{lasting}"


def faults_of(minutes: float) -> int:
    """How many faults so many minutes have by default: one in six seconds."""
    return max(1, round(minutes * 10))


def plan(seed: int, minutes: float, count: int) -> tuple[Fault, ...]:
    """The faults of a campaign, in order; those of one target never overlap.

    Args:
        seed: The same seed gives the same plan.
        minutes: For how many minutes faults begin, while the clients work.
        count: How many faults there are.
    """
    drawn = random.Random(seed)
    step, free_at = minutes * 60 / count, dict[str, float]()
    faults: list[Fault] = []
    for number, kind in enumerate(_kinds(drawn, count)):
        at = round((number + drawn.uniform(0.1, 0.9)) * step, 1)
        shape = SHAPES[kind]
        free = [target for target in shape.targets if free_at.get(target, 0.0) <= at]
        target = drawn.choice(free or shape.targets)
        start = max(at, round(free_at.get(target, 0.0) + 0.1, 1)) if not free else at
        fault = Fault(
            at=start,
            kind=kind,
            target=target,
            seconds=round(drawn.uniform(*shape.seconds), 1),
            variant=drawn.choice(shape.variants),
        )
        free_at[target] = fault.ends
        faults.append(fault)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _kinds(drawn: random.Random, count: int) -> list[str]:
    """So many kinds in random order, each about as often as any other."""
    kinds: list[str] = []
    while len(kinds) < count:
        kinds += drawn.sample(sorted(SHAPES), len(SHAPES))
    return kinds[:count]
