"""Makes the chunks of a streamed chat completion; nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.http.openai.resources import Json, chat_tool_call, chat_usage
from app.http.openai.response_events import BOUNDARY


@dataclass(slots=True)
class ChatChunks:
    """Makes the chunks of one completion: ``begin``, pieces and calls, ``end``."""

    id: str
    created: int
    model: str
    with_usage: bool
    """Whether a last chunk reports the usage, and every other one has ``usage: null``."""
    _calls: int = 0
    _has_text: bool = False
    _needs_boundary: bool = False

    def begin(self) -> Json:
        """The first chunk, which names the role."""
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def text(self, piece: str) -> Iterator[Json]:
        """A piece of the reply."""
        if not piece:
            return
        if self._needs_boundary:
            piece, self._needs_boundary = BOUNDARY + piece, False
        self._has_text = True
        yield self._chunk({"content": piece})

    def reasoning(self, piece: str) -> Iterator[Json]:
        """A piece of the model's reasoning, in the field that servers of this format use for it."""
        if piece:
            yield self._chunk({"reasoning_content": piece})

    def boundary(self) -> None:
        """Note that the model looks something up before it goes on."""
        self._needs_boundary = self._has_text

    def call(self, id_: str, name: str, arguments: str) -> Iterator[Json]:
        """A call that waits for the client."""
        number, self._calls = self._calls, self._calls + 1
        yield self._chunk({"tool_calls": [{"index": number, **chat_tool_call(id_, name, arguments)}]})

    def end(self, finish_reason: str | None, usage: Mapping[str, Any] | None) -> Iterator[Json]:
        """The last chunks: why the reply ended, then its usage."""
        yield self._chunk({}, finish_reason)
        if self.with_usage:
            yield {**self._chunk_of_choices([]), "usage": chat_usage(usage)}

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = self._chunk_of_choices([choice])
        return {**chunk, "usage": None} if self.with_usage else chunk

    def _chunk_of_choices(self, choices: list[Json]) -> Json:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "service_tier": "default",
            "system_fingerprint": None,
        }
