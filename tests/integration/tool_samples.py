"""Callables that tests name in the setting ``tools``."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Literal

from pydantic import Field

SECRET = "postgres://admin:hunter2@db/prod"


def in_stock(
    item: Annotated[str, Field(description="What is asked about.")], size: Literal["s", "m", "l"] = "m"
) -> dict[str, object]:
    """How many of an item are in stock."""
    return {"item": item, "size": size, "count": 7}


async def order_status(number: int) -> str:
    """Where an order is."""
    await asyncio.sleep(0)
    return f"Order {number} has left harbour 12."


def leaks(word: str) -> str:
    """Fails, and says too much."""
    raise RuntimeError(f"cannot reach {SECRET} for {word}")


def ends(kind: Literal["SystemExit", "CancelledError"]) -> str:
    """Raises what ends a process, or a task."""
    raise SystemExit(1) if kind == "SystemExit" else asyncio.CancelledError


async def ends_in_loop(kind: Literal["SystemExit", "CancelledError"]) -> str:
    """The same on the event loop."""
    return ends(kind)


async def waits() -> None:
    """Never ends."""
    await asyncio.Event().wait()


def sleeps() -> str:
    """Takes too long."""
    time.sleep(0.6)
    return "late"


def long_list(lines: int = 1) -> str:
    """Says a lot."""
    crates = (f"Crate {number} weighs {number * 3} kilograms and waits at pier {number}." for number in range(lines))
    return "\n".join(crates)


def unannotated(word) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - that is what is wrong with it
    """Cannot be described."""
    return str(word)


def many(*words: str) -> str:
    """Cannot be called by name."""
    return " ".join(words)


def search_history(query: str) -> str:
    """Takes a name that is taken."""
    return query


NOT_A_FUNCTION = "a text"
