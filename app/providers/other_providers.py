"""Models of all other providers that pydantic-ai knows, and of servers with OpenAI's chat completions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.profiles.mistral import mistral_model_profile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from app.core.model.errors import InvalidInputError
from app.core.text.patterns import compiled
from app.providers import gemini
from app.providers.chat_completions import CompletionsModel
from app.providers.openrouter import OpenRouterCompletions

OPENAI: Final = "openai"
OPENAI_CHAT: Final = "openai-chat"
"""Another name that pydantic-ai knows for this provider."""
HUGGING_FACE: Final = "huggingface"
_HUGGING_FACE_ROUTER: Final = "https://router.huggingface.co/v1"
COMMON_KINDS: Final = (
    "anthropic",
    "azure",
    "bedrock",
    "cohere",
    "deepseek",
    "google",
    "google-cloud",
    "groq",
    "huggingface",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "together",
    "xai",
)
"""The providers that an error offers. pydantic-ai knows more, and has no list of them."""

_KIND_OF_MODELS: Final[Mapping[str, str]] = {"claude": "anthropic", "gemini": "google", "gpt": "openai"}
"""The provider by the name of its models, which is often given instead."""
_SERVERS: Final = frozenset({"litellm", "llama-cpp", "llamacpp", "lm-studio", "lmstudio", "localai", "sglang"})
"""Servers with OpenAI's chat completions that have no provider of their own. To the library, ``litellm`` is OpenAI
itself, unless a variable says otherwise.
"""
_VARIABLES: Final[Mapping[str, str]] = {"bedrock": "AWS_DEFAULT_REGION, and credentials of AWS"}
"""What a provider needs that its error does not name."""
_MISTRAL_FAMILIES: Final = (
    "mistral",
    "devstral",
    "codestral",
    "magistral",
    "ministral",
    "mixtral",
    "pixtral",
    "voxtral",
)
"""Their templates take only ids of calls that have nine letters and digits, also on a server of one's own."""
_VARIABLE_IN_ERROR = compiled(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
_GROUP_IN_ERROR = compiled(r"pip install [\"'](pydantic-ai-slim\[[\w-]+\])[\"']")
"""Packages are installed as a group: the name in the error may be another package's, as ``mistral`` is."""
_PACKAGE_IN_ERROR = compiled(r"install (?:the )?`(?P<named>[\w-]+)`|the '(?P<quoted>[\w-]+)' package is not installed")
_AWS_ATTEMPTS: Final = "AWS_MAX_ATTEMPTS"
"""The variable of AWS's clients for how often a request is sent."""
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def make_openai_provider(api_key: str | None, base_url: str | None) -> Provider[Any]:
    """OpenAI itself, or the server at ``base_url``, which may need no key and gets no features only OpenAI has."""
    if base_url:
        return OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key)
    if not api_key:
        raise InvalidInputError("Models of openai need a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server.")
    return OpenAIProvider(api_key=api_key, base_url="https://api.openai.com/v1")


def make_provider(kind: str, *, ambient: bool) -> Provider[Any]:
    """A provider by pydantic-ai's name, with credentials from the environment of the process.

    These may be a variable, a file, or the identity of the machine, which needs the network; so call it off the event
    loop.

    Credentials are only looked for with ``ambient``.

    Raises:
        ImportError: A package is missing, see ``missing_package``.
        InvalidInputError: There is no such provider, or it lacks credentials that it may use.
    """
    try:
        _check_model_name(kind)
        if not ambient:
            raise InvalidInputError(
                f"Models of {kind} sign in with credentials that no setting of ours holds (variables, files, the"
                " identity of the machine): set THROUGHLINE_AMBIENT_CREDENTIALS=true to use those."
            )
        if kind == HUGGING_FACE:
            return _hugging_face()
        with _without_repeats():
            return infer_provider(kind)
    except UserError as error:
        variables = " or ".join(dict.fromkeys(_VARIABLE_IN_ERROR.findall(str(error)))) or _VARIABLES.get(kind)
        raise InvalidInputError(f"Models of {kind} need a key: set {variables or 'its variable'}.") from error


def _hugging_face() -> Provider[Any]:
    """Hugging Face's router, which has OpenAI's chat completions.

    The library's own client has no address unless it is given one, and each of its answers fails for that.
    """
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise InvalidInputError("Models of huggingface need a key: set HF_TOKEN.")
    return OpenAICompatibleProvider(HUGGING_FACE, base_url=_HUGGING_FACE_ROUTER, api_key=token)


@contextmanager
def _without_repeats() -> Iterator[None]:
    """Have AWS's clients that are made here send each request once, unless the operator wants otherwise.

    They cannot be told so with a request, and would send one again that nobody waits for any more.
    """
    is_set = _AWS_ATTEMPTS in os.environ
    os.environ.setdefault(_AWS_ATTEMPTS, "1")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[_AWS_ATTEMPTS]


def missing_package(kind: str, error: ImportError) -> str:
    """The message if a package is missing that a provider's models, or a SOCKS proxy, need."""
    group = _GROUP_IN_ERROR.search(str(error))
    if group:
        return f'Models of {kind} need packages that are not installed: pip install "{group[1]}" adds them.'
    found = _PACKAGE_IN_ERROR.search(str(error))
    package = f"the package {found['named'] or found['quoted']}" if found else "a package"
    return f"Models of {kind} need {package}, which is not installed: add it to this environment with pip."


def _check_model_name(kind: str) -> None:
    if kind == HUGGING_FACE:
        return
    if kind in _SERVERS:
        raise InvalidInputError(
            f"Models of a {kind} server are named 'openai:model', with its address, such as http://localhost:4000/v1,"
            " in OPENAI_BASE_URL."
        )
    try:
        infer_provider_class(kind)
    except ValueError as error:
        raise InvalidInputError(f"There is no model provider {kind!r}{_known_kinds(kind)}.") from error


def _known_kinds(kind: str) -> str:
    near = get_close_matches(kind, [*COMMON_KINDS, *_KIND_OF_MODELS], n=1, cutoff=0.7)
    if not near:
        return f": there are {', '.join(COMMON_KINDS)} and others"
    return f" (is {_KIND_OF_MODELS.get(near[0], near[0])} meant?)"


def make_model(kind: str, name: str, provider: Provider[Any]) -> Model:
    """The model of that name; ``openai`` means chat completions, which every compatible server has."""
    if kind in {OPENAI, HUGGING_FACE}:
        return CompletionsModel(name, provider=provider, profile=_own_profile(name))
    model = infer_model(f"{kind}:{name}", lambda _: provider)
    if type(model) is GoogleModel:
        return gemini.make_model(name, provider)
    if type(model) is OpenRouterModel:
        return OpenRouterCompletions(name, provider=provider)
    # Many other providers have such a server, too. Of Ollama's only the profile is special.
    is_plain = type(model) in {OpenAIChatModel, OllamaModel}
    return CompletionsModel(name, provider=provider, profile=model.profile) if is_plain else model


def _own_profile(name: str) -> ModelProfile | None:
    """What is known of a model that its server names in a way of its own."""
    is_mistral = any(family in name.lower() for family in _MISTRAL_FAMILIES)
    return mistral_model_profile("") if is_mistral else None


def takes_media(media_type: str) -> bool:
    """Whether nearly all of these models read the type inline; other media are described by words instead."""
    return media_type in _IMAGE_TYPES
