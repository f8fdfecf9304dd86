"""``python -m bench.attack [--only PART] [--seed N …] [--examples N] [--write]``: status 1 if something fails."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.attack import document, hostile, injecting, json_bodies, sockets, twins
from bench.attack.findings import Outcome
from bench.attack.report import Run, print_outcome, save, saved, write_page
from bench.attack.target import KEYS, Target, running_target

Attack = Callable[[Target, int, int], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part, and the service that it needs."""

    attack: Attack
    examples: int
    """The number of examples unless the command gives one; the part says what an example is."""
    settings: Mapping[str, str] = field(default_factory=dict)


PARTS: Final[Mapping[str, Part]] = {
    document.NAME: Part(attack=document.attack, examples=8),
    hostile.NAME: Part(attack=hostile.attack, examples=3),
    json_bodies.NAME: Part(attack=json_bodies.attack, examples=1),
    injecting.NAME: Part(attack=injecting.attack, examples=320, settings={"THROUGHLINE_VERIFY": "auto"}),
    twins.NAME: Part(attack=twins.attack, examples=twins.PAIRS),
    sockets.NAME: Part(attack=sockets.attack, examples=6, settings=sockets.SETTINGS),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a service for each part, attack it, print the results and perhaps write them."""
    parser = argparse.ArgumentParser(prog="python -m bench.attack", description="Attacks on a running service.")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="these parts (all)")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="what is drawn (1); several: as many runs")
    parser.add_argument("--examples", type=int, help="how much a part draws (each has a number of its own)")
    parser.add_argument("--saved", action="store_true", help="attack nothing: what these seeds found last")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/attacks.md")
    asked = parser.parse_args(arguments)
    chosen = asked.only or list(PARTS)
    for number, seed in enumerate(asked.seed if not asked.saved else ()):
        for name in chosen:
            save(_played(name, seed, asked.examples, is_first=not number), seed)
    runs = [
        Run(seed=seed, outcomes=[one for name in chosen if (one := saved(name, seed)) is not None])
        for seed in asked.seed
    ]
    if asked.write:
        only = "".join(f" --only {name}" for name in asked.only or ())
        seeds = " ".join(map(str, asked.seed))
        write_page(runs, f"python -m bench.attack --seed {seeds}{only}")
    return 0 if all(run.is_clean for run in runs) else 1


def _played(name: str, seed: int, examples: int | None, *, is_first: bool) -> Outcome:
    part = PARTS[name]
    count = examples or part.examples
    if name == document.NAME and not is_first:
        count = min(count, document.SYSTEMATIC - 1)  # its coverage phase draws nothing at random: once is enough
    keys = twins.keys_for(count) if name == twins.NAME else KEYS
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as folder,
        running_target(Path(folder), keys, **part.settings) as target,
    ):
        began = time.monotonic()
        outcome = part.attack(target, seed, count)
        outcome.figures["seconds"] = f"{time.monotonic() - began:.0f}"
        log = target.service.api.log
    outcome.expect("http.failed" not in log, "an unexpected error in the log", name, log[log.find("http.failed") :])
    print_outcome(outcome)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
