"""``python -m bench.chaos --seed N --minutes M [--faults K] [--write]``: status 1 if a property does not hold."""

from __future__ import annotations

import argparse
import sys

from bench.chaos.plan import faults_of, plan
from bench.chaos.report import print_outcome, write_page
from bench.chaos.running import run


def main() -> int:
    """Print the plan, play it, print the result; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description="A campaign of faults, and its checker.")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same faults")
    parser.add_argument("--minutes", type=float, default=20.0, help="for how long (20)")
    parser.add_argument("--faults", type=int, help="how many (one in six seconds)")
    parser.add_argument("--plan", action="store_true", help="print the faults, and do nothing")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/reliability.md")
    asked = parser.parse_args()
    drawn = plan(asked.seed, asked.minutes, asked.faults or faults_of(asked.minutes))
    print(f"seed {asked.seed}: {len(drawn)} faults in {asked.minutes:g} minutes", flush=True)
    if asked.plan:
        print("\n".join(map(str, drawn)))
        return 0
    outcome = run(asked.seed, asked.minutes, drawn, lambda line: print(line, flush=True))
    print_outcome(outcome)
    if asked.write:
        write_page(outcome)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
