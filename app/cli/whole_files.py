"""Writes a file under another name first, so that under its own name it is always complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

FOR_ALL: Final = 0o666
"""Less what the process's mask takes away."""


@contextmanager
def whole_file(target: Path, mode: int = FOR_ALL) -> Iterator[BinaryIO]:
    """Write beside the file, then rename: under its own name it is never half there. A link stays, and leads to it.

    Raises:
        OSError: It cannot be written; nothing is left then.
    """
    named = Path(os.path.realpath(target))
    waiting = named.with_name(f".{named.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(waiting, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(named)
    finally:
        with contextlib.suppress(OSError):
            waiting.unlink(missing_ok=True)


def is_special_file(target: Path) -> bool:
    """Whether a device, a pipe or a socket has that name: it can be written into, and must not be replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()
