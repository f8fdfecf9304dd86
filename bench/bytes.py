"""``python -m bench.bytes``: how much memory many large media take in a process, request by request.

An API process with servers of its own gets ``--messages`` messages with ``--megabytes`` of Base64 each, whose stated
number of tokens is 0. Then it is asked for the context, a page, a search and the export, and gets a body of nothing but
lists. For each request the peak of its memory (``VmHWM``, reset before) and the size of the answer are printed. The
exit status is 1 if a request took more than ``--most`` megabytes over what the process had before.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from app.devserver import EmbeddedServers
from app.storage.migrations import run_migrations

_MEGABYTE: Final = 1_000_000
_PATIENCE: Final = 600.0
_START: Final = 120.0
_LISTS: Final = b"[" + b"[]," * 2_600_000 + b"[]]"


@dataclass(frozen=True, slots=True)
class Api:
    """A running API process."""

    http: httpx.Client
    pid: int

    def memory(self, name: str) -> float:
        """The megabytes of a line of ``/proc/<pid>/status``, by its name."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        found = next(line for line in lines if line.startswith(f"{name}:"))
        return int(found.split()[1]) * 1_024 / _MEGABYTE

    def peak_over(self, method: str, path: str, **given: Any) -> tuple[int, float, float]:
        """Make a request; return its status, the megabytes of the answer, and the peak above the memory before."""
        before = self.memory("VmRSS")
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="ascii")
        with self.http.stream(method, path, **given) as response:
            size = sum(len(chunk) for chunk in response.iter_raw())
        return response.status_code, size / _MEGABYTE, self.memory("VmHWM") - before


def main() -> int:
    """Store the messages, make the requests, print the table; return the exit status."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--messages", type=int, default=200)
    read.add_argument("--megabytes", type=float, default=7.9)
    read.add_argument("--most", type=float, default=400.0, help="Megabytes of memory that one request may take.")
    given = read.parse_args()
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        run_migrations(servers.database_url)
        with _api({"DATABASE_URL": servers.database_url, "REDIS_URL": servers.redis_url}) as api:
            return _measured(api, given.messages, int(given.megabytes * _MEGABYTE), given.most)


def _measured(api: Api, messages: int, size: int, most: float) -> int:
    id_ = api.http.post("/conversations", json={}).raise_for_status().json()["id"]
    print(f"{api.memory('VmRSS'):6.0f} MB of memory before the first message")
    worst = max(_append(api, id_, size) for _ in range(messages))
    print(f"{worst:6.0f} MB more for an append of {size / _MEGABYTE:.1f} MB, the worst of {messages}")
    requests: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("GET", "/context", {}),
        ("GET", "/messages?limit=100", {}),
        ("GET", "/search?q=picture", {}),
        ("GET", "/export", {}),
        ("POST", "/messages", {"content": _LISTS, "headers": {"Content-Type": "application/json"}}),
    )
    for method, path, further in requests:
        status, answered, peak = api.peak_over(method, f"/conversations/{id_}{path}", **further)
        worst = max(worst, peak)
        print(f"{peak:6.0f} MB more for {method} {path}: {status}, {answered:.1f} MB", flush=True)
    return int(worst > most)


def _append(api: Api, id_: str, size: int) -> float:
    data = base64.b64encode(secrets.token_bytes(size // 4 * 3)).decode()
    part = {"type": "media", "media_type": "image/png", "data": data, "tokens": 0}
    body = {"role": "user", "content": "a picture", "parts": [part]}
    status, _, peak = api.peak_over("POST", f"/conversations/{id_}/messages", json=body)
    if status != httpx.codes.CREATED:
        raise SystemExit(f"the message was answered with {status}")
    return peak


@contextmanager
def _api(settings: dict[str, str]) -> Iterator[Api]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    argv = [sys.executable, "-m", "uvicorn", "app.main:create_app", "--factory", "--port", port, "--log-level", "error"]
    environment = {**os.environ, **settings, "THROUGHLINE_AUTH_REQUIRED": "false", "THROUGHLINE_LOG_LEVEL": "ERROR"}
    with (
        subprocess.Popen(argv, env=environment) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=_PATIENCE) as http,
    ):
        try:
            _wait(http)
            yield Api(http, process.pid)
        finally:
            process.terminate()


def _wait(http: httpx.Client) -> None:
    deadline = time.monotonic() + _START
    while True:
        try:
            http.get("/healthz").raise_for_status()
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
