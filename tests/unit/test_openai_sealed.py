"""Compacted input: sealed and opened off the event loop, whole."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.sealed_inputs import CompactedInput, SealedInputs

TENANT = UUID(int=1)


class _Recording:
    """A sealer that seals nothing, and notes in which threads it worked."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def seal(self, text: str, _tenant_id: UUID, _secret: bytes) -> str:
        self.threads.add(threading.current_thread())
        return text

    def open(self, token: str, _tenant_id: UUID, _secret: bytes) -> str | None:
        return self.seal(token, TENANT, b"")


async def _secret(_tenant_id: UUID) -> bytes:
    return b""


async def test_large_input_is_sealed_and_opened_off_the_loop() -> None:
    sealer, shell = _Recording(), SimpleNamespace(sealing_secret=_secret)
    given: Any = (shell, sealer)
    inputs = SealedInputs(*given)
    picture = {"type": "media", "media_type": "image/png", "data": "AAAA" * 10_000}
    compacted = CompactedInput(summary="s", messages=(MessageDraft(role="user", content="Look.", parts=(picture,)),))
    assert await inputs.open(TENANT, await inputs.seal(TENANT, compacted)) == compacted
    assert sealer.threads
    assert threading.current_thread() not in sealer.threads
