"""Writes a UI message as chunks while a turn runs. It does no input or output."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.model.conversation import Message
from app.core.model.gauge import Gauge
from app.http import schemas
from app.http.ui.chunks import GAUGE, Json, PartKind, chunks_before, data, finish, piece_of, tool_called, tool_returned
from app.http.ui.parts import call_part, metadata_of, notice_parts, recalled_parts, result_of
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.ui.threads import Passages


@dataclass(slots=True, kw_only=True)
class MessageChunks:
    """Makes the chunks of one message: ``begin``, then its events, then ``complete`` or ``fail``."""

    id: str
    own_tools: Collection[str]
    _part_count: int = 0
    """The number of texts and reasoning parts so far."""
    _open_part: PartKind | None = None
    """The kind of part that is open; ``None`` if none is open."""
    _is_in_step: bool = False
    _has_text: bool = False
    _has_called: bool = False
    """Whether the model has called a tool in this step."""
    _has_open_call: bool = False
    """Whether a call was sent that waits for the frontend."""
    _frontend_calls: set[str] = field(default_factory=set)
    """Calls of the frontend's tools in a step that also called the service's tools."""
    _sent_calls: set[str] = field(default_factory=set)
    """Ids; what was sent is not sent again. The same holds for the fields below."""
    _sent_compactions: set[str] = field(default_factory=set)
    _sent_recall: tuple[int, ...] = ()
    _sent_sources: set[str] = field(default_factory=set)

    def begin(self, before: Sequence[Json]) -> Iterator[Json]:
        """Begin a message with its id and the parts that it had before the turn."""
        yield {"type": "start", "messageId": self.id}
        yield from chunks_before(before)

    def gauge(self, gauge: Gauge) -> Json:
        """How full the context is."""
        return data(GAUGE, schemas.Gauge.model_validate(gauge).model_dump(mode="json"), GAUGE, transient=True)

    def text(self, piece: str) -> Iterator[Json]:
        """A piece of the reply."""
        self._has_text = self._has_text or bool(piece)
        yield from self._write("text", piece)

    def reasoning(self, piece: str) -> Iterator[Json]:
        """A piece of the model's reasoning."""
        yield from self._write("reasoning", piece)

    def recalled(self, seqs: Sequence[int], passages: Passages) -> Iterator[Json]:
        """What was recalled for the reply. If it is sent again, it replaces what was sent before."""
        if tuple(seqs) == self._sent_recall:
            return
        self._sent_recall = tuple(seqs)
        for part in recalled_parts(seqs, passages):
            source = part.get("sourceId")
            if source is None:
                yield part
            elif source not in self._sent_sources:
                self._sent_sources.add(source)
                yield part

    def stored(self, message: Message) -> Iterator[Json]:
        """A message of the turn that its events do not contain: words and calls, or results."""
        if message.role == "assistant":
            yield from self.reasoning(message.reasoning)
            yield from self.text(message.content)
            yield from self.own_calls(message)
        else:
            yield from self.own_results(message)

    def own_calls(self, message: Message) -> Iterator[Json]:
        """Calls of the service's tools in a message of the model; calls of the frontend's tools are sent at the end."""
        if self._open_part != "text":
            yield from self._begin_step()
        yield from self._end_part()
        for part in message.parts:
            if part.get("type") == "tool_call" and part.get("name") in self.own_tools:
                yield from self._call_chunks(part)
            elif part.get("type") == "tool_call":
                self._frontend_calls.add(str(part["id"]))

    def own_results(self, message: Message) -> Iterator[Json]:
        """Results of the service's tools, after which the model is asked again."""
        for part in message.parts:
            if part.get("type") == "tool_result" and part["tool_call_id"] in self._sent_calls:
                known = call_part({"id": part["tool_call_id"], "name": part.get("name")}, self.own_tools)
                yield tool_returned(known | result_of(part))

    def open_call(self, call: Mapping[str, Any]) -> Iterator[Json]:
        """A call that waits for the frontend."""
        if call["id"] in self._sent_calls:
            return
        if self._open_part != "text" and not self._has_open_call and call["id"] not in self._frontend_calls:
            yield from self._begin_step()
        self._has_open_call = True
        yield from self._end_part()
        yield from self._call_chunks(call)

    def compaction(self, part: Json) -> Json:
        """The state of a compaction."""
        self._sent_compactions.add(part["id"])
        return part

    def has_compaction(self, compaction_id: str) -> bool:
        """Whether a compaction was already sent."""
        return compaction_id in self._sent_compactions

    def complete(self, result: ChatResult, passages: Passages, *, interrupted: bool) -> Iterator[Json]:
        """The end of a turn with a reply."""
        if not self._has_text:
            yield from self.text(result.reply.content)
        for call in result.open_calls:
            yield from self.open_call({"id": call.id, "name": call.name, "arguments": call.arguments})
        yield from self._end_part()
        yield from self.recalled(result.recalled, passages)
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
    def _open_id(self) -> str:
        return f"{self._open_part}-{self._part_count}"

    def _write(self, kind: PartKind, piece: str) -> Iterator[Json]:
        if not piece:
            return
        if self._open_part != kind:
            yield from self._end_part()
            yield from self._begin_step()
            self._part_count += 1
            self._open_part = kind
            yield {"type": f"{kind}-start", "id": self._open_id}
        yield piece_of(kind, self._open_id, piece)

    def _call_chunks(self, part: Mapping[str, Any]) -> Iterator[Json]:
        self._sent_calls.add(str(part["id"]))
        self._has_called = True
        is_ours = part["name"] in self.own_tools
        yield tool_called(str(part["id"]), str(part["name"]), part.get("arguments"), is_ours=is_ours)

    def _begin_step(self) -> Iterator[Json]:
        """Begin a step unless one is open; after calls, the model begins another one."""
        if self._has_called:
            yield from self._end_step()
        if not self._is_in_step:
            self._is_in_step = True
            yield {"type": "start-step"}

    def _end_part(self) -> Iterator[Json]:
        if self._open_part is not None:
            yield {"type": f"{self._open_part}-end", "id": self._open_id}
            self._open_part = None

    def _end_step(self) -> Iterator[Json]:
        yield from self._end_part()
        if self._is_in_step:
            self._is_in_step = self._has_called = False
            yield {"type": "finish-step"}
