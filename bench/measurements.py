"""Writes the tables of ``docs/measurements.md``: each measuring command writes its own, between its own marks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put a text between the marks of that name.

    Raises:
        KeyError: The page has no such marks.
    """
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    before = page.read_text(encoding="utf-8")
    marks = re.compile(f"{re.escape(opening)}.*?{re.escape(closing)}", re.DOTALL)
    if not marks.search(before):
        raise KeyError(name)
    after = marks.sub(lambda _: f"{opening}\n{text.strip()}\n{closing}", before, count=1)
    page.write_text(after, encoding="utf-8")
    print(f"\nwritten to {page.name}", file=sys.stderr)
