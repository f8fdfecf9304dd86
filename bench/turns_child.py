"""A process of a checkout that answers the questions of ``bench.turns``: each is a line, and so is its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from typing import Any
from uuid import uuid4

import httpx

from app.bootstrap import build_container
from app.infrastructure.garbage import settle_garbage_collector
from app.main import create_app
from app.settings import Settings


async def main() -> None:
    """Answer until the questions end."""
    settings = Settings(
        database_url=os.environ["DATABASE"], redis_url=os.environ["REDIS"], embedded=True, log_level="ERROR"
    )
    container = await build_container(settings)
    transport = httpx.ASGITransport(create_app(container=container))
    async with httpx.AsyncClient(base_url="http://localhost", transport=transport, timeout=600) as client:
        settle_garbage_collector()
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _answer(client, json.loads(line))), flush=True)
    await container.close()


async def _answer(client: httpx.AsyncClient, asked: dict[str, Any]) -> dict[str, Any]:
    headers = {"Idempotency-Key": str(uuid4())}
    cpu, began = time.process_time(), time.perf_counter()
    response = await client.post(f"/conversations/{asked['id']}/context", json=asked["body"], headers=headers)
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    response.raise_for_status()
    return {**took, "hash": hashlib.sha256(response.content).hexdigest()}


if __name__ == "__main__":
    asyncio.run(main())
