"""Finds models by name: ``offline``, or ``provider:model`` as pydantic-ai writes them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from app.core.model.embedding import InputKind
from app.core.model.errors import FieldError, ModelNotAllowedError
from app.core.model.model_io import OFFLINE
from app.providers import offline
from app.providers.keys import NO_KEYS, Keys
from app.usecases.ports import ChatModel, Embedder, ProviderStore, Summarizer

if TYPE_CHECKING:
    from app.providers.built_models import BuiltModels

MODEL_TIMEOUT: Final = 60.0  # seconds
FAILURES_TO_OPEN: Final = 5
CIRCUIT_PAUSE: Final = 30.0  # seconds
_WITHOUT_PROVIDER: Final[Mapping[str, tuple[Callable[[], ChatModel], Callable[[], Summarizer]]]] = {
    OFFLINE: (offline.OfflineChat, offline.OfflineSummarizer)
}
"""The chat model and the summarizer of each name that is not built with pydantic-ai."""
SHOWN_NAMES: Final = 8
"""How many allowed models an error names in its sentence; ``extra`` has them all."""


class ModelRegistry:
    """The models of one process, by name.

    Nothing is built before it is needed, so a registry may be made before a fork. Building may take seconds:
    ``prepare`` does it off the event loop, and ``chat`` and ``summarizer`` then only look it up.

    * Timeouts are in seconds, each for a whole call; ``question_timeout`` is for the vector of a question.
    * ``input_limit``, if set, is the operator's input limit for every provider's model.
    * ``failures_to_open`` failures of a provider in a row open a model's circuit for ``circuit_pause`` seconds.
    * ``embedding`` names the model that makes vectors of ``embedding_dimensions`` numbers; empty = none.
    * ``allowed`` are the names that may be used besides the configured ones; ``None`` = every name.
    """

    def __init__(
        self,
        *,
        chat: str = OFFLINE,
        compaction: str = OFFLINE,
        keys: Keys = NO_KEYS,
        allowed: Collection[str] | None = None,
        input_limit: int | None = None,
        chat_timeout: float = MODEL_TIMEOUT,
        compaction_timeout: float = MODEL_TIMEOUT,
        embedding: str | None = None,
        embedding_dimensions: int | None = None,
        question_timeout: float = MODEL_TIMEOUT,
        failures_to_open: int = FAILURES_TO_OPEN,
        circuit_pause: float = CIRCUIT_PAUSE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chat = chat
        self._compaction = compaction
        self._keys = keys
        self._allowed = None if allowed is None else frozenset({*allowed, chat, compaction})
        self._input_limit = input_limit
        self._chat_timeout = chat_timeout
        self._compaction_timeout = compaction_timeout
        self._embedding = embedding
        self._embedding_dimensions = embedding_dimensions
        self._embedding_timeouts: dict[InputKind, float] = {"document": compaction_timeout, "query": question_timeout}
        self._failures_to_open = failures_to_open
        self._circuit_pause = circuit_pause
        self._monotonic = monotonic
        self._models: BuiltModels | None = None
        self._opening = threading.Lock()
        self._building: dict[str, asyncio.Task[Any]] = {}

    def allows(self, name: str) -> bool:
        """Whether a request or a policy may name this model."""
        return self._allowed is None or name in self._allowed

    async def prepare(self, name: str | None = None) -> None:
        """Build the model of that name, or the configured ones, in a thread.

        Requests that name the same model wait for the same build.

        Raises:
            ModelNotAllowedError: The operator does not allow the name; nothing is built.
            InvalidInputError: It cannot be built; the error says what is missing.
        """
        for wanted in dict.fromkeys([name] if name else [self._chat, self._compaction]):
            self._refuse_unlisted(wanted)
            if wanted not in _WITHOUT_PROVIDER and not (self._models and self._models.holds(wanted)):
                await asyncio.shield(self._build_task(wanted))
        if name is None and (embedding := self._embedding):
            await asyncio.to_thread(lambda: self._opened_models().build_embedder(embedding))

    def chat(self, name: str | None = None) -> ChatModel:
        """The chat model of that name, or the configured one. Raises what ``prepare`` raises."""
        name = name or self._chat
        self._refuse_unlisted(name)
        if own := _WITHOUT_PROVIDER.get(name):
            return own[0]()
        return self._opened_models().chat(name)

    def summarizer(self, name: str | None = None) -> Summarizer:
        """The summarizer of that name, or the configured compaction model. Raises what ``prepare`` raises."""
        name = name or self._compaction
        self._refuse_unlisted(name)
        if own := _WITHOUT_PROVIDER.get(name):
            return own[1]()
        return self._opened_models().summarizer(name, self._compaction_timeout)

    def seconds_away(self, name: str) -> float:
        """For how long the summarizer of that name refuses calls at once; 0 = it would make them."""
        return 0.0 if self._models is None else self._models.seconds_away(name)

    def embedder(self) -> Embedder | None:
        """The configured embedding model; ``None`` if there is none. Raises ``InvalidInputError``."""
        if not self._embedding:
            return None
        return self._opened_models().embedder(self._embedding, self._embedding_timeouts, self._embedding_dimensions)

    @property
    def store(self) -> ProviderStore:
        """Access to what providers keep for the service."""
        return self._opened_models()

    async def close(self) -> None:
        """Close every client; a model that is requested afterwards is built again."""
        models, self._models = self._models, None
        if models is not None:
            await models.close()

    def _refuse_unlisted(self, name: str) -> None:
        if self.allows(name):
            return
        names = sorted(self._allowed or ())
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        detail = (
            f"The model {name!r} is not allowed here: name one of {', '.join(names[:SHOWN_NAMES])}{more}, or have the"
            " operator add it to THROUGHLINE_MODELS."
        )
        wrong = FieldError(field="model", message=detail)
        raise ModelNotAllowedError(detail, errors=[wrong], extra={"allowed": names})

    def _build_task(self, name: str) -> asyncio.Task[Any]:
        if name not in self._building:
            task = asyncio.create_task(
                asyncio.to_thread(lambda: self._opened_models().build(name)), name=f"build {name}"
            )
            task.add_done_callback(lambda done: self._end_build(name, done))
            self._building[name] = task
        return self._building[name]

    def _end_build(self, name: str, done: asyncio.Task[Any]) -> None:
        self._building.pop(name, None)
        if not done.cancelled():
            done.exception()  # the caller may have left, and asyncio would log a warning

    def _opened_models(self) -> BuiltModels:
        with self._opening:
            if self._models is None:
                self._models = self._new_models()
            return self._models

    def _new_models(self) -> BuiltModels:
        # pydantic-ai takes a second to import, and a process that runs offline needs none of it.
        from app.providers.built_models import BuiltModels, CircuitSettings  # noqa: PLC0415

        circuit = CircuitSettings(failures=self._failures_to_open, pause=self._circuit_pause, monotonic=self._monotonic)
        return BuiltModels(
            keys=self._keys, input_limit=self._input_limit, circuit=circuit, chat_timeout=self._chat_timeout
        )
