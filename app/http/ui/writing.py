"""A UI message while it is written: what happens in a turn, as chunks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.model.conversation import Message
from app.core.model.gauge import Gauge
from app.http.present import present_gauge
from app.http.ui.chunks import GAUGE, Json, chunks_of, data, finish, text, tool_called, tool_returned
from app.http.ui.parts import call_part, metadata_of, notice_parts, recalled_parts, result_of
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.ui.threads import Passages


@dataclass(slots=True, kw_only=True)
class Writing:
    """Makes the chunks of one message: ``begin``, what happens, then ``complete`` or ``fail``."""

    id: str
    own_tools: Collection[str]
    _texts: int = 0
    _is_in_step: bool = False
    _is_in_text: bool = False
    _has_said: bool = False
    _has_called: bool = False
    """In this step."""
    _is_left_open: bool = False
    _to_come: set[str] = field(default_factory=set)
    """Calls of the frontend's tools in a step that called the service's too."""
    _called: set[str] = field(default_factory=set)
    _compacted: set[str] = field(default_factory=set)

    def begin(self, before: Sequence[Json]) -> Iterator[Json]:
        """Whose message it is, and what it held before the turn."""
        yield {"type": "start", "messageId": self.id}
        yield from chunks_of(before, "before")

    def gauge(self, gauge: Gauge) -> Json:
        """How full the context is."""
        return data(GAUGE, present_gauge(gauge).model_dump(mode="json"), GAUGE, transient=True)

    def say(self, piece: str) -> Iterator[Json]:
        """A piece of the reply."""
        if not piece:
            return
        if not self._is_in_text:
            yield from self._next_step()
            self._texts += 1
            self._is_in_text = True
            yield {"type": "text-start", "id": self._text_id}
        self._has_said = True
        yield text(self._text_id, piece)

    def called(self, message: Message) -> Iterator[Json]:
        """The model calls tools of the service, and maybe of the frontend: those are told at the end."""
        if not self._is_in_text:
            yield from self._next_step()
        yield from self._end_text()
        for part in message.parts:
            if part.get("type") == "tool_call" and part.get("name") in self.own_tools:
                yield from self._call(part)
            elif part.get("type") == "tool_call":
                self._to_come.add(str(part["id"]))

    def returned(self, message: Message) -> Iterator[Json]:
        """What a tool of the service came to; the model is asked again then."""
        for part in message.parts:
            if part.get("type") == "tool_result" and part["tool_call_id"] in self._called:
                known = call_part({"id": part["tool_call_id"], "name": part.get("name")}, self.own_tools)
                yield tool_returned(known | result_of(part))

    def left_open(self, call: Mapping[str, Any]) -> Iterator[Json]:
        """A call that waits for the frontend."""
        if call["id"] in self._called:
            return
        if not self._is_in_text and not self._is_left_open and call["id"] not in self._to_come:
            yield from self._next_step()
        self._is_left_open = True
        yield from self._end_text()
        yield from self._call(call)

    def compaction(self, part: Json) -> Json:
        """How a compaction stands."""
        self._compacted.add(part["id"])
        return part

    def has_told(self, compaction_id: str) -> bool:
        """Whether a compaction was told of."""
        return compaction_id in self._compacted

    def complete(self, result: ChatResult, passages: Passages, *, interrupted: bool) -> Iterator[Json]:
        """The end of a turn that has its reply."""
        if not self._has_said:
            yield from self.say(result.reply.content)
        for call in result.open_calls:
            yield from self.left_open({"id": call.id, "name": call.name, "arguments": call.arguments})
        yield from self._end_text()
        yield from recalled_parts(result.recalled, passages)
        yield from notice_parts(result.warnings)
        yield from self._end_step()
        yield self.gauge(result.gauge)
        metadata = metadata_of(result.reply)
        if interrupted:
            yield {"type": "message-metadata", "messageMetadata": metadata}
            yield {"type": "abort", "reason": "interrupted"}
        else:
            yield finish(result.finish, metadata)

    def fail(self, problem: str) -> Iterator[Json]:
        """The end of a turn that failed."""
        yield from self._end_step()
        yield {"type": "error", "errorText": problem}

    @property
    def _text_id(self) -> str:
        return f"text-{self._texts}"

    def _call(self, part: Mapping[str, Any]) -> Iterator[Json]:
        self._called.add(str(part["id"]))
        self._has_called = True
        is_ours = part["name"] in self.own_tools
        yield tool_called(str(part["id"]), str(part["name"]), part.get("arguments"), is_ours=is_ours)

    def _next_step(self) -> Iterator[Json]:
        """What follows calls is another step of the model."""
        if self._has_called:
            yield from self._end_step()
        if not self._is_in_step:
            self._is_in_step = True
            yield {"type": "start-step"}

    def _end_text(self) -> Iterator[Json]:
        if self._is_in_text:
            self._is_in_text = False
            yield {"type": "text-end", "id": self._text_id}

    def _end_step(self) -> Iterator[Json]:
        yield from self._end_text()
        if self._is_in_step:
            self._is_in_step = self._has_called = False
            yield {"type": "finish-step"}
