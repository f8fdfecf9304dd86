"""Clients of OpenAI's API run unmodified: the scripts of ``examples/openai``, and what its page tells readers to paste.

Their packages are not among our locked ones, but for the Python SDK: each script gets a throw-away environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import SharedServices, uses_processes
from tests.acceptance.service import Service
from tests.openai_server import Behaviour, Json, OpenAI, obliging, running_openai
from tests.servers import ROOT

EXAMPLES: Final = ROOT / "examples" / "openai"
PAGE: Final = ROOT / "docs" / "openai.md"
ADDRESS: Final = "http://localhost:8000"
PATIENCE: Final = 300
NODE: Final = ("openai@6.49.0", "ai@6.0.326", "@ai-sdk/openai@3.0.141", "@ai-sdk/openai-compatible@2.0.87",
               "@ai-sdk/open-responses@1.0.39", "zod@4.6.7")  # fmt: skip
PYTHON: Final = {
    "langchain_chat.py": ("langchain-openai==1.7.3",),
    "agents_sdk.py": ("openai-agents==0.24.0",),
    "litellm_chat.py": ("litellm==1.106.2",),
}
SCRIPTS: Final = {"javascript_sdk.mjs": ["chat:", "chain:", "streamed:"], "ai_sdk.mjs": ["2 steps"] * 3}


def talkative(body: Json) -> Behaviour | None:
    """A model that says what it does before it calls a tool, as most models do."""
    made = obliging(body)
    return {"text": "I look it up.", **made} if made and "calls" in made else made


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAI]:
    with running_openai() as server:
        server.rule = talkative
        yield server


@pytest.fixture
def service(provider: OpenAI, shared_services: SharedServices, request: pytest.FixtureRequest) -> Service:
    return shared_services.get(
        "openai clients",
        processes=uses_processes(request.node),
        OPENAI_API_KEY="scripted",
        OPENAI_BASE_URL=provider.url,
        THROUGHLINE_CHAT_MODEL="openai-responses:gpt-scripted",
        THROUGHLINE_COMPACTION_MODEL="offline",
    )


@pytest.fixture
def offline(shared_services: SharedServices, request: pytest.FixtureRequest) -> Service:
    """A service without a provider, as ``make run`` starts it."""
    return shared_services.get("openai clients offline", processes=uses_processes(request.node))


def run(argv: Sequence[str | Path], service: Service, folder: Path, **further: str) -> str:
    """What a client prints. Of our environment it gets only the service's address."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "OPENAI_BASE_URL": f"{service.url}/v1",
        "OPENAI_API_KEY": "none",
        **further,
    }
    done = subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def installed(argv: Sequence[str | Path], folder: Path) -> None:
    """Install packages, or skip the test with a reason if that is not possible here."""
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the packages of the example cannot be installed here: {type(error).__name__}")
    if done.returncode:
        pytest.skip(f"the packages of the example cannot be installed here: {done.stderr[-200:]}")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the JavaScript packages."""
    folder = tmp_path_factory.mktemp("node")
    if shutil.which("npm") is None:
        pytest.skip("the packages of the example cannot be installed here: there is no npm")
    installed(["npm", "install", "--no-audit", "--no-fund", *NODE], folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPTS)
def test_javascript_clients(service: Service, node: Path, name: str) -> None:
    (node / name).write_text((EXAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    told = run(["node", name], service, node)
    for word in SCRIPTS[name]:
        assert word in told
        told = told.replace(word, "", 1)


@pytest.mark.long
@pytest.mark.parametrize("name", PYTHON)
def test_python_clients(service: Service, offline: Service, tmp_path: Path, name: str) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    installed([python, "-m", "pip", "--disable-pip-version-check", "-q", "install", *PYTHON[name]], tmp_path)
    for one in (service, offline):
        told = run([python, EXAMPLES / name], one, tmp_path, LITELLM_LOCAL_MODEL_COST_MAP="True")
        assert "streamed:" in told or "named:" in told


@pytest.mark.long
def test_the_official_python_sdk(service: Service, tmp_path: Path) -> None:
    told = run([sys.executable, EXAMPLES / "python_sdk.py"], service, tmp_path)
    assert [line.partition(":")[0] for line in told.splitlines()] == [
        "models", "chat", "streamed", "chain", "events", "items", "compacted", "deleted",
    ]  # fmt: skip


# The page


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "there is nothing to paste"
    return found


def test_the_page_begins_with_the_one_line_that_changes() -> None:
    title, _, first, *_ = PAGE.read_text(encoding="utf-8").splitlines()
    assert title == "# Any OpenAI client"
    assert f'`base_url="{ADDRESS}/v1"`' in first


@pytest.mark.long
def test_what_the_page_has_one_paste_into_python(service: Service, tmp_path: Path) -> None:
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks("python")).replace(ADDRESS, service.url), encoding="utf-8")
    told = run([sys.executable, script], service, tmp_path)
    assert told.splitlines() == [
        "You said: What is my order?", "You said: I live in Oslo.", "You said: Where do I live?", "You said: Hello!",
    ]  # fmt: skip


@pytest.mark.long
def test_what_the_page_has_one_paste_into_javascript(service: Service, node: Path) -> None:
    (node / "pasted.mjs").write_text("\n".join(blocks("javascript")).replace(ADDRESS, service.url), encoding="utf-8")
    assert run(["node", "pasted.mjs"], service, node) == "You said: Hello!\n"


@pytest.mark.long
def test_what_the_page_has_one_paste_into_a_shell(service: Service, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the example calls curl")
    for block in blocks("bash"):
        told = run(["bash", "-c", block.replace(ADDRESS, service.url)], service, tmp_path)
        assert '"content":"You said: Hello!"' in told


def test_every_script_is_run() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {"python_sdk.py", *SCRIPTS, *PYTHON}
