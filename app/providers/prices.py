"""The costs of requests, by the price table of pydantic-ai."""

from __future__ import annotations

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage


def cost_of(model: Model, response: ModelResponse) -> float | None:
    """The cost of an answered request in USD: as the provider reports it, else by the table; ``None`` if unknown.

    The table may not have the model under the name that the answer gives it, such as that of a new version. Then it is
    the cost of the model that was asked.
    """
    if response.usage.cost is not None:
        return float(response.usage.cost)
    cost = cost_by_table(response)
    return _cost(model, response.usage) if cost is None else cost


def cost_by_table(response: ModelResponse) -> float | None:
    """The cost of an answer in USD by the table, for the model that the answer names; ``None`` if it is not there."""
    try:
        return float(response.cost().total_price)
    except Exception:  # noqa: BLE001 - a price that cannot be told must never fail a call
        return None


def cost_of_tokens(model: Model, read: int, written: int) -> float | None:
    """What these tokens would cost now in USD, with nothing cached; ``None`` for an unknown model."""
    return _cost(model, RequestUsage(input_tokens=read, output_tokens=written))


def cached_input_cost(model: Model, tokens: int) -> float | None:
    """What reading these tokens would cost now, all of them from a cache."""
    return _cost(model, RequestUsage(input_tokens=tokens, cache_read_tokens=tokens))


def _cost(model: Model, usage: RequestUsage) -> float | None:
    asked = ModelResponse(
        parts=[],
        usage=usage,
        model_name=model.model_name,
        provider_name=model.system,
        provider_url=url_of(model),
    )
    return cost_by_table(asked)


def url_of(model: Model) -> str | None:
    """The address of a model's provider; ``None`` if it has none."""
    try:
        return model.base_url
    except (AttributeError, UserError):  # not every provider has one
        return None
