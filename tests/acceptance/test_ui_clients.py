"""The AI SDK itself, unmodified, from npm: its chat against a service, and its schemas over every stream."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.test_openai_clients import installed
from tests.acceptance.test_turns import SLOWLY, STOPS
from tests.gemini_server import Gemini

SCRIPT: Final = Path(__file__).with_name("ui_client.mjs")
PACKAGES: Final = ("ai@6.0.326", "@ai-sdk/react@3.0.326", "react@19.3.1")
PATIENCE: Final = 300
WORDS: Final = ("Hello back.", "Again.", "Better.", "Mended.", "Both of you.", "Fine.", "Very fine.")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages."""
    if shutil.which("npm") is None:
        pytest.skip("the packages of the example cannot be installed here: there is no npm")
    folder = tmp_path_factory.mktemp("ai-sdk")
    installed(["npm", "install", "--no-audit", "--no-fund", *PACKAGES], folder)
    return folder


@pytest.mark.long
def test_the_chat_of_the_sdk(gemini_service: Service, start_talk: StartTalk, gemini: Gemini, packages: Path) -> None:
    call = {"name": "weather", "args": {"city": "Graz"}}
    said = [{"name": "text", "text": text, "thoughts": f"I say {text}"} for text in WORDS]
    gemini.script(
        "chat", *said[:3], "error_400", said[3], STOPS, said[4], STOPS, {"name": "calls", "calls": [call]}, *said[5:]
    )
    talks = [start_talk(gemini_service, policy={"reasoning": "asked"}) for _ in range(3)]
    script = packages / SCRIPT.name
    script.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        ["node", script],
        cwd=packages,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(packages),
            "SERVICE": gemini_service.url,
            "GEMINI": gemini.url,
            "CONVERSATIONS": ",".join(talk.id for talk in talks),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    told = json.loads(done.stdout)

    assert told["plain"] == [
        ["user", "Hello."],
        ["assistant", WORDS[0]],
        ["user", "And again."],
        ["assistant", WORDS[1]],
    ]
    assert told["sent"] == [1, 3], "the default transport sends everything"
    assert told["seq"] == 4
    assert len(told["gauges"]) >= 4
    assert told["regenerated"] == [WORDS[2], True, 4]
    assert told["failed"] == ["error", "model_unavailable"]
    assert told["mended"] == ["ready", WORDS[3], 6]
    assert told["lost"] == "not_found"

    assert SLOWLY.startswith(told["halfway"])
    assert told["halfway"] != SLOWLY
    assert told["resumed"] == [[SLOWLY, 8]] * 3, "replaced, not doubled"
    assert told["sameIds"] == 1
    assert told["nothingRuns"] == ["ready", True]

    assert told["twice"] == [[WORDS[4]] * 2, 2]
    status, words, stored = told["stopped"]
    assert (status, stored) == ("ready", "interrupted")
    assert SLOWLY.startswith(words)
    assert words != SLOWLY

    assert told["tool"] == [2, ["step-start", "dynamic-tool", "step-start", "reasoning", "text"], WORDS[5]]
    assert told["toolStored"] == ["user", "assistant", "tool", "assistant"]
    assert told["toolShown"] == [True, told["tool"][1]]
    assert told["output"] == {"sky": "Graz"}

    assert told["toolAgain"] == [1, 2, True, told["tool"][1], WORDS[6]]
    kept = told["toolKept"]
    assert (kept["input"], kept["output"], kept["state"]) == (call["args"], {"sky": "Graz"}, "output-available")

    assert told["chunks"] > 100
    assert told["refused"] == []
    assert {"abort", "error", "finish", "tool-input-available", "data-gauge"} <= set(told["types"])
    assert {"reasoning-start", "reasoning-delta", "reasoning-end"} <= set(told["types"])
    assert told["thoughts"] == [f"I say {WORDS[1]}"] * 2, "in the stream, and in the history"
    assert (told["ended"], told["read"], told["histories"]) == (True, True, [True] * 3)
    assert [told["controlChunk"], told["controlStream"], told["controlHistory"]] == [False] * 3
