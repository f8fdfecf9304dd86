"""An API process that no longer answers and that no signal reaches ends, and the supervisor starts another."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.acceptance.hanging import POISON
from tests.acceptance.service import until
from tests.acceptance.test_run_command import RUNNING, Running
from tests.servers import ROOT

pytestmark = pytest.mark.long


def answers(running: Running) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{running.url}/readyz", timeout=2, trust_env=False).is_success
    return False


def test_an_api_that_hangs_in_c_shows_its_stack_ends_and_is_replaced(short_folder: Path) -> None:
    argv = [sys.executable, "-m", "tests.acceptance.hanging"]
    running = Running(argv, short_folder, THROUGHLINE_WATCHDOG_SECONDS="3")
    try:
        running.wait_for(RUNNING, 120)
        with ThreadPoolExecutor(1) as threads:
            hanging = threads.submit(httpx.get, f"{running.url}/hang", timeout=60, trust_env=False)
            running.wait_for("Timeout (0:00:03)")
            running.wait_for("in hang")
            running.wait_for("stopped unexpectedly (exit code 1) and starts again at once")
            assert isinstance(hanging.exception(60), httpx.TransportError), "the client is let go"
        until(lambda: answers(running), 90, what="the next process")
        assert running.output.count("stopped unexpectedly") == 1
    finally:
        running.process.terminate()
        assert running.end() == 0
    assert running.left_over() == []


def test_a_conversation_that_ended_two_processes_is_set_aside_and_taken_back(short_folder: Path) -> None:
    short = {"LEASE": "1.5", "HEARTBEAT": "0.5", "TURN_HEARTBEAT": "0.5", "SWEEP": "0.5", "WATCHDOG": "4"}
    settings = {f"THROUGHLINE_{name}_SECONDS": value for name, value in short.items()}
    running = Running([sys.executable, "-m", "tests.acceptance.hanging"], short_folder, **settings)
    try:
        running.wait_for(RUNNING, 120)
        with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as http:
            guilty, other = (http.post("/conversations", json={}).json()["id"] for _ in range(2))
            for one, content in ((guilty, POISON), (other, "Good morning.")):
                said = http.post(f"/conversations/{one}/messages", json={"role": "user", "content": content})
                assert said.status_code == 201
            for crash in (1, 2):
                with pytest.raises(httpx.TransportError):
                    http.get(f"/conversations/{guilty}/context")
                running.wait_for("stopped unexpectedly (exit code 1)", times=crash)
                until(lambda: answers(running), 90, what="the next process")
                running.wait_for(f"crashes={crash}")

            refused = http.get(f"/conversations/{guilty}/context")
            assert (refused.status_code, refused.json()["code"]) == (409, "conversation_set_aside")
            assert http.get(f"/conversations/{guilty}/messages").json()["data"][0]["content"] == POISON
            assert http.get(f"/conversations/{other}/context").is_success
            assert running.output.count("stopped unexpectedly") == 2, "nobody else ends"

            release = [sys.executable, "-m", "app.cli", "conversations", "release", guilty, "--url", running.url]
            told = subprocess.run(release, cwd=ROOT, env=running.env, capture_output=True, text=True, check=False)
            assert told.returncode == 0, told.stderr
            assert guilty in told.stdout
            again = http.post(f"/conversations/{guilty}/messages", json={"role": "user", "content": "Are you back?"})
            assert again.status_code == 201
    finally:
        running.process.terminate()
        assert running.end() == 0
    assert running.left_over() == []
