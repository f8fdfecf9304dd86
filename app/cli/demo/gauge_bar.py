"""The gauge as a bar: what fills the context, and the two marks."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from app.cli.demo.client import Gauge
from app.cli.demo.view import PARTS, percent

COLOURS: Final = {
    "system": "bright_black",
    "state": "magenta",
    "anchors": "bright_magenta",
    "digests": "cyan",
    "held": "blue",
}
"""The tail's colour tells how near a threshold is."""
_NUMBER: Final = 7  # columns of " 100 % "


def zone(tokens: int, gauge: Gauge) -> str:
    """The colour of a number of tokens."""
    if tokens >= gauge.sync_at:
        return "red"
    return "yellow" if tokens >= gauge.background_at else "green"


def bar(gauge: Gauge, width: int, *, pending: int = 0) -> Text:
    """The filled and the empty part, with the utilization behind it.

    Args:
        gauge: What to show.
        width: Columns altogether.
        pending: Tokens of a message that is about to be sent, shown as a part of its own.
    """
    cells = max(width - _NUMBER, 10)
    tokens = gauge.tokens + pending
    colour = zone(tokens, gauge)
    sizes = [(gauge.breakdown.get(part, 0), COLOURS.get(part, colour), "█") for part in PARTS]
    text, filled, reached = Text(), 0, 0
    for size, style, sign in [*sizes, (pending, colour, "▓")]:
        reached += size
        end = min(round(reached / gauge.budget * cells), cells)
        text.append(sign * (end - filled), style=style)
        filled = max(end, filled)
    marks = {_place(gauge.background_at, gauge, cells): "yellow", _place(gauge.sync_at, gauge, cells): "red"}
    for cell in range(filled, cells):
        text.append("│" if cell in marks else "░", style=marks.get(cell, "bright_black"))
    return text.append(f"{percent(tokens / gauge.budget):>{_NUMBER}}", style=f"bold {colour}")


def marks(gauge: Gauge, width: int) -> Text:
    """The line below the bar: who compacts where."""
    cells = max(width - _NUMBER, 10)
    first, second = _place(gauge.background_at, gauge, cells), _place(gauge.sync_at, gauge, cells)
    words = f"{percent(gauge.background_at / gauge.budget)} the worker "
    left = max(first - len(words), 0)
    text = Text(" " * left).append(words, style="yellow").append("▲", style="yellow")
    return (
        text.append(" " * max(second - first - 1, 1))
        .append("▲", style="red")
        .append(f" {percent(gauge.sync_at / gauge.budget)} the turn", style="red")
    )


def legend(gauge: Gauge) -> Text:
    """Tokens by part, in the colours of the bar."""
    text = Text()
    for part in PARTS:
        if not gauge.breakdown.get(part):
            continue
        style = COLOURS.get(part, zone(gauge.tokens, gauge))
        text.append("■ ", style=style).append(f"{part} {gauge.breakdown.get(part, 0):,}   ", style="default")
    return text.append(f"= {gauge.tokens:,} of {gauge.budget:,}", style="bold")


def _place(tokens: int, gauge: Gauge, cells: int) -> int:
    return min(int(tokens / gauge.budget * cells), cells - 1)
