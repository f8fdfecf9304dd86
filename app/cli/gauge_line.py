"""Prints how full a context is, in one line: a bar, the tokens of the budget, and what they are used for."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from app.cli.screen import DIM, Screen
from app.client import Gauge
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue

BAR_WIDTH: Final = 24  # columns
PARTS: Final = ("system", "files", "state", "anchors", "digests", "held", "tail", "recalled", "pending")
"""The parts of a context, from stable to volatile. Empty ones are not shown."""

_COLOURS: Final = {
    "ok": "green",
    "warning": "yellow",
    "critical": "red",
    "background": "yellow",
    "sync": "red",
    "over": "bold red",
}
_UNKNOWN: Final = "yellow"
"""The colour of a status that only a newer service knows."""


def show_gauge(screen: Screen, gauge: Gauge) -> None:
    """Print the line, with a bar in a terminal, and in colour unless ``NO_COLOR`` is set."""
    screen.line(*gauge_parts(screen, gauge))


def gauge_parts(screen: Screen, gauge: Gauge) -> list[Text | tuple[str, str]]:
    """The parts of the line for that screen, for code that prints it together with other text."""
    colour = _COLOURS.get(gauge.status, _UNKNOWN)
    catalogue = screen.catalogue
    words = catalogue.text(
        "cli.gauge.full", percent=_percent(gauge, catalogue), tokens=gauge.tokens, budget=gauge.budget
    )
    shown: list[Text | tuple[str, str]] = [_bar(gauge, colour), (f" {words}", colour)] if screen.is_terminal else []
    begin, end = ("", "") if screen.is_terminal else (f"[{words}", "]")
    details = (
        f"{catalogue.word('cli.gauge', gauge.status)} · {parts_of(gauge, catalogue)}"
        f"{_tokens_until_compaction(gauge, catalogue)}"
    )
    return [*shown, (f"{begin} · {details}{end}", DIM)]


def parts_of(gauge: Gauge, catalogue: Catalogue = CATALOGUES[FALLBACK]) -> str:
    """What the context consists of, in tokens."""
    sizes = gauge.breakdown.model_dump()
    parts = (f"{catalogue.word('cli.part', name)} {catalogue.number(sizes[name])}" for name in PARTS if sizes.get(name))
    return ", ".join(parts) or catalogue.text("cli.gauge.empty")


def _percent(gauge: Gauge, catalogue: Catalogue) -> str:
    share = gauge.utilization * 100
    return catalogue.number(share, 1) if 0 < share < 1 else str(int(share))


def _tokens_until_compaction(gauge: Gauge, catalogue: Catalogue) -> str:
    until = gauge.tokens_until_compaction
    return f" · {catalogue.text('cli.gauge.ahead', tokens=until)}" if until else ""


def _bar(gauge: Gauge, colour: str) -> Text:
    filled = min(round(gauge.utilization * BAR_WIDTH), BAR_WIDTH)
    text = Text("█" * filled, style=colour)
    marks = {_cell_of_bar(at, gauge) for at in (gauge.background_at, gauge.sync_at) if at is not None}
    for cell in range(filled, BAR_WIDTH):
        text.append("│" if cell in marks else "░", style="yellow" if cell in marks else DIM)
    return text


def _cell_of_bar(tokens: int, gauge: Gauge) -> int:
    return min(tokens * BAR_WIDTH // max(gauge.budget, 1), BAR_WIDTH - 1)
