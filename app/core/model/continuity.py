"""What a conversation can still answer after a compaction, in numbers: no text."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, Literal, get_args

from app.core.model.fieldwise import combine_fields

ProbeKind = Literal["value", "decision", "open_point", "who", "when"]
"""What a probe asks for: an exact value, what was decided or promised, what is open, who is responsible for
something, or its day or time."""
PROBE_KINDS: Final[tuple[ProbeKind, ...]] = get_args(ProbeKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The counts of probes of one kind."""

    before: int = 0
    """How many were answered from the context that was served before the compaction."""
    after: int = 0
    """How many of those were answered from the context that is served now."""
    contradicted: int = 0
    """How many of those were answered differently than the messages do."""

    def plus(self, other: Answered) -> Answered:
        """The sum."""
        return combine_fields(operator.add, self, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """The score of a compaction, over the probes of all its chunks."""

    kinds: Mapping[ProbeKind, Answered] = field(default_factory=dict)
    """The counts for each kind of which there was a probe."""
    tone: float | None = None
    """How well the tone of the last chunk was kept, from 0 to 1; ``None`` if it had no recognisable tone."""

    @property
    def total(self) -> Answered:
        """The counts over all kinds."""
        return reduce(Answered.plus, self.kinds.values(), Answered())

    @property
    def recall(self) -> float | None:
        """Answered after ÷ answered before; ``None`` without a probe."""
        return _share(self.total.after, self.total.before)

    @property
    def contradiction(self) -> float | None:
        """The share of probes that are answered differently than the messages do; ``None`` without a probe."""
        return _share(self.total.contradicted, self.total.before)

    @property
    def score(self) -> float | None:
        """Recall minus contradiction: the score that a policy's floor is compared with; ``None`` without a probe."""
        total = self.total
        return _share(total.after - total.contradicted, total.before)

    def plus(self, later: Continuity) -> Continuity:
        """This score joined with that of a later chunk."""
        kinds = {
            kind: self.kinds.get(kind, Answered()).plus(later.kinds.get(kind, Answered()))
            for kind in PROBE_KINDS
            if kind in self.kinds or kind in later.kinds
        }
        return Continuity(kinds=kinds, tone=self.tone if later.tone is None else later.tone)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that is shown."""
        total = self.total
        return {
            "before": total.before,
            "after": total.after,
            "recall": self.recall,
            "contradiction": self.contradiction,
            "tone": self.tone,
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
