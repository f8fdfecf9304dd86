"""The house: who may import whom, types, lint, and what the code must not say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = {
    "layers": ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
    "lint": ["-m", "ruff", "check", "."],
    "format": ["-m", "ruff", "format", "--check", "."],
    "types": ["-m", "mypy"],
}
BRANCH_ON_PRESET = re.compile(r"(?:if|elif|match|case)[^#\n]*preset(?:\.name)? *(?:==|in\b)")


@pytest.mark.parametrize("check", CHECKS)
def test_the_house_is_in_order(check: str) -> None:
    done = subprocess.run(
        [sys.executable, *CHECKS[check]], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_presets_are_data() -> None:
    sources = [*ROOT.glob("app/**/*.py"), *ROOT.glob("worker/**/*.py")]
    found = [str(path.relative_to(ROOT)) for path in sources if BRANCH_ON_PRESET.search(path.read_text())]

    assert len(sources) > 50
    assert found == []
    assert BRANCH_ON_PRESET.search('if conversation.preset == "semantic":')
