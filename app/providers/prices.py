"""What requests cost, by the price table that pydantic-ai brings."""

from __future__ import annotations

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage


def cost_of(response: ModelResponse) -> float | None:
    """What an answered request cost, in USD: the provider's word, else by the table; ``None`` where neither knows."""
    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        return float(response.cost().total_price)
    except Exception:  # noqa: BLE001 - a price that cannot be told must never fail a call
        return None


def input_cost(model: Model, tokens: int) -> float | None:
    """What reading so many tokens would cost now, none of them from a cache, in USD; ``None`` for an unknown model."""
    asked = ModelResponse(
        parts=[],
        usage=RequestUsage(input_tokens=tokens),
        model_name=model.model_name,
        provider_name=model.system,
        provider_url=_url(model),
    )
    return cost_of(asked)


def _url(model: Model) -> str | None:
    try:
        return model.base_url
    except (AttributeError, UserError):  # not every provider has one
        return None
