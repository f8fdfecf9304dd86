"""Makes the events of a response's stream, numbered from 0, in the order that the API prescribes.

How many pieces a text comes in differs from one stream of a response to the next: from the provider, from another
process, from the database. So each text is cut anew, at places that depend on nothing but the text. Then the numbers of
all streams of a response mean the same, and a client can go on in another one after the last number that it has.

It does no input or output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.http.openai.items import call_item, message_item, output_text, reasoning_item, summary_text
from app.http.openai.resources import Json
from app.http.openai.settings import offered_name

BOUNDARY: Final = "\n\n"
"""Separates the model's text before and after a look-up."""
TEXT_DELTA: Final = "response.output_text.delta"
REASONING_DELTA: Final = "response.reasoning_summary_text.delta"
ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_PIECE_LENGTHS: Final = ((4_096, 8), (65_536, 64))
"""Up to a place in a text, how many characters a piece has there: a long text does not become too many events."""
_MAX_PIECE_LENGTH: Final = 16_384


class TextPieces:
    """Cuts a text that comes in any pieces into pieces whose places depend only on the text."""

    def __init__(self) -> None:
        self._place = 0
        self._rest = ""

    def add(self, text: str) -> Iterator[str]:
        """Take more of the text, and give the pieces that are whole now."""
        text, start = self._rest + text, 0
        while len(text) - start >= (length := _piece_length(self._place)):
            yield text[start : start + length]
            start, self._place = start + length, self._place + length
        self._rest = text[start:]

    def end(self) -> Iterator[str]:
        """Give the last piece, if there is one, and begin a new text."""
        if self._rest:
            yield self._rest
        self._place, self._rest = 0, ""


def _piece_length(place: int) -> int:
    return next((length for end, length in _PIECE_LENGTHS if place < end), _MAX_PIECE_LENGTH)


