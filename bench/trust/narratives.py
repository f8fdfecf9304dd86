"""``python -m bench.trust.narratives``: which honest and false narratives the exact checks would change.

Short conversations have narratives by a writer: with standing orders in other words than the speaker's, and with values
that are calculated, rounded, converted or in another form. Each honest narrative has a copy in which one sentence gives
the reader an order that nobody asked for, or states a wrong value. Every second conversation was worked on; the others
(``sealed-values``) are only counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.text.sentences import sentences
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from bench.report import print_table, take_no_options
from bench.trust.values import message

_ROOT: Final = Path(__file__).resolve().parents[2]
HALVES: Final = {
    "open": _ROOT / "tests" / "corpora" / "told_narratives.jsonl",
    "sealed": _ROOT / "bench" / "trust" / "sealed-values" / "told_narratives.jsonl",
    "careful, open": _ROOT / "tests" / "corpora" / "careful_narratives.jsonl",
}
_ITEMS: Final = _ROOT / "tests" / "corpora" / "careful_values.jsonl"
"""Statements about the conversations of the careful narratives."""
_FIELD: Final = "conversation_summary"
Count = Counter[tuple[str, str, str]]
"""Counts by subject (``orders``, ``values``), kind (``honest``, ``lie``), and ``all`` or ``failing``."""


def counted(rows: Iterable[Mapping[str, Any]], items: Mapping[str, Sequence[CandidateItem]] | None = None) -> Count:
    """How many narratives there are, and how many fail, in answers that also have these items (by conversation)."""
    found: Count = Counter()
    for row in rows:
        about, _, talk = row["id"].partition("-")
        for kind, failing in failing_of(row, (items or {}).get(talk, ())):
            found[about, kind, "all"] += 1
            found[about, kind, "failing"] += bool(failing)
    return found


def failing_of(row: Mapping[str, Any], items: Sequence[CandidateItem] = ()) -> Iterator[tuple[str, list[str]]]:
    """Each narrative's kind and failing sentences; for a lie only sentences that its honest twin lacks."""
    shown, honest = SourceTexts([message(*one) for one in row["text"]["messages"]]), set[str]()
    for text, kind in zip(row["text"]["narratives"], row["expected"], strict=True):
        if kind == "honest":
            honest = set(sentences(text))
        failures = examine_candidate(Candidate(items=tuple(items), narrative={_FIELD: text}), shown).failures
        failing = [one.statement for one in failures if not one.is_item]
        yield kind, [one for one in failing if kind == "honest" or one not in honest]


def honest_items() -> dict[str, list[CandidateItem]]:
    """The honest statements as items, by conversation."""
    rows = map(json.loads, _ITEMS.open(encoding="utf-8"))
    return {
        row["id"]: [
            CandidateItem(field="facts", text=text, from_seqs=tuple(seqs))
            for (text, seqs), kind in zip(row["text"]["statements"], row["expected"], strict=True)
            if kind != "lie"
        ]
        for row in rows
    }


def main() -> int:
    """Run the command; return its exit status."""
    table = []
    careful = "careful, open"
    for name in (*HALVES, f"{careful}, beside items"):
        has_items = name not in HALVES
        path = HALVES[careful if has_items else name]
        found = counted(map(json.loads, path.open(encoding="utf-8")), honest_items() if has_items else None)
        table += [
            [name, about, kind, *(str(found[about, kind, what]) for what in ("all", "failing"))]
            for about in ("orders", "values")
            for kind in ("honest", "lie")
        ]
    print_table(["half", "about", "narratives", "of them", "failing"], table)
    return 0


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())
