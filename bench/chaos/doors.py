"""Sends a message through each door (kind of request) of the service, once per call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bench.chaos.cluster import REQUEST_SECONDS
from bench.chaos.log import Answer, Json
from tests.acceptance.talk import END, STREAM, Talk, read_events

MODEL: Final = "throughline"
OVERTAKEN: Final = "conversation_moved_on"
"""The problem of a message whose turn failed: it is stored, and a later turn's reply answered it with its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A message and the key under which it is sent, once or several times."""

    content: str
    key: str
    tries: int
    """How often it was sent before."""


class BrokenError(Exception):
    """No answer came, or only half of one: it is unknown what was done."""


class RefusedError(Exception):
    """The service refused the request."""

    def __init__(self, status: int, code: str, *, retryable: bool) -> None:
        super().__init__(f"{status} {code}")
        self.code = code
        self.retryable = retryable


Door = Callable[[Talk, Asked], Answer]


def append(talk: Talk, asked: Asked) -> Answer:
    """Append without a reply."""
    body = _whole(_post(talk, talk.path("/messages"), {"role": "user", "content": asked.content}, asked))
    return Answer(message_id=body["id"], seq=body["seq"])


def chat(talk: Talk, asked: Asked) -> Answer:
    """A turn, answered as a whole."""
    return _turn(_whole(_post(talk, talk.path("/chat"), {"content": asked.content}, asked)))


def streamed_chat(talk: Talk, asked: Asked) -> Answer:
    """A turn, answered as server-sent events."""
    headers = {**STREAM, "Idempotency-Key": asked.key}
    pieces: list[str] = []
    with talk.http.stream("POST", talk.path("/chat"), json={"content": asked.content}, headers=headers) as response:
        check(response)
        for event in read_events(response):
            if event.type == "reply.delta":
                pieces.append(event.data["text"])
            elif event.type == "reply.failed":
                raise _refusal(int(event.data.get("status", 500)), event.data)
            elif event.type in {"reply.completed", "reply.interrupted"}:
                return _turn(event.data, "".join(pieces))
    raise BrokenError


def ui(talk: Talk, asked: Asked) -> Answer:
    """A turn as a frontend with the AI SDK makes it: the message's own id is the key."""
    message = {"id": asked.key, "role": "user", "parts": [{"type": "text", "text": asked.content}]}
    body = {"id": "chat", "trigger": "submit-message", "message": message}
    pieces: list[str] = []
    with talk.http.stream("POST", talk.path("/ui"), json=body) as response:
        check(response)
        for chunk in _data(response):
            if chunk["type"] == "text-delta":
                pieces.append(chunk["delta"])
            elif chunk["type"] == "error":
                raise _refusal(502, json.loads(chunk["errorText"]))
            elif chunk["type"] == "finish":
                return Answer(reply_id=chunk["messageMetadata"]["message_id"], pieces="".join(pieces))
    raise BrokenError


def completion(talk: Talk, asked: Asked) -> Answer:
    """A chat completion that names its conversation, streamed."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": asked.content}],
        "conversation": _named(talk),
        "stream": True,
    }
    pieces: list[str] = []
    headers = {"Idempotency-Key": asked.key}
    with talk.http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
        check(response)
        for chunk in _data(response):
            if "error" in chunk:
                raise _refusal(502, chunk)
            for choice in chunk["choices"]:
                pieces.append(choice["delta"].get("content") or "")
                if choice.get("finish_reason"):
                    return Answer(pieces="".join(pieces))
    raise BrokenError


def response(talk: Talk, asked: Asked) -> Answer:
    """A response, answered as a whole."""
    body = {"model": MODEL, "input": asked.content, "conversation": _named(talk)}
    return _response(_whole(_post(talk, "/v1/responses", body, asked)))


def socket(talk: Talk, asked: Asked) -> Answer:
    """A response over a WebSocket, whose client counts its tries as OpenAI's SDKs do."""
    try:
        return asyncio.run(asyncio.wait_for(_over_socket(talk, asked), 2 * REQUEST_SECONDS))
    except (WebSocketException, OSError, TimeoutError) as error:
        raise BrokenError from error


async def _over_socket(talk: Talk, asked: Asked) -> Answer:
    url = f"{str(talk.http.base_url).replace('http', 'ws').rstrip('/')}/v1/responses"
    body = {"type": "response.create", "model": MODEL, "input": asked.content, "conversation": _named(talk)}
    headers = {"x-stainless-retry-count": str(min(asked.tries, 99))}
    pieces: list[str] = []
    async with connect(url, additional_headers=headers, open_timeout=REQUEST_SECONDS, proxy=None) as open_socket:
        await open_socket.send(json.dumps(body))
        while True:
            event = json.loads(await open_socket.recv())
            if event["type"] == "response.output_text.delta":
                pieces.append(event["delta"])
            elif event["type"] in {"response.failed", "error"}:
                raise _refusal(int(event.get("status", 502)), event.get("response", event))
            elif event["type"] in {"response.completed", "response.incomplete"}:
                return _response(event["response"], "".join(pieces))


DOORS: Final[Mapping[str, Door]] = {
    "chat": chat,
    "chat, streamed": streamed_chat,
    "ui": ui,
    "chat completions": completion,
    "responses": response,
    "responses, socket": socket,
}
"""The doors that answer with a reply."""


def _post(talk: Talk, path: str, body: Json, asked: Asked) -> httpx.Response:
    return talk.http.post(path, json=body, headers={"Idempotency-Key": asked.key})


def _whole(answer: httpx.Response) -> Json:
    check(answer)
    body: Json = answer.json()
    return body


def check(answer: httpx.Response) -> None:
    """Raise ``RefusedError`` for a problem, and ``BrokenError`` for an answer that is not the service's."""
    if not answer.is_success:
        answer.read()
        try:
            problem = answer.json()
        except ValueError:
            raise BrokenError from None
        raise _refusal(answer.status_code, problem)


def _refusal(status: int, problem: Any) -> RefusedError:
    """The error for the service's own problem, or for an error in OpenAI's format."""
    error = problem.get("error") or problem
    code = str(error.get("code"))
    retryable = error.get("retryable", status >= 500 or (status in {409, 429} and code != OVERTAKEN))
    return RefusedError(status, code, retryable=bool(retryable))


def _turn(body: Json, pieces: str | None = None) -> Answer:
    message, reply = body["message"], body["reply"]
    return Answer(
        message_id=message["id"], seq=message["seq"], reply_id=reply["id"], reply=reply["content"], pieces=pieces
    )


def _response(body: Json, pieces: str | None = None) -> Answer:
    if body["status"] == "failed":
        raise _refusal(502, body)
    messages = [item for item in body["output"] if item["type"] == "message"]
    reply = "".join(part["text"] for item in messages for part in item["content"] if part["type"] == "output_text")
    return Answer(reply=reply, pieces=pieces)


def _data(answer: httpx.Response) -> Iterator[Json]:
    """Each JSON object of a stream whose events have no names."""
    for line in answer.iter_lines():
        if line.startswith("data: ") and line != f"data: {END}":
            yield json.loads(line.removeprefix("data: "))


def _named(talk: Talk) -> str:
    return f"conv_{talk.id.replace('-', '')}"
