"""What a command does before it does anything."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from app.api.description import VERSION
from app.cli.commands import app
from app.embedded.postgres import _reason

INTERRUPTED = """
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "app.cli.commands":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
from app.cli import app
"""


def test_an_interrupt_while_modules_are_read_leaves_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_full_disk_is_told_without_a_stamp_and_with_what_to_do() -> None:
    said = (
        'creating\n2026-11-20 17:43:52.133 UTC [30640] FATAL:  could not write to file "x": No space left on device\n'
    )
    assert _reason(said) == (
        'FATAL:  could not write to file "x": No space left on device. '
        "Free some space, or set THROUGHLINE_DATA_DIR to a folder on another disk"
    )
    assert _reason("") == "it said nothing"


def test_the_version_is_that_of_the_project_and_of_the_api() -> None:
    told = CliRunner().invoke(app, ["--version"])
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert (told.exit_code, told.stdout) == (0, f"throughline {project['version']}\n")
    assert project["version"] == VERSION
