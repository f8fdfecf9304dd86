"""Compacted input: sealed and opened off the event loop, whole."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic import TypeAdapter

from app.http.openai.items import InputItem, content_of, draft_of
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.sealed_inputs import CompactedInput, SealedInputs

TENANT = UUID(int=1)
INPUT_ITEM: Final[TypeAdapter[Any]] = TypeAdapter(InputItem)


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


@pytest.mark.parametrize("limit", [0, 4, 100])
def test_a_message_that_is_sent_again_beside_its_token_is_not_taken_twice(limit: int) -> None:
    def item(content: list[dict[str, Any]]) -> MessageDraft:
        return draft_of(INPUT_ITEM.validate_python({"type": "message", "role": "user", "content": content}))

    texts: Any = [{"type": "input_text", "text": text} for text in ("Before:", "After:", " ")]
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    given = item([texts[0], picture, texts[1], picture, texts[2]])
    compacted = CompactedInput(messages=(given,)).with_media_within(limit)
    (shown,) = compacted.user_messages
    again = item(content_of("user", shown.content, shown.parts))
    assert compacted.repeated_at_end([again]) == 1
