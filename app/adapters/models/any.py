"""Every other model that pydantic-ai knows, and every server that speaks OpenAI's chat completions."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers import Provider, infer_provider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from app.domain.errors import InvalidInputError

OPENAI: Final = "openai"

_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_PACKAGE = re.compile(r"install (?:the )?`([\w-]+)`")
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def openai_provider(api_key: str | None, base_url: str | None) -> Provider[Any]:
    """OpenAI itself, or the server at ``base_url``, which may want no key and never sees features only OpenAI has."""
    if base_url:
        return OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key)
    if not api_key:
        raise InvalidInputError("Models of openai need a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server.")
    return OpenAIProvider(api_key=api_key, base_url="https://api.openai.com/v1")


def provider(kind: str) -> Provider[Any]:
    """A provider by pydantic-ai's name, with its own environment variables. Raises ``InvalidInputError``."""
    try:
        return infer_provider(kind)
    except ImportError as error:
        package = _PACKAGE.search(str(error))
        needs = f"the package {package[1]}" if package else "a package"
        raise InvalidInputError(f"Models of {kind} need {needs}, which is not installed.") from error
    except UserError as error:
        variables = " or ".join(dict.fromkeys(_VARIABLE.findall(str(error))))
        raise InvalidInputError(f"Models of {kind} need a key: set {variables or 'its variable'}.") from error
    except ValueError as error:
        raise InvalidInputError(f"There is no model provider {kind!r}.") from error


def model(kind: str, name: str, of: Provider[Any]) -> Model:
    """The model of that name; ``openai`` means chat completions, which every compatible server has."""
    if kind == OPENAI:
        return OpenAIChatModel(name, provider=of)
    try:
        return infer_model(f"{kind}:{name}", lambda _: of)
    except (UserError, ValueError, ImportError) as error:
        raise InvalidInputError(f"The model {kind}:{name} cannot be built.") from error


def takes_media(media_type: str) -> bool:
    """What nearly all of them read inline; the rest is told in words rather than refused by the provider."""
    return media_type in _IMAGES
