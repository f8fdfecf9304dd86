"""The example of a client that brings its own model runs as it is shipped, against the running service."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.acceptance.service import Service
from tests.servers import ROOT, unused_port

EXAMPLE = ROOT / "examples" / "own_model.py"
GUIDE = ROOT / "docs" / "own-model.md"


def run(url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), "--url", url], capture_output=True, text=True, timeout=180, check=False
    )


@pytest.mark.long
def test_the_example_runs(offline: Service) -> None:
    done = run(offline.url)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    turns = [line for line in lines if re.match(r" {0,2}\d+ ", line)]
    assert len(turns) > 25
    assert sum("messages first" in line for line in lines) >= 1, done.stdout
    tokens = [int(line.split()[1]) for line in turns]
    assert max(tokens) <= 3_060
    (answered,) = [line for line in lines if line.startswith("Answered:")]
    assert "HM-2025-0417" in answered
    assert "compacted by hand: applied" in done.stdout


def test_it_says_what_is_wrong(offline: Service) -> None:
    """The control: the example does not ignore a service that refuses."""
    done = run(f"{offline.url}/nowhere")
    assert done.returncode == 1
    assert "404" in done.stderr


def test_without_a_service_it_says_what_to_do() -> None:
    done = run(url := f"http://127.0.0.1:{unused_port()}")
    assert done.returncode == 1
    assert done.stderr == f"Nobody answers at {url}: start `make run`, or say where it is with --url.\n"


def test_the_guide_names_the_example_and_the_three_calls() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for needed in ("examples/own_model.py", "/messages", "/context", "/compact", "if_needed", "anthropic", "gemini"):
        assert needed in text
