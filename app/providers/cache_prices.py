"""Minimum sizes and storage prices of Gemini's explicit caches, which pydantic-ai's price table lacks.

The sizes are those of Google's page on caching; if a server says that it needs more, its number is used. The prices are
those of Google's price page on ``PRICES_READ_ON``, for a million tokens an hour. A model that is in no table has no
known price.
"""

from __future__ import annotations

import hashlib
from datetime import date
from functools import partial
from typing import Final

from pydantic_ai.models import Model

from app.core.model.model_io import CachePrices, CacheTerms
from app.providers.prices import cached_input_cost, cost_of_tokens, url_of

PRICES_READ_ON: Final = "2026-11-21"
"""When these prices were read at https://ai.google.dev/gemini-api/docs/pricing."""
MILLION: Final = 1_000_000

MINIMUM_TOKENS_BY_MODEL: Final = (("gemini-2.5", 2_048), ("gemini-2", 4_096), ("gemini-1", 32_768))
"""The fewest tokens of a cache, by the beginning of a model's name; for all others it is ``MINIMUM_TOKENS``."""
MINIMUM_TOKENS: Final = 4_096

STORAGE_PRICES: Final[tuple[tuple[str, tuple[tuple[date, float], ...]], ...]] = (
    ("gemini-2.5-flash-lite", ()),
    ("gemini-2.5-flash", ((date.max, 1.00),)),
    ("gemini-2.5-pro", ((date.max, 4.50),)),
    ("gemini-3-flash", ((date.max, 1.00),)),
    ("gemini-3.1-flash-lite", ((date.max, 1.00),)),
    ("gemini-3.1-pro", ((date.max, 4.50),)),
    ("gemini-3.5-flash", ((date.max, 1.00),)),
    ("gemini-3.8-flash", ((date(2026, 12, 31), 0.50), (date.max, 1.00))),
)
"""USD for a million tokens an hour, by the beginning of a model's name, each price through its last day."""


def terms_of(model: Model) -> CacheTerms:
    """How the provider of a Gemini model caches."""
    name = model.model_name
    return CacheTerms(
        account=f"{model.system}:{hashlib.sha256((url_of(model) or '').encode()).hexdigest()[:12]}",
        minimum=minimum_of(name),
        priced_on=PRICES_READ_ON,
        prices=partial(_prices, model),
    )


def minimum_of(name: str) -> int:
    """The fewest tokens that are cached, as documented."""
    return next((tokens for beginning, tokens in MINIMUM_TOKENS_BY_MODEL if name.startswith(beginning)), MINIMUM_TOKENS)


def storage_of(name: str, day: date) -> float | None:
    """USD for a million tokens an hour; ``None`` if the price is unknown."""
    found = next((prices for beginning, prices in STORAGE_PRICES if name.startswith(beginning)), ())
    return next((price for last, price in found if day <= last), None)


def _prices(model: Model, tokens: int, day: date) -> CachePrices | None:
    storage = storage_of(model.model_name, day)
    read, cached = cost_of_tokens(model, tokens, 0), cached_input_cost(model, tokens)
    if storage is None or read is None or cached is None or tokens <= 0:
        return None
    return CachePrices(input=read / tokens, cached=cached / tokens, storage=storage / MILLION)
