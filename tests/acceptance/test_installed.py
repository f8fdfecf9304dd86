"""What ``pip install`` makes of a checkout: the service runs from an empty folder, and the client talks to it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.acceptance.service import Process
from tests.servers import ROOT, unused_port

PARTS = ("app", "worker", "pyproject.toml", "README.md", "LICENSE")
TALK = """
import sys
from throughline_client import Throughline
with Throughline(sys.argv[1]) as client:
    made = client.create_conversation(title="From a wheel")
    for question in ("Which invoice did we send on 4 May?", "And who asked for it?", "Thanks."):
        reply = client.chat(made.id, question).reply
    served = client.context(made.id).messages
    print(reply.role, bool(reply.content), len(list(client.messages(made.id))), served[-1]["role"])
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Install into a new environment; its ``bin`` folder."""
    probe = ["download", "-q", "--no-deps", "-d", str(tmp_path / "probe"), "setuptools>=80"]
    if subprocess.run([sys.executable, "-m", "pip", *probe], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs a package index: pip can fetch nothing")

    def made(name: str, *requirements: str) -> Path:
        folder = tmp_path / name / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder.parent)], check=True)
        pip = [str(folder / "python"), "-m", "pip", "install", "-q", *requirements]
        done = subprocess.run(pip, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder

    return made


def checkout(folder: Path) -> Path:
    """A copy of the checkout, since building leaves files behind."""
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, folder / part)
    return folder


def files(source: Path) -> set[Path]:
    """The files of code and tables in the packages."""
    kinds = {".py", ".toml", ".json"}
    found = (path for part in ("app", "worker") for path in (source / part).rglob("*") if path.suffix in kinds)
    return {path.relative_to(source) for path in found}


def constraints(folder: Path) -> Path:
    """The locked versions without their hashes, which pip cannot check for what it builds itself."""
    locked = re.findall(r"^[a-z0-9][^ ;]*==[^ ;]+", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    assert len(locked) > 50
    path = folder / "constraints.txt"
    path.write_text("\n".join(locked))
    return path


def outside(**settings: str) -> dict[str, str]:
    """The environment without the variable by which the checkout could be found."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | settings


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("versions", ["locked", "newest"])
def test_a_wheel_serves_from_an_empty_folder_and_the_client_talks_to_it(
    versions: str, tmp_path: Path, short_folder: Path, install: Install
) -> None:
    source, empty, port = tmp_path / "source", tmp_path / "empty", unused_port()
    source.mkdir()
    empty.mkdir()
    shipped = files(checkout(source))
    locked = ["-c", str(constraints(tmp_path))] if versions == "locked" else []
    service, client = install("service", *locked, str(source)), install("client", str(source / "app" / "client"))
    url = f"http://127.0.0.1:{port}"
    run = Process(
        "run",
        (str(service / "throughline"), "run"),
        outside(PORT=str(port), TMPDIR=str(short_folder)),
        empty,
        lambda process: "Ctrl-C stops everything" in process.log,
    )
    try:
        run.start()
        assert httpx.get(f"{url}/healthz", trust_env=False).json() == {"status": "ok"}
        assert httpx.get(f"{url}/openapi.json", trust_env=False).text.count("/conversations") > 10
        done = subprocess.run(
            [str(client / "python"), "-c", TALK, url],
            cwd=empty, env=outside(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout == "assistant True 6 assistant\n", done.stderr
        run.signal(signal.SIGTERM)
        assert run.end(30) == 0
    finally:
        run.kill()
    assert "Traceback" not in run.log
    assert sorted(path.name for path in empty.iterdir()) == [".data", "run.log"]
    site = next(service.parent.glob("lib/*/site-packages"))
    assert {path for path in shipped if not (site / path).exists()} == {Path("app/client/pyproject.toml")}
