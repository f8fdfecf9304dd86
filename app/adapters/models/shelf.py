"""Providers' models, built once per name over one client per provider."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic_ai.models import Model
from pydantic_ai.providers import Provider

from app.adapters.circuit import Circuit
from app.adapters.models import any as others
from app.adapters.models import gemini, responses
from app.adapters.models.guarded import GuardedChat, GuardedSummarizer
from app.adapters.models.keys import Keys
from app.adapters.models.language import Language, LanguageChat, LanguageSummarizer
from app.adapters.models.messages import TakesMedia
from app.adapters.models.prices import input_cost
from app.adapters.models.profiles import profile_of
from app.domain.errors import FieldError, InvalidInputError

_NAME = re.compile(r"(?P<kind>[a-z][a-z0-9/_-]{0,63}):(?P<model>[A-Za-z0-9][\w.:/@+-]{0,199})", re.ASCII)
_MOST_MODELS: Final = 64
"""A request may name any model: so many stay built, the oldest goes first."""
_TRIAL_GRACE: Final = 5.0  # seconds beyond its timeout after which nothing more will be heard of a call


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaking:
    """When a model's circuit opens: failures of its provider in a row, and the pause in seconds before a trial."""

    failures: int
    pause: float
    monotonic: Callable[[], float]

    def circuit(self, timeout: float) -> Circuit:
        """A closed circuit for calls of at most ``timeout`` seconds."""
        return Circuit(self.pause, self.monotonic, failures=self.failures, trial=timeout + _TRIAL_GRACE)


@dataclass(slots=True, kw_only=True)
class Shelf:
    """What is built; its clients belong to the event loop that first uses them.

    Chat and compaction by one model have a circuit each: a compaction too large to be answered in time says nothing
    of a chat.
    """

    keys: Keys
    breaking: Breaking
    input_limit: int | None = None
    _providers: dict[str, Provider[Any]] = field(default_factory=dict)
    _languages: dict[str, Language] = field(default_factory=dict)
    _circuits: dict[tuple[str, str], Circuit] = field(default_factory=dict)

    def chat(self, name: str, timeout: float) -> GuardedChat:
        """The chat model of that name. Raises ``InvalidInputError``."""
        model = LanguageChat(language=self._language(name), timeout=timeout)
        return GuardedChat(model, self._circuit("chat", name, timeout))

    def summarizer(self, name: str, timeout: float) -> GuardedSummarizer:
        """The summarizer of that name. Raises ``InvalidInputError``."""
        model = LanguageSummarizer(language=self._language(name), timeout=timeout)
        return GuardedSummarizer(model, self._circuit("compaction", name, timeout))

    async def close(self) -> None:
        """Close every client."""
        providers = list(self._providers.values())
        self._providers.clear()
        self._languages.clear()
        for provider in providers:
            async with provider:
                pass  # a provider closes the client it made when it is left

    def _circuit(self, kind: str, name: str, timeout: float) -> Circuit:
        if (kind, name) not in self._circuits:
            self._circuits[kind, name] = self.breaking.circuit(timeout)
        return self._circuits[kind, name]

    def _language(self, name: str) -> Language:
        if name not in self._languages:
            try:
                built = self._build(name)
            except InvalidInputError as error:
                wrong = FieldError(field="model", message=error.detail)
                raise InvalidInputError(error.detail, errors=[wrong]) from error
            if len(self._languages) >= _MOST_MODELS:
                self._forget(next(iter(self._languages)))
            self._languages[name] = built
        return self._languages[name]

    def _forget(self, name: str) -> None:
        del self._languages[name]
        for kind in ("chat", "compaction"):
            self._circuits.pop((kind, name), None)

    def _build(self, name: str) -> Language:
        match = _NAME.fullmatch(name)
        if match is None or ".." in name:
            raise InvalidInputError("A model is named 'offline' or 'provider:model', as in 'google:gemini-2.5-flash'.")
        kind = match["kind"]
        model, takes_media = self._model(kind, match["model"])
        stateful = kind == responses.KIND
        profile = profile_of(
            name,
            bundled=model.context_window,
            override=self.input_limit,
            stateful=stateful,
            input_cost=partial(input_cost, model),
        )
        return Language(model=model, profile=profile, takes_media=takes_media)

    def _model(self, kind: str, name: str) -> tuple[Model, TakesMedia]:
        if kind == gemini.PROVIDER:
            return gemini.model(name, self._provider(kind)), gemini.takes_media
        if kind == responses.KIND:
            return responses.model(name, self._provider(others.OPENAI)), others.takes_media
        return others.model(kind, name, self._provider(kind)), others.takes_media

    def _provider(self, kind: str) -> Provider[Any]:
        if kind not in self._providers:
            self._providers[kind] = self._new_provider(kind)
        return self._providers[kind]

    def _new_provider(self, kind: str) -> Provider[Any]:
        if kind == gemini.PROVIDER:
            return gemini.provider(self.keys.google_api_key, self.keys.google_base_url)
        if kind == others.OPENAI:
            return others.openai_provider(self.keys.openai_api_key, self.keys.openai_base_url)
        return others.provider(kind)
