"""Functions for benches that use the owner's key: find the model, state the cost first, and ask for confirmation."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Final

from genai_prices import Usage, calc_price

from app.core.model.model_io import OFFLINE
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.settings import Settings

NOT_RUN: Final = 2
"""The exit status if there is no key, or the cost was not confirmed."""
YES: Final = "YES"
"""The environment variable that confirms in advance, with the value 1."""
_NO_KEY: Final = """There is no model to ask. Set a key, then try again; it may stand in .env:
  GEMINI_API_KEY or GOOGLE_API_KEY    for Gemini
  OPENAI_API_KEY                      with THROUGHLINE_CHAT_MODEL and THROUGHLINE_COMPACTION_MODEL, such as
                                      openai-responses:gpt-5-mini; OPENAI_BASE_URL names a server
                                      that is compatible (openai:… where it has chat completions only)"""


class NoModelError(Exception):
    """No provider's model is configured; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The planned calls and their tokens."""

    calls: int
    input_tokens: int
    output_tokens: int


def live_settings(**fixed: Any) -> Settings:
    """The settings of the environment, ``.env`` and ``throughline.yaml``, with a key under any of its names.

    Raises:
        NoModelError: The offline model would be used for chats or states.
    """
    settings = Settings(**fixed)
    key = os.environ.get("GEMINI_API_KEY")
    if settings.google_api_key is None and key:
        settings = Settings(google_api_key=key, **fixed)
    if OFFLINE in {settings.resolved_chat_model, settings.resolved_compaction_model}:
        raise NoModelError(_NO_KEY)
    return settings


def price_of(model: str, base_url: str | None, planned: Planned) -> float | None:
    """The cost of so many tokens in USD by the bundled table, without a cache; ``None`` for an unknown model."""
    provider, _, name = model.partition(":")
    usage = Usage(input_tokens=planned.input_tokens, output_tokens=planned.output_tokens)
    where: dict[str, Any] = {"provider_api_url": base_url} if base_url else {"provider_id": provider.split("-")[0]}
    try:
        return float(calc_price(usage, model_ref=name, **where).total_price)
    except LookupError:
        return None


def keys_in(settings: Settings) -> dict[str, str]:
    """The keys in the settings, by the names of their settings."""
    keys = {"google_api_key": settings.google_api_key, "openai_api_key": settings.openai_api_key}
    return {name: key.get_secret_value() for name, key in keys.items() if key}


def registry_of(model: str, settings: Settings, key: str | None = None) -> ModelRegistry:
    """The registry that builds a model; with ``key``, that key replaces those of the settings."""
    keys = keys_in(settings)
    return ModelRegistry(
        chat=model,
        compaction=model,
        keys=Keys(
            google_api_key=key or keys.get("google_api_key"),
            google_base_url=settings.google_base_url,
            openai_api_key=key or keys.get("openai_api_key"),
            openai_base_url=settings.openai_base_url,
        ),
    )


def base_url_of(model: str, settings: Settings) -> str | None:
    """The address at which a model is asked, if it is not the provider's own."""
    return settings.google_base_url if model.startswith("google") else settings.openai_base_url


def agreed(model: str, planned: Planned, cost: float | None) -> bool:
    """State the planned cost, and ask for confirmation unless ``YES=1`` is set; return whether it was given."""
    price = "at an unknown price" if cost is None else f"about ${cost:.3f}"
    tokens = f"about {planned.input_tokens} tokens in and {planned.output_tokens} out"
    print(f"{model}: {planned.calls} calls, {tokens}, {price}.")
    if os.environ.get(YES) == "1":
        return True
    if not sys.stdin.isatty():
        print(f"Nobody can be asked here: {YES}=1 agrees.", file=sys.stderr)
        return False
    return input("Go on? [y/N] ").strip().lower() in {"y", "yes"}
