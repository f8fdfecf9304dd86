"""``python -m bench.anchors``: recall and precision of the rules that find anchors.

Without options the open half of the labelled corpus is measured. ``--final`` opens the sealed half; each use is logged
in ``docs/anchors.md``. ``--mistakes`` prints every mistake, in the open half only. ``--split FILE`` splits a labelled
file into the two halves.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from app.core.model.anchors import AnchorType
from bench.anchors.corpus import NONE, OPEN, SEALED, read, split
from bench.anchors.measures import Judged, Score, judged, kappa, score
from bench.report import print_table, write_json


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors", description=__doc__)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--final", action="store_true", help="the sealed half")
    only.add_argument("--mistakes", action="store_true", help="every mistake on the open half")
    only.add_argument("--split", type=Path, help="a labelled file to make the halves of")
    asked = parser.parse_args()
    if asked.split:
        _write_halves(asked.split)
        return 0
    path = SEALED if asked.final else OPEN
    if not path.exists():
        print(f"skipped: there is no {path.name}")
        return 0
    sentences = read(path)
    rows = judged(sentences)
    disputed = sum(one.label is None for one in sentences)
    print(f"{len(sentences)} sentences, {disputed} disputed, kappa {kappa(sentences):.2f}\n")
    table = _table(rows)
    print_table(["type", "language", "precision", "of", "recall", "of"], table)
    if asked.mistakes:
        _print_mistakes(rows)
    write_json("anchors", {"sealed": asked.final, "kappa": kappa(sentences), "rows": table})
    return 0


def _table(rows: list[Judged]) -> list[list[str]]:
    languages = sorted({one.sentence.language for one in rows})
    table = []
    for type_ in (*get_args(AnchorType), None):
        for language in (*languages, None):
            of = [one for one in rows if language in {None, one.sentence.language}]
            table.append([type_ or "all", language or "all", *_cells(score(of, type_))])
    return table


def _cells(found: Score) -> list[str]:
    return [_percent(found.precision), str(found.found), _percent(found.recall), str(found.there)]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _print_mistakes(rows: Iterable[Judged]) -> None:
    for one in rows:
        sentence = one.sentence
        if sentence.label not in {None, one.found}:
            kind = "false" if sentence.label == NONE else "missed" if one.found == NONE else "other"
            place = f"{sentence.conversation}#{sentence.seq} {sentence.role}{' pasted' if sentence.pasted else ''}"
            print(f"{kind}\t{one.found}\t{sentence.label}\t{place}\t{sentence.text}")


def _write_halves(path: Path) -> None:
    for half, lines in zip((OPEN, SEALED), split(path.read_text(encoding="utf-8").splitlines()), strict=True):
        half.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{half.name}: {len(lines)} sentences")


if __name__ == "__main__":
    sys.exit(main())
