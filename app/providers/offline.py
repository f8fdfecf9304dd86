"""The offline model: the core's extractive compressor and responder behind the same ports as any provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    ChatRequest,
    DetailRequest,
    ModelProfile,
    Proposal,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    VerificationRequest,
)
from app.core.retrieval.answers import respond
from app.core.summarizer.offline.extractive import compress, digest
from app.core.text.patterns import compiled
from app.core.text.token_counts import estimate_text, weigh
from app.providers.profiles import offline_profile

NAME: Final = "offline"

_WORDS = compiled(r"\S++\s*+")
_WORDS_PER_DELTA: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineChat:
    """Answers with the best passages of the context; deterministic, and costs nothing."""

    profile: ModelProfile = field(default_factory=lambda: offline_profile(NAME))

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Yield the reply in pieces of a few words, as a provider would."""
        # In a thread: the ranking is CPU work, and the loop serves everybody else.
        reply = await asyncio.to_thread(respond, request.messages, request.locale)
        for piece in pieces(reply):
            yield TextDelta(text=piece)
            await asyncio.sleep(0)
        asked = sum(weigh(message.role, message.content, message.parts).tokens for message in request.messages)
        yield StepFinish(reason="stop", usage=_usage(asked, reply), model=self.profile.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSummarizer:
    """Proposes a state of the most telling sentences; deterministic, and costs nothing."""

    profile: ModelProfile = field(default_factory=lambda: offline_profile(NAME))

    async def propose(self, request: SummaryRequest) -> Proposal:
        """One candidate, in the same JSON that a provider's model is asked for."""
        text = await asyncio.to_thread(compress, request)
        read = sum(message.token_count for message in request.messages)
        read += sum(estimate_text(entry.text) for entry in request.previous)
        return Proposal(text=text, finish="stop", model=self.profile.name, usage=_usage(read, text))

    async def detail(self, request: DetailRequest) -> Proposal:
        """The stretch's most telling sentences, in order."""
        text = await asyncio.to_thread(digest, request.messages, request.target_tokens, request.locale)
        read = sum(message.token_count for message in request.messages)
        return Proposal(text=text, finish="stop", model=self.profile.name, usage=_usage(read, text))

    async def verify(self, request: VerificationRequest) -> Proposal:  # noqa: ARG002 - it reads nothing
        """Never asked: what quotes needs no verifying. Raises ``ModelUnavailableError``."""
        raise ModelUnavailableError("cannot_verify", retryable=False)


def pieces(reply: str) -> list[str]:
    """Cut between words; joined, the pieces are the reply, character by character."""
    words = _WORDS.findall(reply)
    if not words:
        return [reply] if reply else []
    words[0] = reply[: len(reply) - len(reply.lstrip())] + words[0]
    return ["".join(words[start : start + _WORDS_PER_DELTA]) for start in range(0, len(words), _WORDS_PER_DELTA)]


def _usage(input_tokens: int, output: str) -> Usage:
    return Usage(input_tokens=input_tokens, output_tokens=estimate_text(output), cost_usd=0.0)
