"""A client of the socket at ``/v1/responses``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from websockets.asyncio.client import connect

from tests.acceptance.talk import Json


async def over_socket(url: str, requests: Sequence[Json | bytes], headers: dict[str, str] | None = None) -> list[Json]:
    """The last event of each request; ``last`` stands for the id of the newest complete response."""
    ends: list[Json] = []
    last = ""
    async with connect(url.replace("http", "ws") + "/v1/responses", additional_headers=headers) as socket:
        for request in requests:
            await socket.send(request if isinstance(request, bytes) else _body(request, last))
            while True:
                event = json.loads(await asyncio.wait_for(socket.recv(), 20))
                if event["type"] in {"response.completed", "response.failed", "error"}:
                    ends.append(event)
                    last = event["response"]["id"] if event["type"] == "response.completed" else last
                    break
    return ends


def _body(request: Json, last: str) -> str:
    body = {"type": "response.create", "model": "throughline", **request}
    if body.get("previous_response_id") == "last":
        body["previous_response_id"] = last
    return json.dumps(body)
