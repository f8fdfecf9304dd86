"""Fits the weights of recall, and tests what it does not need.

``python -m bench.recall fit`` fits them again (with ``uv run --group bench``, or numpy installed) on the conversations
of ``../shared/data/locomo`` and prints them with their results on talks that they were not fitted on.
``python -m bench.recall ablate`` leaves out one group of features after the other, and prints what that costs.
``python -m bench.recall slips`` asks mistyped questions, ``python -m bench.recall follow`` questions that continue the
one before, ``python -m bench.recall mixed`` asks in talks with a few tool calls, ``python -m bench.recall decided``
prints for which questions nothing is recalled, ``python -m bench.recall answers`` asks the offline model; these need
no numpy. Recall in the service is measured by ``python -m bench.fidelity``. Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from bench import recall_answers, recall_decided, recall_follow, recall_mixed, recall_slips
from bench.recall_talks import talks
from bench.survival import DATA

_PLAIN: Final = {
    "slips": recall_slips.report,
    "follow": recall_follow.report,
    "mixed": recall_mixed.report,
    "decided": recall_decided.report,
    "answers": recall_answers.report,
}


def run(command: str, first: Sequence[str] = (), kept: Sequence[str] = ()) -> int:
    """Print the results of a command; ``ablate`` leaves out ``first`` before it chooses, and never ``kept``."""
    found = talks()
    if not found:
        print(f"skipped: no data at {DATA}")
        return 0
    if command in _PLAIN:
        for line in _PLAIN[command](found):
            print(line, flush=True)
        return 0
    try:
        from bench import recall_ablation, recall_fit  # noqa: PLC0415 - numpy is there for these commands alone
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install --no-deps --require-hashes -r requirements-bench.lock")
        return 1
    if command == "fit":
        print(recall_fit.report(found))
    else:
        for line in recall_ablation.report(found, first, kept):
            print(line, flush=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description="Recall's weights.")
    parser.add_argument("command", choices=["fit", "ablate", *_PLAIN])
    parser.add_argument(
        "--first", action="append", default=[], help="ablate: a group to leave out before any is chosen"
    )
    parser.add_argument("--keep", action="append", default=[], help="a group that ablate does not leave out")
    asked = parser.parse_args(arguments)
    return run(asked.command, asked.first, asked.keep)


if __name__ == "__main__":
    sys.exit(main())
