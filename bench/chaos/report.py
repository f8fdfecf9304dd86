"""Writes the outcome of a campaign: to the terminal, and as a row of ``docs/reliability.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.chaos.checker import PROPERTIES, Campaign, Violation
from bench.chaos.plan import Fault
from bench.measurements import write

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
MARK: Final = "chaos"
MAX_SHOWN: Final = 5
"""The most violations of one property that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A campaign that is over."""

    seed: int
    minutes: float
    plan: tuple[Fault, ...]
    campaign: Campaign
    violations: Sequence[Violation]
    settled_after: float
    """Seconds from the last fault until all work was done."""
    revived: Sequence[str] = ()
    """Processes that ended although the plan did not end them, and were restarted."""
    unexpected: Sequence[str] = ()
    """Unexpected errors in the logs of the processes."""

    @property
    def figures(self) -> Mapping[str, str]:
        """The numbers of what was done."""
        log, rows = self.campaign.log, self.campaign.conversations
        acknowledged = [one for one in log.said if one.answered_at is not None]
        compactions = Counter(row.status for one in rows for row in one.compactions)
        longest = max(((one.answered_at or 0) - one.asked_at for one in acknowledged), default=0.0)
        return {
            "acknowledged messages": str(len(acknowledged)),
            "of them after more than one try": str(sum(one.tries > 1 for one in acknowledged)),
            "not answered, for a later turn was first": str(sum(one.refused is not None for one in log.said)),
            "sent again afterwards": str(sum(len(one.answers) > 1 for one in log.said)),
            "turns": str(sum(len(one.turns) for one in rows)),
            "compactions applied": str(compactions["applied"]),
            "compactions otherwise ended": str(compactions.total() - compactions["applied"]),
            "state versions": str(sum(len(one.states) for one in rows)),
            "restored": str(sum(one.answered_at is not None for one in log.restored)),
            "erased": str(sum(one.answered_at is not None for one in log.erased)),
            "reads and contexts": str(len(log.reads)),
            "events told to followers": str(sum(len(one.events) for one in log.followed)),
            "longest wait for an acknowledgement, s": f"{longest:.1f}",
            "at rest after the last fault, s": f"{self.settled_after:.1f}",
            "processes that ended by themselves": ", ".join(self.revived) or "0",
        }


def command(seed: int, minutes: float, faults: int) -> str:
    """The command that repeats a campaign."""
    return f"python -m bench.chaos --seed {seed} --minutes {minutes:g} --faults {faults}"


def print_outcome(outcome: Outcome) -> None:
    """Print the figures, then each property."""
    print()
    for name, value in outcome.figures.items():
        print(f"{value:>8}  {name}")
    print()
    broken = Counter(one.property for one in outcome.violations)
    for name in PROPERTIES:
        print(f"{'BROKEN' if broken[name] else 'holds':>8}  {name}" + (f" ({broken[name]})" if broken[name] else ""))
        for one in [one for one in outcome.violations if one.property == name][:MAX_SHOWN]:
            print(f"          {one.evidence[:600]}")
    if outcome.violations:
        for line in outcome.unexpected[:MAX_SHOWN]:
            print(f"          {line[:600]}")
        again = command(outcome.seed, outcome.minutes, len(outcome.plan))
        print(f"\nBroken: {', '.join(broken)}. The same faults again: {again}")


def write_page(outcome: Outcome) -> None:
    """Put the figures of a campaign into the page."""
    kinds, broken = Counter(fault.kind for fault in outcome.plan), {one.property for one in outcome.violations}
    rows = [
        ("command", f"`{command(outcome.seed, outcome.minutes, len(outcome.plan))}`"),
        ("faults", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))),
        *outcome.figures.items(),
        ("properties that hold", f"{len(PROPERTIES) - len(broken)} of {len(PROPERTIES)}"),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    write(MARK, "\n".join(lines), PAGE)
