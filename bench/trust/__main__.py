"""``python -m bench.trust``: what checks do to honest summaries, and to lies.

Without options the open half of the corpus is measured; ``--final`` opens the sealed half. ``--changes FILE`` writes
every honest text that was changed, for readers who judge it blind; ``--lies FILE`` every lie that went through.
``--requests FOLDER`` writes a sample of what a verifier would be asked, for verdicts recorded blind, and ``--collect
FOLDER`` puts the answers beside the corpus.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.report import print_table, write_json
from bench.trust.blind import collect, plan, write_requests
from bench.trust.measures import changes_of, figures_of, lies_of
from bench.trust.rounds import cases


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.trust", description=__doc__)
    parser.add_argument("--final", action="store_true", help="the sealed half; each use is logged in docs/trust.md")
    parser.add_argument("--changes", type=Path, help="where to write changed honest texts for readers")
    parser.add_argument("--lies", type=Path, help="where to write the lies that went through")
    parser.add_argument("--requests", type=Path, help="where to write a sample of requests to verifiers")
    parser.add_argument("--collect", type=Path, help="where answers to these requests stand")
    asked = parser.parse_args()
    if asked.requests or asked.collect:
        return _blind(asked.requests, asked.collect)
    corpus = list(cases(sealed=asked.final))
    figures = figures_of(corpus)
    print_table(["figure", "value", "of"], [[name, *map(str, figure)] for name, figure in figures.items()])
    kinds, through = lies_of(corpus)
    print()
    rows = [[kind, *map(str, found)] for kind, found in sorted(kinds.items())]
    print_table(["lie", "gone", "gone where the writer mends it", "of"], rows)
    found: Iterable[dict[str, Any]]
    for path, found in ((asked.changes, changes_of(corpus)), (asked.lies, through)):
        if path:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found), encoding="utf-8")
    write_json("trust", {"figures": figures, "lies": kinds})
    return 0


def _blind(requests: Path | None, answered: Path | None) -> int:
    """Write requests, or collect what was answered to them; always of the open half."""
    corpus = list(cases())
    if requests:
        print(f"{write_requests(requests, plan(corpus))} requests written to {requests}")
    if answered:
        print("\n".join(f"written: {path}" for path in collect(answered, corpus)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
