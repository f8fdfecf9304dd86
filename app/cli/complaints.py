"""What a command says when a person has to put something right: one line, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from app.cli.preflight import CannotStartError
from app.cli.supervisor import ChildFailedError
from app.embedded import EmbeddedError

EXIT_CANNOT_START = 2


@contextmanager
def one_clear_line() -> Iterator[None]:
    """Turn what a person can put right into one line on stderr, and exit code 2."""
    try:
        yield
    except (CannotStartError, EmbeddedError, ChildFailedError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        raise typer.Exit(EXIT_CANNOT_START) from None
