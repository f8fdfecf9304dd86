"""Fitting the weights of recall.

``python -m bench.recall fit`` fits them again (with ``uv run --group bench``, or numpy installed) on the conversations
of ``../shared/data/locomo`` and prints them with what they reach on talks that they were not fitted on. What recall
reaches in the service is measured by ``python -m bench.fidelity``. Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench.recall_talks import talks
from bench.survival import DATA


def fit() -> int:
    """Fit the weights and print them."""
    try:
        from bench.recall_fit import report  # noqa: PLC0415 - numpy is there for this command alone
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install --require-hashes -r requirements-bench.lock")
        return 1
    found = talks()
    print(report(found) if found else f"skipped: no data at {DATA}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description="Recall's weights.")
    parser.add_argument("command", choices=["fit"])
    parser.parse_args(arguments)
    return fit()


if __name__ == "__main__":
    sys.exit(main())
