"""``python -m bench.trust``: what checks and verifiers do to honest summaries and to lies.

Without options the open half of the corpus is measured; ``--final`` opens the sealed half. ``--changes FILE`` writes
every honest text that was changed, for readers who judge it blind, and ``--readers FILE FILE`` reads the judgements of
two of them; ``--lies FILE`` writes every lie that passed. ``--rounds`` plays ten rounds of every conversation, with
``--before FOLDER`` also by the code of another checkout. ``--requests FOLDER`` writes a sample of a verifier's
requests, for verdicts recorded blind, and ``--collect FOLDER`` adds the answers to the corpus.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench.report import print_table, write_json
from bench.trust import live
from bench.trust.blind import collect, plan, write_requests
from bench.trust.measures import changes_of, honest_figures_of, lies_of
from bench.trust.plays import plays_of
from bench.trust.rounds import cases
from bench.trust.tables import cost_tables, frame_tables, readers_table, recorded_tables, rounds_table


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.trust", description=__doc__)
    parser.add_argument("--final", action="store_true", help="the sealed half; each use is logged in docs/trust.md")
    parser.add_argument("--changes", type=Path, help="where to write changed honest texts for readers")
    parser.add_argument("--readers", type=Path, nargs=2, help="what two readers say of the changes")
    parser.add_argument("--rounds", action="store_true", help="facts that are served after ten rounds")
    parser.add_argument("--before", type=Path, help="with --rounds: a checkout to compare with")
    parser.add_argument("--lies", type=Path, help="where to write the lies that went through")
    parser.add_argument("--live", action="store_true", help="ask the configured model instead; the cost is told first")
    parser.add_argument("--limit", type=int, help="of --live: how many cases")
    parser.add_argument("--requests", type=Path, help="where to write a sample of requests to verifiers")
    parser.add_argument("--collect", type=Path, help="where answers to these requests stand")
    asked = parser.parse_args()
    if asked.live:
        return live.run(asked.limit)
    if asked.requests or asked.collect:
        return _blind(asked.requests, asked.collect)
    corpus = list(cases(sealed=asked.final))
    if asked.rounds:
        write_json("trust_rounds", rounds_table(corpus, asked.before))
        return 0
    plays = plays_of(corpus)
    figures, changes = honest_figures_of(plays), changes_of(plays)
    print_table(["figure", "value", "of"], [[name, *map(str, figure)] for name, figure in figures.items()])
    kinds, through = lies_of(plays)
    print()
    rows = [[kind, *map(str, found)] for kind, found in sorted(kinds.items())]
    print_table(["lie", "gone", "gone where the writer mends it", "of"], rows)
    results: dict[str, Any] = {"figures": figures, "lies": kinds}
    if asked.readers:
        results["readers"] = readers_table(changes, plays, asked.readers)
    results |= frame_tables(plays)
    results["cost"] = cost_tables(plays)
    if not asked.final:
        results["recorded"] = recorded_tables(corpus)
    for path, found in ((asked.changes, changes), (asked.lies, through)):
        if path:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found), encoding="utf-8")
    write_json("trust", results)
    return 0


def _blind(requests: Path | None, answered: Path | None) -> int:
    """Write requests, or collect the answers to them; always for the open half."""
    corpus = list(cases())
    if requests:
        print(f"{write_requests(requests, plan(corpus))} requests written to {requests}")
    if answered:
        print("\n".join(f"written: {path}" for path in collect(answered, corpus)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
