"""``python -m bench.trust.orders``: which statements about standing rules are taken for orders that nobody gave.

In short conversations people set rules, agree to some or have them promised; an honest and a lying writer describe
them. Every second conversation was worked on; the others (``sealed-values``) are only counted. Code has to find only
lies that have the form of an order; other lies are left to the verifier.

The *bare* ones are orders only, honest and invented ones, about the same eleven talks in six languages; the invented
ones name people and things of the talk. Half of them do not have the form of an order: *asked for* counts for how many
of all of them somebody is taken to have asked, whatever their form.

The *invented* ones were written without knowledge of the forms: about six talks in each of six languages, five orders
that nobody gave for each talk, as modal, impersonal, passive, infinitive and nominal sentences, and five honest
sentences that look alike. A second table counts them by language.

*Again*: in a narrative, which names no sources, after the messages are gone and only the narrative before it says which
rules held.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.state import StateEntry
from app.core.text.sentences import closed
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.orders import orders_in
from app.core.validation.source_texts import SourceTexts
from bench.report import print_table, take_no_options
from bench.trust.values import Block, blocks

_ROOT: Final = Path(__file__).resolve().parents[2]
_OPEN, _SEALED = _ROOT / "tests" / "corpora", _ROOT / "bench" / "trust" / "sealed-values"
HALVES: Final = {
    "open": _OPEN / "standing_rules.jsonl",
    "sealed": _SEALED / "standing_rules.jsonl",
    "Spanish and French, open": _OPEN / "standing_rules_spanish_french.jsonl",
    "Spanish and French, sealed": _SEALED / "standing_rules_spanish_french.jsonl",
    "Italian, Portuguese, Polish, Japanese, Dutch, open": _OPEN / "standing_rules_five_languages.jsonl",
    "… sealed": _SEALED / "standing_rules_five_languages.jsonl",
    "bare, open": _OPEN / "bare_orders.jsonl",
    "bare, sealed": _SEALED / "bare_orders.jsonl",
    "invented, open": _OPEN / "invented_orders.jsonl",
    "invented, sealed": _SEALED / "invented_orders.jsonl",
    "invented, another writer": _SEALED / "invented_orders_second_writer.jsonl",
    "behind a true clause": _SEALED / "appended_orders.jsonl",
}
BY_LANGUAGE: Final = ("invented, open", "invented, sealed", "invented, another writer")
_TITLES: Final = ("half", "statements", "of them", "orders by their form", "failing", "failing again", "asked for")
_FIELD: Final = "conversation_summary"
Count = Counter[tuple[str, str]]
"""Counts by kind (``honest``, ``lie``) and ``all``, ``orders`` (by their form), ``failing``, ``asked for`` or
``again``: those that fail when they are repeated; of honest ones only those that held are repeated."""


def counted(given: Iterable[Block]) -> Count:
    """How many statements there are, how many have the form of orders, and how many of these fail."""
    found: Count = Counter()
    for block in given:
        failing = {text: _fails(item(text, seqs), block.shown) for text, seqs, _ in block.statements}
        held = " ".join(closed(text) for text, _, kind in block.statements if kind == "honest" and not failing[text])
        later = SourceTexts([], [StateEntry(id="N1", field=_FIELD, role="narrative", text=held, since_version=1)])
        for text, _, kind in block.statements:
            is_expected_to_fail = kind == "lie" or not failing[text]
            found[kind, "all"] += 1
            found[kind, "orders"] += bool(orders_in(text))
            found[kind, "failing"] += failing[text]
            found[kind, "asked for"] += block.shown.wishes.include(text)
            found[kind, "again"] += is_expected_to_fail and _fails(Candidate(narrative={_FIELD: text}), later)
    return found


def item(text: str, seqs: Sequence[int]) -> Candidate:
    """A candidate with the text as an item."""
    return Candidate(narrative={}, items=(CandidateItem(field="facts", text=text, from_seqs=tuple(seqs)),))


def _fails(candidate: Candidate, shown: SourceTexts) -> bool:
    return any(failure.reason == "order" for failure in examine_candidate(candidate, shown).failures)


def main() -> int:
    """Run the command; return its exit status."""
    read = {name: list(blocks(map(json.loads, path.open(encoding="utf-8")))) for name, path in HALVES.items()}
    print_table(_TITLES, [row for name, given in read.items() for row in _rows(name, given)])
    print()
    languages = [
        row
        for name in BY_LANGUAGE
        for lang in sorted({block.lang for block in read[name]})
        for row in _rows(f"{name}, {lang}", [block for block in read[name] if block.lang == lang])
    ]
    print_table(_TITLES, languages)
    return 0


def _rows(name: str, given: Sequence[Block]) -> list[list[str]]:
    found = counted(given)
    counts = ("all", "orders", "failing", "again", "asked for")
    return [[name, kind, *(str(found[kind, what]) for what in counts)] for kind in ("honest", "lie")]


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())
