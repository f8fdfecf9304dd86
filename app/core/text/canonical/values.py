"""The value that a scanner finds, in canonical forms.

A form is a short string: ``n:5000`` (a number), ``n:7200|s`` (with its unit, converted), ``m:1200|USD``,
``d:2025-03-12``, ``d:--03-12`` (any year), ``d:2025-03`` (a month), ``t:17:00``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ValueKind = Literal["number", "money", "date", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of a text."""

    kind: ValueKind
    start: int
    end: int
    """Where it stands in its text."""
    needs: tuple[str, ...]
    """Its readings: a text that states it is true to another that gives one of these."""
    gives: tuple[str, ...]
    """What a text that holds it lets others say."""
    amount: float | None = None
    """The number itself, in its unit's base; ``None`` for dates and times."""
    unit: str = ""
    """The base of its unit or the code of its currency; empty when there is none."""
    is_word: bool = False
    """Written out ("five thousand")."""


def plain(number: float) -> str:
    """A number without trailing zeros: ``5000``, ``1.2``."""
    return str(int(number)) if number == int(number) else f"{number:.6f}".rstrip("0")
