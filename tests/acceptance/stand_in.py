"""``throughline run`` over a small API and a small worker, to test only the supervision.

``python -m tests.acceptance.stand_in run`` starts it; ``STAND_IN_API`` and ``STAND_IN_WORKER`` say how
the two behave: ``fine``, ``dies`` (with a last word) or ``deaf`` (ignores the polite signal). ``STAND_IN_PATIENCE``
says for how many seconds a worker is asked to end before it is made to.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the library calls this name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def behave(mode: str) -> None:
    if mode == "dies":
        sys.exit("no luck today")
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def api() -> None:
    behave(os.environ.get("STAND_IN_API", "fine"))
    HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Answer).serve_forever()


def worker() -> None:
    print("pid", os.getpid(), "redis", os.environ["REDIS_URL"], "embedded", os.environ["THROUGHLINE_EMBEDDED"])
    behave(os.environ.get("STAND_IN_WORKER", "fine"))
    time.sleep(300)


def supervise() -> None:
    # Without these the two children start in a tenth of the time.
    from app import cli  # noqa: PLC0415
    from app.devserver import run, supervisor  # noqa: PLC0415

    me = (sys.executable, "-m", "tests.acceptance.stand_in")
    commands = run.Commands(api=(*me, "api"), worker=(*me, "worker"))
    with (
        mock.patch.object(run.Commands, "of", return_value=commands),
        mock.patch.object(run, "migrate"),
        mock.patch.object(run, "_WORKER_PATIENCE", float(os.environ.get("STAND_IN_PATIENCE", "2"))),
        mock.patch.object(supervisor, "_BACK_OFF_SECONDS", (0.0, 0.1, 0.1)),
    ):
        cli.app(["run"])


if __name__ == "__main__":
    {"run": supervise, "api": api, "worker": worker}[sys.argv[1]]()
