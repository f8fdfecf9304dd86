"""A provider's embedding model as an ``Embedder``: one call, never repeated here, and its answer is checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai.embeddings import EmbeddingModel, EmbeddingSettings, infer_embedding_model
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.embeddings.result import EmbeddingResult
from pydantic_ai.providers import Provider

from app.circuit import Circuit
from app.core.model.conversation import Usage
from app.core.model.embedding import BadVectorsError, Embedded, InputKind, packed_vector
from app.core.text.token_counts import estimate_text
from app.off_loop import off_loop
from app.providers.failures import unavailable
from app.providers.guarded import through_circuit
from app.providers.loop import ProviderLoop
from app.providers.replies import is_count


def make_model(kind: str, name: str, provider: Provider[Any]) -> EmbeddingModel:
    """The embedding model of that name, over the client of its provider."""
    found = infer_embedding_model(f"{kind}:{name}", provider_factory=lambda _: provider)
    return _SingleAttempt(name, provider=provider) if isinstance(found, OpenAIEmbeddingModel) else found


class _SingleAttempt(OpenAIEmbeddingModel):
    """Switches off repetition: OpenAI's client repeats a failed call twice, without a setting for that.

    The services repeat.
    """

    @property
    def _client(self) -> AsyncOpenAI:
        return super()._client.with_options(max_retries=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEmbedder:
    """``Embedder`` over a provider's model.

    ``timeouts`` bound a whole call of each kind, in seconds. ``dimensions``, where set, is how many numbers the model
    is asked for. While the circuit of a kind is open, no call of that kind is made.
    """

    model: EmbeddingModel
    loop: ProviderLoop
    """The event loop in which the provider's client runs."""
    model_name: str
    timeouts: Mapping[InputKind, float]
    circuits: Mapping[InputKind, Circuit]
    dimensions: int | None = None

    @property
    def name(self) -> str:
        """The model's name, with the dimensions that were chosen."""
        return self.model_name if self.dimensions is None else f"{self.model_name}@{self.dimensions}"

    @property
    def metered(self) -> bool:
        """A provider's call may always cost money."""
        return True

    async def embed(self, texts: Sequence[str], kind: InputKind) -> Embedded:
        """A vector for each text. Raises ``ModelUnavailableError``."""
        with through_circuit(self.circuits[kind]):
            with _translating_errors():
                async with asyncio.timeout(self.timeouts[kind]):
                    result = await self.loop.run(
                        lambda: self.model.embed(list(texts), input_type=kind, settings=self._settings())
                    )
            usage = await off_loop(_usage, result, texts)
            vectors = await off_loop(self._checked_vectors, result, len(texts))
            if vectors is None:
                raise BadVectorsError(usage)
            return Embedded(vectors=vectors, usage=usage)

    def _settings(self) -> EmbeddingSettings | None:
        return None if self.dimensions is None else EmbeddingSettings(dimensions=self.dimensions)

    def _checked_vectors(self, result: EmbeddingResult, count: int) -> tuple[bytes, ...] | None:
        numbers = [one or () for one in result.embeddings]
        wanted = {self.dimensions} if self.dimensions else {len(one) for one in numbers}
        found = [vector for one in numbers if (vector := packed_vector(one)) is not None]
        if len(found) != count or len(wanted) != 1 or not wanted.issuperset(map(len, numbers)):
            return None
        return tuple(found)


@contextmanager
def _translating_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a provider's client throws, callers see our words
        raise unavailable(error) from None


def _usage(result: EmbeddingResult, texts: Sequence[str]) -> Usage:
    tokens = result.usage.input_tokens
    if not tokens or not is_count(tokens):
        tokens = result.usage.input_tokens = sum(map(estimate_text, texts))
    return Usage(input_tokens=tokens, cost_usd=_cost(result))


def _cost(result: EmbeddingResult) -> float | None:
    try:
        return float(result.cost().total_price)
    except Exception:  # noqa: BLE001 - a price that cannot be told must never fail a call
        return None