@dataclass(slots=True)
class ResponseEvents:
    """Makes the events of one response.

    ``begin``, any number of ``reasoning``, ``text``, ``boundary`` and ``call``, then one of ``complete`` and ``fail``.
    """

    resource: Callable[[str, Sequence[Json]], Json]
    """Builds the response as it is now, from its status and output."""
    message: str
    """The id of the item with the reply's text."""
    call_id: Callable[[int], str]
    """The id of the item for the call with that number among the parts of the reply."""
    reasoning_id: Callable[[int], str]
    """The id of the item for the reasoning with that number."""
    tools: Sequence[Json] = ()
    """The tools of the request, as the response repeats them: a call of one in a namespace names that."""
    _number: int = 0
    _pieces: TextPieces = field(default_factory=TextPieces)
    """Of the open item."""
    _said: list[str] = field(default_factory=list)
    """The text of the reply so far."""
    _held: str = ""
    """The blank beginning of a step's text, since a stored message without a word is no item."""
    _is_open: bool = False
    _needs_boundary: bool = False
    _thoughts: int = 0
    _thought: list[str] = field(default_factory=list)
    """The pieces of the open reasoning item; empty if none is open."""
    _output: list[Json] = field(default_factory=list)

    def begin(self) -> Iterator[Json]:
        """The response exists now."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self.resource("in_progress", ()))

    def reasoning(self, piece: str) -> Iterator[Json]:
        """A piece of the model's reasoning; ignored once the reply's text has begun, since that item is still open."""
        if not piece or self._is_open:
            return
        if not self._thought:
            item = reasoning_item(self._thought_id, (), "in_progress")
            yield self._event("response.output_item.added", output_index=self._output_index, item=item)
            yield self._summary_event("response.reasoning_summary_part.added", part=summary_text(""))
        self._thought.append(piece)
        yield from self._thought_deltas(self._pieces.add(piece))

    def text(self, piece: str) -> Iterator[Json]:
        """A piece of the reply. Blank pieces at the beginning of a step are sent with its first word, or not at all."""
        piece, self._held = self._held + piece, ""
        if not piece.strip() and (self._needs_boundary or not self._is_open):
            self._held = piece
            return
        if not piece:
            return
        yield from self._close_thought("completed")
        if not self._is_open:
            self._is_open = True
            item = message_item(self.message, "assistant", (), "in_progress")
            yield self._event("response.output_item.added", output_index=self._output_index, item=item)
            yield self._part_event("response.content_part.added", part=output_text(""))
        if self._needs_boundary:
            self._needs_boundary = False
            piece = BOUNDARY + piece
        self._said.append(piece)
        yield from self._text_deltas(self._pieces.add(piece))

    def boundary(self) -> None:
        """Note that the model looks something up before it goes on."""
        self._needs_boundary, self._held = bool(self._said), ""

    def call(self, part: int, id_: str, name: str, arguments: str) -> Iterator[Json]:
        """A call that waits for the client; ``part`` is its number among the parts of the reply."""
        yield from self._close_open_items("completed")
        item_id = self.call_id(part)
        name, namespace = _in_its_namespace(name, self.tools)
        begun = {**call_item(item_id, id_, name, "", "in_progress"), **namespace}
        whole = {**call_item(item_id, id_, name, arguments), **namespace}
        place = {"item_id": item_id, "output_index": self._output_index}
        yield self._event("response.output_item.added", output_index=self._output_index, item=begun)
        yield self._event("response.function_call_arguments.delta", **place, delta=arguments)
        yield self._event("response.function_call_arguments.done", **place, name=name, arguments=arguments)
        yield self._event("response.output_item.done", output_index=self._output_index, item=whole)
        self._output.append(whole)

    def complete(self, status: str) -> Iterator[Json]:
        """The end of a response with a reply: ``completed``, ``incomplete`` or ``cancelled``."""
        yield from self._close_open_items("completed" if status == "completed" else "incomplete")
        kind = "response.completed" if status == "completed" else "response.incomplete"
        yield self._event(kind, response=self.resource(status, tuple(self._output)))

    def fail(self) -> Iterator[Json]:
        """The events at the end of a failed response. The resource contains the error."""
        yield from self._close_open_items("incomplete")
        yield self._event("response.failed", response=self.resource("failed", tuple(self._output)))

    def own(self, kind: str, data: Json) -> Json:
        """An event of this service, for a client that asked for such events: it has the number of the one before."""
        return {**data, "type": f"throughline:{kind}", "sequence_number": self._number - 1}

    @property
    def reply_text(self) -> str:
        """The text of the reply as it was sent."""
        return "".join(self._said)

    @property
    def _output_index(self) -> int:
        return len(self._output)

    @property
    def _thought_id(self) -> str:
        return self.reasoning_id(self._thoughts)

    def _close_thought(self, status: str) -> Iterator[Json]:
        if not self._thought:
            return
        yield from self._thought_deltas(self._pieces.end())
        text = "".join(self._thought)
        item = reasoning_item(self._thought_id, (text,), status)
        yield self._summary_event("response.reasoning_summary_text.done", text=text)
        yield self._summary_event("response.reasoning_summary_part.done", part=summary_text(text))
        yield self._event("response.output_item.done", output_index=self._output_index, item=item)
        self._output.append(item)
        self._thoughts += 1
        self._thought.clear()

    def _close_open_items(self, status: str) -> Iterator[Json]:
        yield from self._close_thought(status)
        if not self._is_open:
            return
        yield from self._text_deltas(self._pieces.end())
        text, self._is_open = self.reply_text, False
        item = message_item(self.message, "assistant", (output_text(text),), status)
        yield self._part_event("response.output_text.done", text=text, logprobs=[])
        yield self._part_event("response.content_part.done", part=output_text(text))
        yield self._event("response.output_item.done", output_index=self._output_index, item=item)
        self._output.append(item)

    def _thought_deltas(self, pieces: Iterator[str]) -> Iterator[Json]:
        return (self._summary_event(REASONING_DELTA, delta=piece) for piece in pieces)

    def _text_deltas(self, pieces: Iterator[str]) -> Iterator[Json]:
        return (self._part_event(TEXT_DELTA, delta=piece, logprobs=[]) for piece in pieces)

    def _summary_event(self, kind: str, **fields: Any) -> Json:
        return self._event(kind, item_id=self._thought_id, output_index=self._output_index, summary_index=0, **fields)

    def _part_event(self, kind: str, **fields: Any) -> Json:
        return self._event(kind, item_id=self.message, output_index=self._output_index, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}


def _in_its_namespace(name: str, tools: Sequence[Json]) -> tuple[str, Json]:
    """A called function's own name, and the namespace that its item has beside it, if it is in one."""
    for namespace in tools:
        for tool in namespace.get("tools", ()):
            if offered_name(tool["name"], namespace["name"]) == name:
                return tool["name"], {"namespace": namespace["name"]}
    return name, {}


def event_after(event: Json, number: int) -> Json | None:
    """The event for a client that has all events up to that number; ``None`` if it has this one too.

    A client that waits for the end of a response always gets the last event, since a response that failed is shorter
    in a later stream than in the one that the client followed.
    """
    if event["sequence_number"] > number:
        return event
    return {**event, "sequence_number": number + 1} if event["type"] in ENDS else None
