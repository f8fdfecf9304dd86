"""``python -m bench.trust.narratives``: which narratives the exact checks would change: honest ones, and false ones.

Short conversations with what a writer tells of them in sentences: standing orders in other words than those of whoever
gave them, and values that are calculated, rounded, converted or told in another form. Each honest narrative stands
beside a copy in which one sentence orders the reader about as nobody asked for, or tells a wrong value. Every second
conversation was worked on; the others (``sealed-values``) are only counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.core.model.candidate import Candidate
from app.core.text.sentences import sentences
from app.core.validation.exact import examine
from app.core.validation.shown import Shown
from bench.report import print_table
from bench.trust.values import message

_ROOT: Final = Path(__file__).resolve().parents[2]
HALVES: Final = {
    "open": _ROOT / "tests" / "corpora" / "told_narratives.jsonl",
    "sealed": _ROOT / "bench" / "trust" / "sealed-values" / "told_narratives.jsonl",
    "careful, open": _ROOT / "tests" / "corpora" / "careful_narratives.jsonl",
}
_FIELD: Final = "conversation_summary"
Count = Counter[tuple[str, str, str]]
"""By what the narratives are about (``orders``, ``values``), kind (``honest``, ``lie``), and ``all`` or ``failing``."""


def counted(rows: Iterable[Mapping[str, Any]]) -> Count:
    """How many narratives there are, and how many fail."""
    found: Count = Counter()
    for row in rows:
        about = row["id"].partition("-")[0]
        for kind, failing in failing_of(row):
            found[about, kind, "all"] += 1
            found[about, kind, "failing"] += bool(failing)
    return found


def failing_of(row: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """By narrative: its kind, and the sentences of it that fail; of a lie those alone that its honest twin lacks."""
    shown, honest = Shown([message(*one) for one in row["text"]["messages"]]), set[str]()
    for text, kind in zip(row["text"]["narratives"], row["expected"], strict=True):
        if kind == "honest":
            honest = set(sentences(text))
        failing = [one.statement for one in examine(Candidate(narrative={_FIELD: text}), shown).failures]
        yield kind, [one for one in failing if kind == "honest" or one not in honest]


def main() -> int:
    """The command; its exit status."""
    table = []
    for name, path in HALVES.items():
        found = counted(map(json.loads, path.open(encoding="utf-8")))
        table += [
            [name, about, kind, *(str(found[about, kind, what]) for what in ("all", "failing"))]
            for about in ("orders", "values")
            for kind in ("honest", "lie")
        ]
    print_table(["half", "about", "narratives", "of them", "failing"], table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
