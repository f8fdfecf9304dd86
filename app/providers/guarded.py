"""A model behind a circuit breaker: while its provider fails, calls fail at once, and callers may ask another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from app.circuit import Circuit
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    ChatRequest,
    ModelProfile,
    Proposal,
    StepEvent,
)
from app.usecases.ports import ChatModel, Summarizer, SummarizerRequest

CIRCUIT_OPEN: Final = "circuit_open"
_OUTAGES: Final = frozenset({"timeout", "connection", "server_error", "unreadable", "bad_vectors"})
"""Reasons that mean an outage. A wrong key, a refused request or a rate limit is an answer."""


@dataclass(frozen=True, slots=True)
class GuardedSummarizer:
    """``Summarizer`` that refuses at once while the circuit is open."""

    inner: Summarizer
    circuit: Circuit

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""
        return self.inner.profile

    async def ask(self, request: SummarizerRequest) -> Proposal:
        """One call. Raises ``ModelUnavailableError``; with ``circuit_open`` if no call was made."""
        with through_circuit(self.circuit):
            return await self.inner.ask(request)


@dataclass(frozen=True, slots=True)
class GuardedChat:
    """``ChatModel`` that refuses at once while the circuit is open."""

    inner: ChatModel
    circuit: Circuit

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""
        return self.inner.profile

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Stream one reply. Raises ``ModelUnavailableError``; with ``circuit_open`` if no call was made."""
        with through_circuit(self.circuit):
            steps = self.inner.step(request)
            try:
                async for event in steps:
                    yield event
            finally:
                close = getattr(steps, "aclose", None)
                if close is not None:
                    await close()


@contextmanager
def through_circuit(circuit: Circuit) -> Iterator[None]:
    """Let a call through or refuse it, and note its result.

    A call that began before the circuit opened does not count.
    """
    trial = not circuit.is_closed
    if not circuit.allows():
        raise ModelUnavailableError(CIRCUIT_OPEN, retryable=False, retry_after=circuit.seconds_left)
    try:
        yield
    except ModelUnavailableError as error:
        _note_outcome(circuit, away=error.reason in _OUTAGES, trial=trial)
        raise
    except BaseException:
        # Cancelled, or abandoned in mid-stream: this says nothing about the provider.
        if trial:
            circuit.abandoned()
        raise
    _note_outcome(circuit, away=False, trial=trial)


def _note_outcome(circuit: Circuit, *, away: bool, trial: bool) -> None:
    if not trial and not circuit.is_closed:
        return
    if away:
        circuit.failed()
    else:
        circuit.succeeded()
