"""What vectors bring to recall, with a small local model that stands in for a provider's.

``python -m bench.embeddings [--write]`` (with ``uv run --group bench``, or numpy installed). No weights of a neural
model may be had here, so the stand-in is latent semantic analysis: it knows nothing but the talk itself, and how its
words go together. It shows that the way works; what a provider's model brings, it does not.

The weight is chosen on the conversations of ``../shared/data/locomo``. What it brings is measured on talks that it was
not chosen on: each of those left out in turn (all other weights fitted without it as well), and ``bench/made_talks``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from bench import measurements
from bench.fidelity_made import FOLDER
from bench.recall_talks import talks
from bench.survival import DATA

PAGE: Final = measurements.PAGE.parent / "recall.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put it into ``docs/recall.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.embeddings", description="What vectors bring to recall.")
    parser.add_argument("--write", action="store_true", help="into docs/recall.md")
    asked = parser.parse_args(arguments)
    given, made = talks(), [talk for path in sorted(FOLDER.glob("*.jsonl")) for talk in talks(path)]
    if not given:
        print(f"skipped: no data at {DATA}")
        return 0
    try:
        from bench.recall_vectors import report  # noqa: PLC0415 - numpy is there for this command alone
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install --require-hashes -r requirements-bench.lock")
        return 1
    text = report(given, made)
    print(text)
    if asked.write:
        measurements.write("embeddings", text, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
