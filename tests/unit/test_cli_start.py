"""What a command does before it does anything."""

from __future__ import annotations

import subprocess
import sys

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
