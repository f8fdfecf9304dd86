"""``python -m bench.trust.orders``: which statements about standing rules are taken for orders from nowhere.

Short conversations in which people set rules, agree to some or have them promised, with what an honest writer says of
that and what a lying one does. Every second one was worked on; the others (``sealed-values``) are only counted. Of lies
those alone are code's business that are orders in their form; what else is untrue is the verifier's.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.validation.exact import examine
from app.core.validation.orders import orders_in
from bench.report import print_table
from bench.trust.values import Block, blocks

_ROOT: Final = Path(__file__).resolve().parents[2]
HALVES: Final = {
    "open": _ROOT / "tests" / "corpora" / "standing_rules.jsonl",
    "sealed": _ROOT / "bench" / "trust" / "sealed-values" / "standing_rules.jsonl",
}
Count = Counter[tuple[str, str]]
"""By kind (``honest``, ``lie``) and ``all``, ``orders`` (by their form) or ``failing``."""


def counted(given: Iterable[Block]) -> Count:
    """How many statements there are, how many read like orders, and how many of these fail."""
    found: Count = Counter()
    for block in given:
        for text, seqs, kind in block.statements:
            told = CandidateItem(field="facts", text=text, from_seqs=seqs)
            failures = examine(Candidate(narrative={}, items=(told,)), block.shown).failures
            found[kind, "all"] += 1
            found[kind, "orders"] += bool(orders_in(text))
            found[kind, "failing"] += any(failure.reason == "order" for failure in failures)
    return found


def main() -> int:
    """The command; its exit status."""
    rows = []
    for name, path in HALVES.items():
        found = counted(blocks(map(json.loads, path.open(encoding="utf-8"))))
        rows += [
            [name, kind, *(str(found[kind, what]) for what in ("all", "orders", "failing"))]
            for kind in ("honest", "lie")
        ]
    print_table(["half", "statements", "of them", "orders by their form", "failing"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
