"""Builds models of providers: each once, over one client for each provider."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog
from pydantic_ai.embeddings import EmbeddingModel
from pydantic_ai.models import Model
from pydantic_ai.providers import Provider

from app.circuit import Circuit
from app.core.model.caches import CachedPrefix, MadeCache
from app.core.model.embedding import InputKind
from app.core.model.errors import InvalidInputError
from app.core.model.files import FileCopy
from app.core.model.model_io import ContextMessage
from app.core.text.patterns import compiled
from app.providers import embedding, gemini, gemini_caches, openai_responses, other_providers
from app.providers.cache_prices import terms_of
from app.providers.call_settings import refused_fields
from app.providers.guarded import GuardedChat, GuardedSummarizer
from app.providers.http_answers import limit_answers
from app.providers.keys import Keys
from app.providers.loop import ProviderLoop
from app.providers.messages import TakesMedia
from app.providers.prices import cost_of_tokens
from app.providers.profiles import profile_of
from app.providers.provider_models import ProviderChat, ProviderModel, ProviderSummarizer

log = structlog.get_logger(__name__)

_NAME = compiled(r"(?P<kind>[a-z][a-z0-9/_-]{0,63}):(?P<model>[@~]?[A-Za-z0-9][\w.:/@+-]{0,199})", re.ASCII)
"""OpenRouter's names of the latest models begin with ``~``, and Cloudflare's with ``@``."""
_MAX_MODELS: Final = 64
"""How many built models are kept, and how many refusals are remembered; the oldest is dropped first."""
_REFUSED_FOR: Final = 60.0  # seconds: a build that fails may have waited long for a server that does not answer
_TRIAL_GRACE: Final = 5.0  # seconds after a call's timeout until it is given up


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSettings:
    """When a model's circuit opens: failures of its provider in a row, and the pause in seconds before a trial."""

    failures: int
    pause: float
    monotonic: Callable[[], float]

    def closed_circuit(self, timeout: float) -> Circuit:
        """A closed circuit for calls of at most ``timeout`` seconds."""
        return Circuit(self.pause, self.monotonic, failures=self.failures, trial=timeout + _TRIAL_GRACE)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a model could not be built, and when it may be tried again."""

    detail: str
    until: float


@dataclass(slots=True, kw_only=True)
class BuiltModels:
    """The models that are built. Their clients run on an event loop of their own.

    ``build`` may be called from any thread: each model is built once, and a name that could not be built is refused
    for a while without another try.

    Chat and compaction by one model have a circuit each, since a compaction may be too large to be answered in time
    while chats are not.
    """

    keys: Keys
    circuit: CircuitSettings
    chat_timeout: float
    """The time limit in seconds of a step of a chat, and of all other calls except compactions and vectors."""
    input_limit: int | None = None
    loop: ProviderLoop = field(default_factory=ProviderLoop)
    _providers: dict[str, Provider[Any]] = field(default_factory=dict)
    _built: dict[str, ProviderModel] = field(default_factory=dict)
    _circuits: dict[tuple[str, str], Circuit] = field(default_factory=dict)
    _refusals: dict[str, _Refusal] = field(default_factory=dict)
    _embedders: dict[str, EmbeddingModel] = field(default_factory=dict)
    _building: threading.Lock = field(default_factory=threading.Lock)

    def holds(self, name: str) -> bool:
        """Whether the model of that name is built."""
        return name in self._built

    def build(self, name: str) -> ProviderModel:
        """The model of that name. Building it may take seconds. Raises ``InvalidInputError``."""
        built = self._built.get(name)
        if built is not None:
            return built
        with self._building:
            if name not in self._built:
                self._built[name] = self._built_or_refused(name)
            return self._built[name]

    def chat(self, name: str) -> GuardedChat:
        """The chat model of that name. Raises ``InvalidInputError``."""
        model = ProviderChat(provider_model=self.build(name), timeout=self.chat_timeout)
        return GuardedChat(model, self._circuit("chat", name, self.chat_timeout))

    def summarizer(self, name: str, timeout: float) -> GuardedSummarizer:
        """The summarizer of that name. Raises ``InvalidInputError``."""
        model = ProviderSummarizer(provider_model=self.build(name), timeout=timeout)
        return GuardedSummarizer(model, self._circuit("compaction", name, timeout))

    def seconds_away(self, name: str) -> float:
        """For how long the circuit of the summarizer of that name lets no call through."""
        circuit = self._circuits.get(("compaction", name))
        return 0.0 if circuit is None else circuit.seconds_left

    def build_embedder(self, name: str) -> None:
        """Build the embedding model of that name; it may take seconds. Raises ``InvalidInputError``."""
        with self._building:
            if name not in self._embedders:
                try:
                    self._embedders[name] = self._new_embedder(name)
                except Exception as error:  # noqa: BLE001 - whatever a library throws, callers see our words
                    raise InvalidInputError.of("embedding_model", self._failure_detail(name, error)) from None

    def embedder(
        self, name: str, timeouts: Mapping[InputKind, float], dimensions: int | None
    ) -> embedding.ProviderEmbedder:
        """The embedding model of that name. Raises ``InvalidInputError``.

        Questions and documents have a circuit each, since an answer that is too late for a question may be in time for
        the worker.
        """
        self.build_embedder(name)
        return embedding.ProviderEmbedder(
            model=self._embedders[name],
            loop=self.loop,
            model_name=name,
            timeouts=timeouts,
            circuits={kind: self._circuit(f"embedding {kind}", name, timeouts[kind]) for kind in timeouts},
            dimensions=dimensions,
        )

    async def make_cache(
        self, name: str, prefix: CachedPrefix, attached: ContextMessage | None, ttl: timedelta
    ) -> MadeCache:
        """Have a model's provider cache a prefix. Raises what ``ProviderStore.make_cache`` raises."""
        model = self._caching_model(name)
        return await self.loop.run(lambda: gemini_caches.make(model, prefix, attached, ttl, self.chat_timeout))

    async def renew_cache(self, name: str, cache: str, ttl: timedelta) -> datetime:
        """Have a cache kept for longer. Raises what ``ProviderStore.renew_cache`` raises."""
        model = self._caching_model(name)
        return await self.loop.run(lambda: gemini_caches.renew(model, cache, ttl, self.chat_timeout))

    async def delete(self, name: str, response_id: str) -> None:
        """Delete a response or a cache that a model's provider keeps. Raises what ``ProviderStore.delete`` raises."""
        kind = name.partition(":")[0]
        if kind == gemini.PROVIDER and response_id.startswith(gemini_caches.NAME_PREFIX):
            provider = await asyncio.to_thread(self._provider, kind)
            await self.loop.run(lambda: gemini_caches.delete(provider, response_id, self.chat_timeout))
            return
        if kind != openai_responses.KIND:
            raise InvalidInputError(f"The provider of {name} keeps no responses.")
        provider = await asyncio.to_thread(self._provider, other_providers.OPENAI)
        await self.loop.run(lambda: openai_responses.delete(provider, response_id, self.chat_timeout))

    async def upload_file(self, name: str, data: bytes, media_type: str) -> FileCopy:
        """Upload a file to a model's provider. Raises what ``ProviderStore.upload_file`` raises."""
        provider = await self._file_provider(name)
        return await self.loop.run(lambda: gemini.upload_file(provider, data, media_type, self.chat_timeout))

    async def await_file(self, name: str, file_name: str) -> None:
        """Return once a kept file can be used. Raises what ``ProviderStore.await_file`` raises."""
        provider = await self._file_provider(name)
        await self.loop.run(lambda: gemini.await_file(provider, file_name, self.chat_timeout))

    async def delete_file(self, name: str, file_name: str) -> None:
        """Delete an uploaded file. Raises what ``ProviderStore.delete_file`` raises."""
        provider = await self._file_provider(name)
        await self.loop.run(lambda: gemini.delete_file(provider, file_name, self.chat_timeout))

    async def _file_provider(self, name: str) -> Provider[Any]:
        kind = name.partition(":")[0]
        if kind != gemini.PROVIDER:
            raise InvalidInputError(f"The provider of {name} keeps no files.")
        return await asyncio.to_thread(self._provider, kind)

    async def close(self) -> None:
        """Close every client."""
        providers = list(self._providers.values())
        self._providers.clear()
        self._built.clear()
        self._embedders.clear()
        await self.loop.close(*(partial(_close_client, provider) for provider in providers))

    def _caching_model(self, name: str) -> Model:
        provider_model = self.build(name)
        if provider_model.profile.caches is None:
            raise InvalidInputError(f"The provider of {name} keeps no caches.")
        return provider_model.model

    def _circuit(self, kind: str, name: str, timeout: float) -> Circuit:
        if (kind, name) not in self._circuits:
            self._circuits[kind, name] = self.circuit.closed_circuit(timeout)
        return self._circuits[kind, name]

    def _built_or_refused(self, name: str) -> ProviderModel:
        refusal = self._refusals.pop(name, None)
        if refusal is None or self.circuit.monotonic() >= refusal.until:
            try:
                built = self._build(name)
            except Exception as error:  # noqa: BLE001 - whatever a provider's library throws, callers see our words
                refusal = _Refusal(self._failure_detail(name, error), self.circuit.monotonic() + _REFUSED_FOR)
            else:
                if len(self._built) >= _MAX_MODELS:
                    self._forget(next(iter(self._built)))
                return built
        if len(self._refusals) >= _MAX_MODELS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[name] = refusal
        raise InvalidInputError.of("model", refusal.detail)

    def _failure_detail(self, name: str, error: Exception) -> str:
        if isinstance(error, InvalidInputError):
            return error.detail
        if isinstance(error, ImportError):
            return other_providers.missing_package(name.partition(":")[0], error)
        # Of a library's error only the type is reported, since its text may quote a path or a key.
        log.warning("model.not_built", model=name, error=type(error).__name__)
        return (
            f"The model {name} cannot be built: the library of its provider failed with {type(error).__name__}."
            " Check the provider's credentials and settings, and the proxy variables, where the service runs."
        )

    def _forget(self, name: str) -> None:
        del self._built[name]
        for kind in ("chat", "compaction"):
            self._circuits.pop((kind, name), None)

    def _new_embedder(self, name: str) -> EmbeddingModel:
        match = _NAME.fullmatch(name)
        if match is None or ".." in name:
            raise InvalidInputError(
                "An embedding model is named 'provider:model', as in 'google:gemini-embedding-001'."
            )
        return embedding.make_model(match["kind"], match["model"], self._provider(match["kind"]))

    def _build(self, name: str) -> ProviderModel:
        match = _NAME.fullmatch(name)
        if match is None or ".." in name:
            raise InvalidInputError("A model is named 'offline' or 'provider:model', as in 'google:gemini-2.5-flash'.")
        kind = other_providers.OPENAI if match["kind"] == other_providers.OPENAI_CHAT else match["kind"]
        model, takes_media = self._model(kind, match["model"])
        stateful = kind == openai_responses.KIND
        profile = profile_of(
            name,
            bundled=model.context_window,
            override=self.input_limit,
            stateful=stateful,
            caches=terms_of(model) if kind == gemini.PROVIDER else None,
            cost=partial(cost_of_tokens, model),
            refuses=partial(refused_fields, model),
            reads_media=takes_media,
            file_account=self.file_account(name),
        )
        return ProviderModel(model=model, profile=profile, takes_media=takes_media, loop=self.loop)

    def file_account(self, name: str) -> str | None:
        """Where a model's provider keeps files; ``None`` if it keeps none."""
        if name.partition(":")[0] != gemini.PROVIDER:
            return None
        return gemini.file_account(self.keys.google_api_key, self.keys.google_base_url)

    def _model(self, kind: str, name: str) -> tuple[Model, TakesMedia]:
        if kind == gemini.PROVIDER:
            return gemini.make_model(name, self._provider(kind)), gemini.takes_media
        if kind == openai_responses.KIND:
            model = openai_responses.make_model(name, self._provider(other_providers.OPENAI))
        else:
            model = other_providers.make_model(kind, name, self._provider(kind))
        return model, gemini.takes_media if kind in gemini.KINDS else other_providers.takes_media

    def _provider(self, kind: str) -> Provider[Any]:
        if kind not in self._providers:
            self._providers[kind] = self._new_provider(kind)
        return self._providers[kind]

    def _new_provider(self, kind: str) -> Provider[Any]:
        if kind in gemini.KINDS:
            gemini.ignore_warnings()
        provider = self._provider_without_limit(kind)
        limit_answers(provider, repairs_events=kind in gemini.KINDS)
        return provider

    def _provider_without_limit(self, kind: str) -> Provider[Any]:
        if kind == gemini.PROVIDER:
            return gemini.make_provider(self.keys.google_api_key, self.keys.google_base_url)
        if kind == other_providers.OPENAI:
            return other_providers.make_openai_provider(self.keys.openai_api_key, self.keys.openai_base_url)
        return other_providers.make_provider(kind, ambient=self.keys.ambient)


async def _close_client(provider: Provider[Any]) -> None:
    # A provider closes the client that it made when its context ends.
    async with provider:
        pass
