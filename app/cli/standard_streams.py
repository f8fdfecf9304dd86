"""Opens standard streams that a shell has closed (``>&-``), since Python then has no stream at all."""

from __future__ import annotations

import os
import sys
from typing import Final

_MODES: Final = {"stdin": os.O_RDONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
"""How each stream is opened. A write to a closed output fails, and the command says so on its error output.

If the error output is closed too, the message is dropped.
"""


def open_closed_streams() -> None:
    """Open each missing standard stream.

    Otherwise a file that is opened later would take its place and be written to.
    """
    for number, (name, mode) in enumerate(_MODES.items()):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - a number, and for good
