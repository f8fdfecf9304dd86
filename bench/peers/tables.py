"""The table for conversations of one length, and the figures of the runs as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, Final

from bench.peers.rounds import Played, Row
from bench.speed import Ratio, ratio_of

HEADERS: Final = (
    "a turn of", "ms", "times", "95 % interval", "CPU ms", "times", "prompt tokens", "from cache", "fresh",
    "paid: times", "stored: kB",
)  # fmt: skip
MAX_WINDOW: Final = 1_048_576
"""The most tokens that Gemini takes; a larger prompt is marked."""
CACHED_PRICE: Final = 0.1
"""The price of a token from a provider's cache, relative to one that is not."""


def ratios(name: str, row: Row, base: Row) -> tuple[Ratio, Ratio]:
    """How many times as long a turn takes as the base's, in wall time and in CPU time."""
    return ratio_of(name, row.seconds, base.seconds), ratio_of(name, row.cpu, base.cpu)


def paid(row: Row) -> float:
    """The tokens of a turn's prompt as they are paid for: those from the cache count a tenth."""
    return row.fresh + CACHED_PRICE * (row.tokens - row.fresh)


def cells(name: str, row: Row, base: Row) -> list[str]:
    """A line of the table."""
    clock, cpu = ratios(name, row, base)
    return [
        row.title,
        shown(clock.ms),
        shown(clock.ratio),
        f"{shown(clock.low)} to {shown(clock.high)}",
        shown(cpu.ms),
        shown(cpu.ratio),
        f"{row.tokens:,.0f}{' †' if row.tokens > MAX_WINDOW else ''}",
        f"{row.tokens - row.fresh:,.0f}",
        f"{row.fresh:,.0f}",
        shown(paid(row) / paid(base)),
        shown(row.stored / 1_000),
    ]


def shown(value: float) -> str:
    """A number with two or three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(played: Played) -> list[list[str]]:
    """The lines of one length; the ratios are relative to the first line."""
    base = next(iter(played.rows.values()))
    return [cells(name, row, base) for name, row in played.rows.items()]


def figures(played: Played) -> dict[str, Any]:
    """All figures for the JSON."""
    base = next(iter(played.rows.values()))
    return {
        "messages": played.messages,
        "rounds": played.rounds,
        "filled": played.filled,
        "rows": {name: _figures(name, row, base) for name, row in played.rows.items()},
    }


def _figures(name: str, row: Row, base: Row) -> dict[str, Any]:
    clock, cpu = ratios(name, row, base)
    return {
        "title": row.title,
        "ms": clock.ms,
        "times": [clock.ratio, clock.low, clock.high],
        "cpu_ms": cpu.ms,
        "cpu_times": [cpu.ratio, cpu.low, cpu.high],
        "tokens": round(row.tokens),
        "fresh": round(row.fresh),
        "paid_times": round(paid(row) / paid(base), 3),
        "stored_bytes": round(row.stored),
        "turns": len(row.counted),
        "largest_prompt": max(each.tokens for each in row.counted),
        "median_cpu": statistics.median(row.cpu),
    }


def markdown(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table for a page."""
    marks = ["---", *["---:"] * (len(headers) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [headers, marks, *lines])
