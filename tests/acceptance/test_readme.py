"""The README's example, pasted unchanged."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from app.core.model.schemas.session import SessionState
from tests.acceptance.service import Service
from tests.servers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the example calls curl")
def test_the_example_works_and_gives_the_state_of_which_a_part_is_shown(offline: Service) -> None:
    example = next(block for block in blocks("sh") if "api=" in block).replace("http://localhost:8000", offline.url)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", example],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    shown = SessionState.model_validate_json(blocks("json")[0])
    conversation = json.loads(done.stdout[done.stdout.rindex('\n{\n    "id"') :])

    assert done.returncode == 0, done.stderr
    assert '"status": "applied"' in done.stdout
    assert "18,500 euros" in done.stdout
    state = SessionState.model_validate(conversation["compressed_state"])
    assert shown.logos, "the README shows some of the facts"
    assert [entry for entry in state.logos if entry in shown.logos] == shown.logos, "in the order of the state"
    assert shown.model_dump(exclude={"logos"}) == state.model_dump(exclude={"logos"})
