"""Writes the results of a bench: a table on the terminal, and figures as JSON."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(".data") / "bench"
"""The folder for the JSON, relative to the current folder; it is never committed."""


def take_no_options(about: str | None) -> None:
    """Answer ``--help``, and refuse any other argument: a bench that reads none would begin its work all the same."""
    ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter).parse_args()


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table with aligned columns."""
    print(table(headers, rows))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns: the first one to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *others]) + " |"

    rule = ("-" * (width + 2) if not column else "-" * (width + 1) + ":" for column, width in enumerate(widths))
    return "\n".join([line(headers), f"|{'|'.join(rule)}|", *map(line, rows)])


def write_json(name: str, value: Any) -> Path:
    """Write a bench's figures to ``.data/bench/<name>.json`` and say so."""
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
    print(f"\nwritten to {path}", file=sys.stderr)
    return path
