"""Compacted input: sealed and opened off the event loop, whole."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import pytest
from pydantic import TypeAdapter

from app.core.model.errors import InvalidInputError
from app.http.openai.items import InputItem, content_of, draft_of
from app.infrastructure.sealing import AesSealer
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai import sealed_inputs
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


@pytest.mark.parametrize(
    ("made_for", "read_by", "opens"),
    [
        ("alice", "alice", True),
        ("alice", "bob", False),
        (None, "bob", False),
        ("alice", None, True),
        (None, None, True),
    ],
)
async def test_what_was_sealed_for_an_end_user_no_other_end_user_opens(
    made_for: str | None, read_by: str | None, monkeypatch: pytest.MonkeyPatch, *, opens: bool
) -> None:
    given: Any = (SimpleNamespace(sealing_secret=_secret), AesSealer("x" * 32))
    inputs, compacted = SealedInputs(*given), CompactedInput(summary="s")
    monkeypatch.setattr(sealed_inputs, "current_user", lambda: made_for)
    token = await inputs.seal(TENANT, compacted)
    monkeypatch.setattr(sealed_inputs, "current_user", lambda: read_by)
    if opens:
        assert await inputs.open(TENANT, token) == compacted
    else:
        with pytest.raises(InvalidInputError):
            await inputs.open(TENANT, token)


async def test_a_token_of_an_older_version_is_opened() -> None:
    given: Any = (SimpleNamespace(sealing_secret=_secret), _Recording())
    assert await SealedInputs(*given).open(TENANT, '{"v": 1, "summary": "s", "messages": []}') == CompactedInput(
        summary="s"
    )


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
