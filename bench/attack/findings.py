"""The outcome of a part of the attack: what was done, in numbers, and what did not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

MAX_EVIDENCE_LENGTH: Final = 600
"""The most characters of evidence that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that did not hold."""

    what: str
    where: str
    evidence: str = ""

    def __str__(self) -> str:
        return f"{self.what} [{self.where}] {self.evidence}".rstrip()


@dataclass(slots=True)
class Outcome:
    """The outcome of one part, filled while it runs."""

    part: str
    counts: Counter[str] = field(default_factory=Counter)
    """How often each thing was done or answered."""
    figures: dict[str, str] = field(default_factory=dict)
    """Figures that are not counts: ratios, seconds."""
    findings: list[Finding] = field(default_factory=list)

    def found(self, what: str, where: str, evidence: object = "") -> None:
        """Note something that did not hold."""
        self.findings.append(Finding(what=what, where=where, evidence=str(evidence)[:MAX_EVIDENCE_LENGTH]))

    def expect(self, holds: object, what: str, where: str, evidence: object = "") -> None:
        """Count a check, and note it if it does not hold."""
        self.counts["checks"] += 1
        if not holds:
            self.found(what, where, evidence)
