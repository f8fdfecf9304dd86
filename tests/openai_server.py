"""A scripted server of OpenAI's Responses: the wire format on a socket, with the provider's memory and its refusals.

``with running_openai() as openai: openai.script("Yes.", {"calls": [{"name": "look_up", "args": {}}]})``. It keeps what
it was asked to keep, goes on from a response by its id, and refuses what OpenAI refuses: a response that it does not
keep, a result without a call, a call without a result, more than its window. A request with a response schema that is
not streamed is a compaction, and answered honestly; scripts are for chats, and a chat without a script gets a numbered
answer.

A behaviour is a text, or ``{text?, thoughts?, calls?, status?, code?, message?, incomplete?, hold?, hold_after?}``:
``calls`` are ``{name, args}``, ``thoughts`` are texts that are sent if the request asks for a summary of them, and
``incomplete`` is the reason why the answer broke off. An answer with ``hold`` waits for ``release()`` before its first
byte, one with ``hold_after`` after so many pieces of its stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.core.summarizer.detail_prompts import DETAIL_TASK
from app.core.text.token_counts import estimate_text
from tests import gemini_honest
from tests.gemini_server import serving

Json = dict[str, Any]
Behaviour = Mapping[str, Any]

PATIENCE: Final = 20.0  # seconds that a held answer waits at most
PIECES: Final = 4
_INVALID: Final = "invalid_request_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, with all that the model saw for it: what the provider stored, then the input."""

    body: Json
    seen: tuple[Json, ...]
    is_chat: bool

    @property
    def continues(self) -> str | None:
        found: str | None = self.body.get("previous_response_id")
        return found

    @property
    def input(self) -> list[Json]:
        found: list[Json] = self.body["input"]
        return found

    @property
    def texts(self) -> list[str]:
        """The texts of the input, item by item."""
        return [text_of(item) for item in self.input]


