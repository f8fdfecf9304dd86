"""``python -m bench.tokens fit`` prints the estimator's prices, ``… error`` how far off it is."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.core.text.token_counts import PRICE_NAMES
from bench.tokens import corpus, error, prices
from bench.tokens.vocabulary import counter


def main() -> int:
    """Run one of the commands; return 1 if the error for a kind of text is larger than claimed."""
    parser = argparse.ArgumentParser(prog="python -m bench.tokens", description=__doc__)
    parser.add_argument("command", choices=["fit", "error"])
    parser.add_argument("--cache", type=Path, default=_default_cache(), help="where packages are fetched to")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="conversations to measure on as well")
    asked = parser.parse_args()
    asked.cache.mkdir(parents=True, exist_ok=True)
    pages = _counted([*corpus.pages(asked.cache), *error.talks(asked.data)], asked.cache)
    if asked.command == "fit":
        print(prices.as_module(*prices.fitted(pages), PRICE_NAMES), end="")
        return 0
    return 0 if error.report(pages) else 1


def _counted(pages: Sequence[corpus.Page], cache: Path) -> list[corpus.Page]:
    tokens = counter(cache)([page.text for page in pages])
    print(f"{len(pages)} pages, {sum(tokens)} tokens", file=sys.stderr)
    return [replace(page, tokens=count) for page, count in zip(pages, tokens, strict=True)]


def _default_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "throughline-bench"


if __name__ == "__main__":
    sys.exit(main())
