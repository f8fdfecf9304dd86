"""What a command says when a person has to put something right: one line, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from pydantic import ValidationError

from app.cli.interrupts import EXIT_INTERRUPTED
from app.cli.preflight import CannotStartError
from app.cli.supervisor import ChildFailedError
from app.client import ApiError, ConnectionFailedError, ThroughlineError, UnauthenticatedError
from app.embedded import EmbeddedError

EXIT_CANNOT_START = 2
NEEDS_KEY: Final = "The service asks for an API key: give it one with --key or THROUGHLINE_API_KEY."


class ComplaintError(Exception):
    """Something that a person can put right; the message is one line."""


@contextmanager
def one_clear_line() -> Iterator[None]:
    """Turn what a person can put right into one line on stderr, and exit code 2."""
    try:
        yield
    except (CannotStartError, EmbeddedError, ChildFailedError, ComplaintError, ThroughlineError) as error:
        complain(words_of(error))
        raise typer.Exit(EXIT_CANNOT_START) from None
    except ValidationError:
        complain("The service's answer is not understood: is it another version, or something else that answers?")
        raise typer.Exit(EXIT_CANNOT_START) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def complain(words: str) -> None:
    """One line on stderr."""
    sys.stdout.flush()
    sys.stderr.write(f"{' '.join(words.split())}\n")


def words_of(error: Exception) -> str:
    """What a person is told of an error."""
    if isinstance(error, UnauthenticatedError):
        return NEEDS_KEY
    if isinstance(error, ApiError):
        return _refused(error)
    if isinstance(error, ConnectionFailedError):
        return f"The service does not answer: {error}."
    return str(error)


def _refused(error: ApiError) -> str:
    said = error.detail or f"the service answered {error.status}"
    fields = [f"{one.get('field')}: {one.get('message')}" for one in error.errors]
    told = [said, *(field for field in fields if said not in field)]
    return f"{'; '.join(told)} ({error.code})"
