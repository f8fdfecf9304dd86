"""Part 6: clients that are slow, silent, or never read, over raw sockets.

The service has to end each connection in a bounded time, and nobody else may have to wait meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Self
from urllib.parse import urlsplit

import httpx

from bench.attack.findings import Outcome
from bench.attack.latency import Watch
from bench.attack.target import Target

NAME: Final = "sockets"
SETTINGS: Final = {
    "THROUGHLINE_HEAD_SECONDS": "2",
    "THROUGHLINE_UNREAD_SECONDS": "3",
    "THROUGHLINE_MAX_CONNECTIONS": "120",
    "THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "6",
}
"""Short limits, so that attacks on them take only seconds."""
MARGIN: Final = 6.0
"""Seconds beyond a limit that a busy machine may take."""
SLOW: Final = 6
PACE: Final = 0.05
FLOOD: Final = 300
"""How many connections are tried: more than the service allows."""
SAMPLES: Final = 30
TOO_SLOW: Final = 5.0
"""The highest median with slow clients, as a multiple of the median without them."""
BIG: Final = 3_000_000
"""Bytes of one message: a page of such messages is more than sockets buffer."""


class Raw:
    """A connection whose every byte this bench writes itself."""

    def __init__(self, url: str, *, small: bool = False) -> None:
        place = urlsplit(url)
        self._socket = socket.socket()
        if small:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.settimeout(10)
        self._socket.connect((place.hostname, place.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """Send data; return whether the other side took it."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def read_until_quiet(self, seconds: float) -> bytes:
        """Read until the connection ends, or until nothing has come for so many seconds."""
        self._socket.settimeout(seconds)
        got = b""
        with contextlib.suppress(OSError):
            while data := self._socket.recv(65_536):
                got += data
        return got

    @property
    def is_over(self) -> bool:
        """Whether the other side has ended the connection; received data is dropped."""
        self._socket.settimeout(0.001)
        try:
            while True:
                if not self._socket.recv(65_536):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True


def attack(target: Target, seed: int, examples: int) -> Outcome:  # noqa: ARG001 - nothing is drawn
    """Try each kind of slowness, with ``examples`` clients at once."""
    outcome, limits = Outcome(NAME), {name: float(value) for name, value in SETTINGS.items()}
    head, whole = limits["THROUGHLINE_HEAD_SECONDS"], limits["THROUGHLINE_REQUEST_TIMEOUT_SECONDS"]
    clients = max(2, min(examples, 20))
    kinds: tuple[tuple[str, Callable[[Target, float], float | None], float], ...] = (
        ("nothing is sent", silent, head),
        ("a head, byte by byte", _slow_head, head),
        ("a second head, byte by byte", _slow_second_head, head),
        ("a body, byte by byte", _slow_body, whole + head),
        ("a body that never comes", _no_body, whole + head),
        ("a refused body, byte by byte", _refused_body, head),
    )
    with Watch(target.url) as watch:
        for name, play, limit in kinds:
            with ThreadPoolExecutor(clients) as pool:
                took = list(pool.map(lambda _, play=play, limit=limit: play(target, limit + MARGIN), range(clients)))
            _closed(outcome, name, took, limit)
        _closed(
            outcome, "a large answer that nobody reads", [_unread_answer(target)], limits["THROUGHLINE_UNREAD_SECONDS"]
        )
        _unread_stream(target, outcome)
        _flood(target, outcome)
    outcome.expect(watch.failed == 0, "/healthz did not answer", "meanwhile", watch.failed)
    outcome.figures["/healthz, slowest meanwhile, s"] = f"{watch.longest:.2f}"
    _seventh(target, outcome)
    return outcome


def _closed(outcome: Outcome, name: str, took: list[float | None], limit: float) -> None:
    late = [one for one in took if one is None]
    outcome.counts["connections"] += len(took)
    outcome.expect(not late, "not ended in time", name, f"limit {limit:g} s")
    longest = max((one for one in took if one is not None), default=0.0)
    outcome.figures[f"{name}: limit, ended after, s"] = f"{limit:g}, {longest:.1f}"


