"""A scripted server of embeddings: Gemini's ``batchEmbedContents`` and ``embedContent``, OpenAI's ``/v1/embeddings``.

Vectors say how often each of some words stands in a text, so that texts that share one are alike. A behaviour is
``{status?, hang?, drop?, dimensions?, ragged?, nan?, null?}``: an error's status, seconds before the answer, how many
vectors are left out, another number of dimensions than was asked for, whether one vector is longer, whether a number is
none, whether OpenAI's form has null in its place.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.core.text.token_counts import estimate_text
from tests.gemini_server import serving

WORDS: Final = ("cat", "ship", "bread", "snow")
DIMENSIONS: Final = len(WORDS) + 1
STATUSES: Final = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
Behaviour = Mapping[str, Any]


@dataclass(slots=True)
class EmbeddingServer:
    """The requests that the server got, and what it does next."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The body of each request, with its path."""
    script: deque[Behaviour] = field(default_factory=deque)

    def reset(self) -> None:
        self.asked.clear()
        self.script.clear()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/embeddings", self.openai, methods=["POST"]),
                Route("/v1beta/models/{call:path}", self.gemini, methods=["POST"]),
            ]
        )

    async def openai(self, request: Request) -> Response:
        body = await request.json()
        behaviour = await self._next(request, body)
        if "status" in behaviour:
            error = {"message": f"No: {body['input'][0]}", "type": "requests", "param": None, "code": None}
            return _sent({"error": error}, behaviour["status"])
        vectors = _vectors(body["input"], body.get("dimensions"), behaviour)
        is_packed = body.get("encoding_format") == "base64" and not behaviour.get("null")
        if behaviour.get("null"):
            vectors[-1] = [None, *vectors[-1][1:]]  # type: ignore[list-item]  # as it is
        data = [
            {"object": "embedding", "index": index, "embedding": _base64(vector) if is_packed else vector}
            for index, vector in enumerate(vectors)
        ]
        tokens = sum(map(estimate_text, body["input"]))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _sent({"object": "list", "data": data, "model": body["model"], "usage": usage})

    async def gemini(self, request: Request) -> Response:
        body = await request.json()
        behaviour = await self._next(request, body)
        if "status" in behaviour:
            code = behaviour["status"]
            return _sent({"error": {"code": code, "message": "No.", "status": STATUSES[code]}}, code)
        is_batch = request.url.path.endswith(":batchEmbedContents")
        asked = body["requests"] if is_batch else [body]
        texts = ["".join(part["text"] for part in one["content"]["parts"]) for one in asked]
        vectors = [{"values": one} for one in _vectors(texts, asked[0].get("outputDimensionality"), behaviour)]
        return _sent({"embeddings": vectors} if is_batch else {"embedding": vectors[0]})

    async def _next(self, request: Request, body: dict[str, Any]) -> Behaviour:
        self.asked.append({"path": request.url.path, **body})
        behaviour = self.script.popleft() if self.script else {}
        await asyncio.sleep(float(behaviour.get("hang", 0)))
        return behaviour


@contextlib.contextmanager
def running_embeddings() -> Iterator[EmbeddingServer]:
    """A server in a thread of this process, on a free port."""
    server = EmbeddingServer()
    with serving(server.app()) as url:
        server.url = url
        yield server


def _vectors(texts: Sequence[str], dimensions: int | None, behaviour: Behaviour) -> list[list[float]]:
    size = behaviour.get("dimensions", dimensions or DIMENSIONS)
    found = [_vector(text, size) for text in texts]
    if behaviour.get("nan"):
        found[-1][0] = float("nan")
    if behaviour.get("ragged"):
        found[-1].append(1.0)
    return found[: len(found) - behaviour.get("drop", 0)]


def _vector(text: str, size: int) -> list[float]:
    counts = [1.0, *(4.0 * text.lower().count(word) for word in WORDS)]
    return (counts + [0.0] * size)[:size]


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _sent(body: Any, status: int = 200) -> Response:
    """JSON as a failing provider writes it, with a NaN if there is one."""
    content = json.dumps(body, allow_nan=True)
    return Response(content, status_code=status, media_type="application/json")
