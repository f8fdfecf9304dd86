"""The demo ends well over a real service, and says so when something is missing."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from app.cli.complaints import ComplaintError
from app.cli.connecting import answers
from app.cli.demo.play import play
from app.cli.demo.story import load_story
from app.cli.screen import Screen
from tests.acceptance.test_run_command import Running, environment
from tests.servers import ROOT, unused_port

pytestmark = [pytest.mark.long, pytest.mark.processes]

DEMO = [sys.executable, "-m", "app.cli", "demo", "--fast"]
RUN = [sys.executable, "-m", "app.cli", "run"]
API = [sys.executable, "-m", "uvicorn", "app.main:create_app", "--factory", "--log-level", "warning"]
ACTS = (
    "1. The context fills",
    "2. 70 %: the worker compacts",
    "3. A jump over 85 %, inside one turn",
    "4. POST …/compact",
    "5. The state itself",
    "6. Back to the very beginning",
    "What it came to",
    "Try next",
)
COMPACTED = "Conversation compressed"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start commands, and leave nothing of theirs behind."""
    started: list[Running] = []

    def begin(argv: list[str], **settings: str) -> Running:
        started.append(Running(argv, tmp_path, **settings))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
            one.end()
    assert not [pid for one in started for pid in one.left_over()]


def numbers(line: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)]


def line_with(output: str, words: str) -> str:
    return next(line for line in output.splitlines() if words in line)


def assert_played(output: str) -> None:
    places = [output.index(act) for act in ACTS]
    assert places == sorted(places)
    assert not CONTROL.search(output)
    total = numbers(line_with(output, "messages in the history"))[0]
    assert total > len(load_story().messages)
    assert f"all {total} messages are there" in output
    assert COMPACTED in output
    assert numbers(line_with(output, "compactions by background"))[0] >= 3
    assert numbers(line_with(output, "compactions by sync"))[0] == 1
    assert numbers(line_with(output, "compactions by manual"))[0] == 1
    sent, whole = numbers(line_with(output, "sent in the"))[-2:]
    assert sent < 0.5 * whole


def assert_can_be_typed(output: str, commands: Sequence[str]) -> None:
    """The commands that the demo suggests next can be run from where it was played."""
    steps = output[output.index("Try next") :].splitlines()
    for command in commands:
        step = next(line.strip() for line in steps if line.endswith(f" {command}"))
        done = subprocess.run([*shlex.split(step), "--help"], cwd=ROOT, check=False, capture_output=True, timeout=60)
        assert done.returncode == 0, step


def test_without_a_service_it_starts_one_plays_and_leaves_nothing_behind(start: Start) -> None:
    demo = start(DEMO)
    assert demo.end(180) == 0, demo.output
    assert_played(demo.output)
    assert "starting one for the demo" in demo.output
    assert_can_be_typed(demo.output, ("run", "chat last", "state last", "context last --full"))
    assert not demo.left_over()


def test_it_plays_against_the_service_that_runs(start: Start, tmp_path: Path) -> None:
    service = start(RUN)
    service.wait_for("Ctrl-C stops everything", 120)
    by_port = played({"PORT": str(service.port)}, tmp_path)
    assert_played(by_port)
    assert f"against {service.url}" in by_port
    conversation = httpx.get(f"{service.url}/conversations", trust_env=False).json()["data"][0]
    assert conversation["title"] == "Lantern Nights (demo)"
    assert conversation["id"] in by_port
    assert f"against {service.url}" in played({}, tmp_path), "it is found by the data folder that it holds"


def played(settings: Mapping[str, str], folder: Path) -> str:
    env = environment(folder, **settings)
    done = subprocess.run(DEMO, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("moment", ["starting one for the demo", "40/", "3. A jump"])
def test_an_interrupt_stops_its_own_service_too(start: Start, moment: str) -> None:
    demo = start(DEMO)
    demo.wait_for(moment, 120)
    demo.process.send_signal(signal.SIGINT)
    assert demo.end(60) == 130, demo.output
    assert "Traceback" not in demo.output
    assert not demo.left_over()


def test_a_url_without_a_service_is_one_clear_line(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    env = environment(tmp_path)
    done = subprocess.run([*DEMO, "--url", url], cwd=ROOT, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"No Throughline answers at {url}/readyz: start it there, or correct --url.\n"


@pytest.fixture
def api_alone(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start the API without a worker, and return its address."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(**settings: str) -> str:
        port = unused_port()
        env = {**os.environ, "DATABASE_URL": database_url, "REDIS_URL": redis_url, **settings}
        started.append(subprocess.Popen([*API, "--port", str(port)], cwd=ROOT, env=env))
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(url))
        return url

    yield begin
    for one in started:
        one.terminate()
        one.wait(20)


def wait_until(done: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_a_worker_it_says_so(api_alone: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    url = api_alone(THROUGHLINE_AUTH_REQUIRED="false")
    with pytest.raises(ComplaintError, match="within 2 seconds the worker started none"):
        play(url, None, Screen(), patience=2.0)
    shown = capsys.readouterr().out
    assert "70 % reached" in shown
    assert COMPACTED not in shown