def _until_over(raw: Raw, patience: float, dripping: bytes = b"") -> float | None:
    """Seconds until the service ended the connection, while bytes are sent one by one; ``None`` if it did not."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < patience:
        if raw.is_over:
            return passed
        if dripping:
            raw.send(dripping)
        time.sleep(PACE)
    return None


def silent(target: Target, patience: float) -> float | None:
    """Send nothing; return the seconds until the connection is ended, ``None`` if it is not within ``patience``."""
    with Raw(target.url) as raw:
        return _until_over(raw, patience)


def _slow_head(target: Target, patience: float) -> float | None:
    with Raw(target.url) as raw:
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\nX-Slow: ")
        return _until_over(raw, patience, b"x")


def _slow_second_head(target: Target, patience: float) -> float | None:
    with Raw(target.url) as raw:
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
        raw.read_until_quiet(0.5)
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\nX-Slow: ")
        return _until_over(raw, patience, b"x")


def _posting(target: Target, key: str | None) -> bytes:
    head = ["POST /conversations HTTP/1.1", "Host: t", "Content-Type: application/json", "Content-Length: 100000"]
    return (
        "\r\n".join([*head, *(f"{name}: {value}" for name, value in target.headers(key).items())]).encode()
        + b"\r\n\r\n"
    )


def _slow_body(target: Target, patience: float) -> float | None:
    with Raw(target.url) as raw:
        raw.send(_posting(target, "writer") + b'{"title":"')
        return _until_over(raw, patience, b"x")


def _no_body(target: Target, patience: float) -> float | None:
    with Raw(target.url) as raw:
        raw.send(_posting(target, "writer"))
        return _until_over(raw, patience)


def _refused_body(target: Target, patience: float) -> float | None:
    """Send a request without a key: the answer must come before the body is sent."""
    with Raw(target.url) as raw:
        raw.send(_posting(target, None) + b'{"title":"')
        return _until_over(raw, patience, b"x")


def _unread_answer(target: Target) -> float | None:
    """Leave an export of several megabytes unread; return the seconds until the service gives up.

    That is seen by how much of the export can still be read afterwards.
    """
    with target.client("writer") as http:
        made = http.post("/conversations", json={"policy": {"max_tokens": -1}}).raise_for_status().json()["id"]
        body = json.dumps({"role": "user", "content": "wort " * (BIG // 5)})
        for _ in range(4):
            http.post(f"/conversations/{made}/messages", content=body, headers={"Content-Type": "application/json"})
    limit = float(SETTINGS["THROUGHLINE_UNREAD_SECONDS"])
    with Raw(target.url, small=True) as raw:
        key = target.headers("writer")["Authorization"]
        raw.send(f"GET /conversations/{made}/export HTTP/1.1\r\nHost: t\r\nAuthorization: {key}\r\n\r\n".encode())
        began = time.monotonic()
        time.sleep(limit + MARGIN)
        took = time.monotonic() - began  # an upper bound: data already sent is read afterwards
        got = raw.read_until_quiet(2.0)
    return took if got and len(got) < 4 * BIG else None


def _unread_stream(target: Target, outcome: Outcome) -> None:
    """Leave a stream of events unread: appending must not wait for it."""
    with target.client("writer") as http:
        made = http.post("/conversations", json={"policy": {"max_tokens": -1}}).raise_for_status().json()["id"]
        path = f"/conversations/{made}/messages"
        alone = [_append(http, path) for _ in range(SAMPLES)]
        key = target.headers("writer")["Authorization"]
        with contextlib.ExitStack() as stack:
            for _ in range(SLOW):
                raw = stack.enter_context(Raw(target.url, small=True))
                raw.send(
                    f"GET /conversations/{made}/events HTTP/1.1\r\nHost: t\r\nAuthorization: {key}\r\n\r\n".encode()
                )
            time.sleep(0.5)
            with_others = [_append(http, path) for _ in range(SAMPLES)]
    _compare(outcome, "an append beside six streams that nobody reads", alone, with_others)


def _seventh(target: Target, outcome: Outcome) -> None:
    """Compare a normal client beside six slow ones of every kind with one alone, in pairs."""
    ending = threading.Event()
    with target.client("writer") as http:
        made = http.post("/conversations", json={"policy": {"max_tokens": -1}}).raise_for_status().json()["id"]
        path = f"/conversations/{made}/messages"
        alone: list[float] = []
        with_others: list[float] = []
        for _ in range(3):
            alone += [_append(http, path) for _ in range(SAMPLES // 3)]
            ending.clear()
            threads = [threading.Thread(target=_drip, args=(target, ending, kind)) for kind in range(SLOW)]
            for thread in threads:
                thread.start()
            time.sleep(0.3)
            with_others += [_append(http, path) for _ in range(SAMPLES // 3)]
            ending.set()
            for thread in threads:
                thread.join(10)
    _compare(outcome, "an append beside six slow clients", alone, with_others)


def _drip(target: Target, ending: threading.Event, kind: int) -> None:
    heads = (b"GET /healthz HTTP/1.1\r\nX: ", _posting(target, "writer"), _posting(target, None))
    with Raw(target.url) as raw:
        raw.send(heads[kind % len(heads)])
        while not ending.wait(PACE):
            if not raw.send(b"x"):
                return


def _append(http: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    http.post(path, json={"role": "user", "content": "Still here."}).raise_for_status()
    return time.perf_counter() - began


def _compare(outcome: Outcome, what: str, alone: list[float], with_others: list[float]) -> None:
    ratio = statistics.median(with_others) / statistics.median(alone)
    outcome.figures[f"{what}: median over that without them"] = f"{ratio:.1f}"
    outcome.expect(ratio < TOO_SLOW, "others wait", what, f"{ratio:.1f}")


def _flood(target: Target, outcome: Outcome) -> None:
    """Open more silent connections than are allowed: a client that asks must still be answered."""
    with contextlib.ExitStack() as stack:
        opened = list(_many(target, stack))
        outcome.counts["connections"] += len(opened)
        answered = 0
        for _ in range(10):
            with target.client(None) as http:
                answered += http.get("/healthz").is_success
        outcome.expect(answered == 10, "not answered in a flood", f"{FLOOD} silent connections", f"{answered} of 10")
        limit = float(SETTINGS["THROUGHLINE_HEAD_SECONDS"])
        time.sleep(limit + 2)
        over = sum(raw.is_over for raw in opened)
        outcome.expect(over == len(opened), "not ended in time", "a flood", f"{over} of {len(opened)}")


def _many(target: Target, stack: contextlib.ExitStack) -> Iterator[Raw]:
    for _ in range(FLOOD):
        with contextlib.suppress(OSError):
            yield stack.enter_context(Raw(target.url))
