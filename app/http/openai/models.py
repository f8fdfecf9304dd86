"""Lists models for clients of OpenAI's API: the configured one, those that the operator allows, and each preset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from app.bootstrap import Container
from app.core.model.errors import FieldError, ModelNotAllowedError
from app.core.model.policies.resolving import PRESETS
from app.http.dependencies import Services
from app.http.openai.resources import OWNER, model_object
from app.http.openai.routing import openai_router

DEFAULT: Final = OWNER
"""The name of the configured chat model in requests."""
ALIAS: Final = f"gpt-{OWNER}"
"""Another name of it, for clients that accept only names that look like OpenAI's."""

router = openai_router()


@dataclass(frozen=True, slots=True)
class Chosen:
    """The meaning of a model's name."""

    model: str | None = None
    """The chat model; ``None`` = the configured one."""
    preset: str | None = None
    """The preset of a conversation that the request begins; ``None`` = the default."""


def offered_models(services: Container) -> list[str]:
    """The names that a request may use, the default first."""
    presets = [f"{DEFAULT}/{name}" for name in PRESETS]
    return [DEFAULT, ALIAS, *presets, *sorted(services.settings.allowed_models)]


def chosen_model(services: Container, name: str | None) -> Chosen:
    """The meaning of a name. Raises ``ModelNotAllowedError``."""
    if name is None or name in {DEFAULT, ALIAS}:
        return Chosen()
    owner, _, named = name.partition("/")
    if owner == DEFAULT and named in PRESETS:
        return Chosen(preset=named)
    if services.parts.models.allows(name):
        return Chosen(model=name)
    raise _unknown_model(services, name)


@router.head("/models", include_in_schema=False)
@router.get("/models")
async def list_models(services: Services) -> dict[str, Any]:
    """The values of `model`: `throughline` is the configured model, `throughline/<preset>` the same with a preset."""
    return {"object": "list", "data": [model_object(name) for name in offered_models(services)]}


@router.head("/models/{model:path}", include_in_schema=False)
@router.get("/models/{model:path}")
async def retrieve_model(model: str, services: Services) -> dict[str, Any]:
    """One of these models."""
    if model not in offered_models(services):
        raise _unknown_model(services, model)
    return model_object(model)


def _unknown_model(services: Container, name: str) -> ModelNotAllowedError:
    detail = f"the model {name[:200]!r} does not exist here: GET /v1/models lists those that do"
    return ModelNotAllowedError(
        detail, errors=[FieldError(field="model", message=detail)], extra={"allowed": offered_models(services)}
    )