@dataclass(slots=True)
class OpenAI:
    """The server's memory and script, and its control."""

    url: str = ""
    window: int | None = None
    """The most tokens of input that the server takes; ``None`` for any number."""
    asked: list[Asked] = field(default_factory=list)
    away: bool = False
    """Whether the server deletes nothing for now."""
    kept: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    """The id of a response to everything up to its end."""
    rule: Callable[[Json], Behaviour | None] | None = None
    """The answer to a chat without a script, by its body; ``None`` from the rule leads to a numbered answer."""
    released: threading.Event = field(default_factory=threading.Event)
    _script: deque[Behaviour] = field(default_factory=deque)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def chats(self) -> list[Asked]:
        return [one for one in self.asked if one.is_chat]

    @property
    def last(self) -> Asked:
        return self.chats[-1]

    def script(self, *behaviours: str | Behaviour) -> None:
        """What the next chats are answered."""
        self._script.extend({"text": one} if isinstance(one, str) else one for one in behaviours)

    def forget(self) -> None:
        """Forget everything stored, as the provider does after a month."""
        self.kept.clear()

    def release(self) -> None:
        self.released.set()

    def reset(self) -> None:
        self.release()
        self.window, self.rule, self.away, self.released = None, None, False, threading.Event()
        self.asked.clear()
        self.kept.clear()
        self._script.clear()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/responses", self.create, methods=["POST"]),
                Route("/v1/responses/{id}", self.delete, methods=["DELETE"]),
            ]
        )

    async def delete(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        if self.away:
            return _error(503, None, "Try again later.")
        if self.kept.pop(id_, None) is None:
            return _error(404, None, f"Response with id '{id_}' not found.")
        return JSONResponse({"id": id_, "object": "response", "deleted": True})

    async def create(self, request: Request) -> Response:
        body = await request.json()
        previous = body.get("previous_response_id")
        seen = (*self.kept.get(previous, ()), *body["input"])
        is_chat = not _is_compaction(body) and DETAIL_TASK not in _prompt(body)
        self.asked.append(Asked(body=body, seen=seen, is_chat=is_chat))
        refused = self._refusal(body, seen)
        if refused is not None:
            return refused
        behaviour = self._next(body, is_chat=is_chat)
        if behaviour.get("hold"):
            await asyncio.to_thread(self.released.wait, PATIENCE)
        if "status" in behaviour:
            return _error(behaviour["status"], behaviour.get("code"), behaviour.get("message", "No."))
        id_ = f"resp_{next(self._numbers):032x}"
        output = self._output(body, behaviour)
        if body.get("store") is not False:
            self.kept[id_] = (*seen, *output)
        whole = _response(id_, body, output, behaviour, tokens=tokens_of(body, seen))
        if not body.get("stream"):
            return JSONResponse(whole)
        return StreamingResponse(self._streamed(whole, behaviour), media_type="text/event-stream")

    async def _streamed(self, whole: Json, behaviour: Behaviour) -> AsyncIterator[bytes]:
        """Send server-sent events, numbered, each under its name."""
        pieces, released = 0, self.released
        for number, event in enumerate(_events(whole)):
            data = json.dumps({"sequence_number": number, **event})
            yield f"event: {event['type']}\ndata: {data}\n\n".encode()
            pieces += event["type"].endswith(".delta")
            if pieces == behaviour.get("hold_after"):
                await asyncio.to_thread(released.wait, PATIENCE)

    def _next(self, body: Json, *, is_chat: bool) -> Behaviour:
        if is_chat:
            ruled = self.rule(body) if self.rule and not self._script else None
            return self._script.popleft() if self._script else ruled or {"text": f"Answer number {len(self.chats)}."}
        if _is_compaction(body):
            schema = body["text"]["format"]["schema"]
            if "verdicts" in schema["properties"]:
                return {"text": gemini_honest.dumps(gemini_honest.verdicts(_prompt(body)))}
            return {"text": gemini_honest.dumps(gemini_honest.candidate(_prompt(body), schema))}
        return {"text": gemini_honest.detail(_prompt(body))}

    def _refusal(self, body: Json, seen: Sequence[Json]) -> Response | None:
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            words = f"Previous response with id '{previous}' not found."
            return _error(400, "previous_response_not_found", words, param="previous_response_id")
        if self.window is not None and tokens_of(body, seen) > self.window:
            words = "Your input exceeds the context window of this model. Please adjust your input and try again."
            return _error(400, "context_length_exceeded", words, param="input")
        calls = [item["call_id"] for item in seen if item.get("type") == "function_call"]
        results = [item["call_id"] for item in seen if item.get("type") == "function_call_output"]
        for id_ in results:
            if id_ not in calls:
                return _error(400, None, f"No tool call found for function call output with call_id {id_}.")
        for id_ in calls:
            if id_ not in results:
                return _error(400, None, f"No tool output found for function call {id_}.")
        return None

    def _output(self, body: Json, behaviour: Behaviour) -> list[Json]:
        """The items of the output: a thought, a text, and calls."""
        told = behaviour.get("thoughts", ()) if (body.get("reasoning") or {}).get("summary") else ()
        summary = [{"type": "summary_text", "text": text} for text in told]
        output: list[Json] = [{"type": "reasoning", "id": self._id("rs"), "summary": summary}]
        status = "incomplete" if behaviour.get("incomplete") else "completed"
        if behaviour.get("text"):
            content = {"type": "output_text", "text": behaviour["text"], "annotations": [], "logprobs": []}
            message = {"type": "message", "id": self._id("msg"), "role": "assistant", "status": status}
            output.append({**message, "content": [content]})
        for call in behaviour.get("calls", ()):
            made = {"type": "function_call", "id": self._id("fc"), "call_id": self._id("call"), "status": "completed"}
            output.append({**made, "name": call["name"], "arguments": json.dumps(call["args"])})
        return output

    def _id(self, kind: str) -> str:
        return f"{kind}_provider{next(self._numbers):08x}"


@contextlib.contextmanager
def running_openai() -> Iterator[OpenAI]:
    """A server in a thread of this process, on a free port."""
    openai = OpenAI()
    with serving(openai.app()) as url:
        openai.url = f"{url}/v1"
        yield openai
        openai.release()


def text_of(item: Mapping[str, Any]) -> str:
    """The text of an item of an input or an output."""
    if item.get("type") == "function_call":
        return f"{item['name']} {item['arguments']}"
    said = item.get("output", item.get("content", ""))
    return said if isinstance(said, str) else " ".join(str(part.get("text", "")) for part in said)


def tokens_of(body: Mapping[str, Any], seen: Sequence[Json]) -> int:
    """The tokens as the provider counts them: instructions, tools, and everything that the model saw."""
    beside = [str(body.get("instructions") or ""), *(json.dumps(tool) for tool in body.get("tools", ()))]
    return sum(estimate_text(text) for text in [*beside, *(text_of(item) for item in seen)])


def _is_compaction(body: Mapping[str, Any]) -> bool:
    return not body.get("stream") and body.get("text", {}).get("format", {}).get("type") == "json_schema"


def _prompt(body: Mapping[str, Any]) -> str:
    return "\n".join([str(body.get("instructions") or ""), *(text_of(item) for item in body["input"])])


def _error(status: int, code: str | None, message: str, param: str | None = None) -> Response:
    error = {"message": message, "type": _INVALID, "param": param, "code": code}
    return JSONResponse({"error": error}, status_code=status)


def _response(id_: str, body: Json, output: list[Json], behaviour: Behaviour, *, tokens: int) -> Json:
    reason = behaviour.get("incomplete")
    said = sum(estimate_text(text_of(item)) for item in output if item["type"] != "reasoning")
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": tokens // 1_024 * 512},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + said,
    }
    return {
        "id": id_,
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": f"{body['model']}-2026-08-07",
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": body.get("text", {"format": {"type": "text"}}),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
    }


def _events(whole: Json) -> Iterator[Json]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        added = {**item, "content": []} if item["type"] == "message" else {**item}
        if item["type"] == "reasoning":
            added |= {"summary": []}
        if item["type"] == "function_call":
            added |= {"arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        if item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                yield from _thought(part, {**place, "summary_index": number})
        if item["type"] == "message":
            yield from _said(item["content"][0], {**place, "content_index": 0})
        if item["type"] == "function_call":
            for piece in _pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _thought(part: Json, place: Json) -> Iterator[Json]:
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _said(content: Json, place: Json) -> Iterator[Json]:
    yield {"type": "response.content_part.added", **place, "part": {**content, "text": ""}}
    for piece in _pieces(content["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": content["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": content}


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def obliging(body: Json) -> Behaviour | None:
    """The rule of a model that calls the first tool it is offered, once, and emits JSON if it is asked for."""
    last = body["input"][-1] if body["input"] else {}
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    if tools and last.get("type") != "function_call_output" and body.get("tool_choice") != "none":
        tool = tools[0]
        return {"calls": [{"name": tool["name"], "args": _filled(tool.get("parameters") or {})}]}
    wanted = body.get("text", {}).get("format", {})
    if wanted.get("type") == "json_schema":
        return {"text": json.dumps(_filled(wanted["schema"]))}
    return {"text": f"You said: {text_of(last)}"[:200]} if last else None


def _filled(schema: Mapping[str, Any]) -> Any:
    """The smallest value that a JSON schema allows, for the schemas of the tests."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _filled(properties[name]) for name in schema.get("required", properties)}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case _:
            return "Paris"
