"""Tells errors that the user can correct, in one line and without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import typer
from pydantic import ValidationError

from app.cli.interrupts import EXIT_INTERRUPTED
from app.cli.terminal_language import terminal_catalogue, text_of
from app.client import ApiError, ConnectionFailedError, ThroughlineError, UnauthenticatedError
from app.core.text.localization.catalogue import Catalogue
from app.devserver import EmbeddedError
from app.devserver.errors import CannotStartError
from app.devserver.supervisor import ChildFailedError

EXIT_CANNOT_START = 2

_INPUT_STATUSES: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Statuses for wrong input. Only the service's detail says what is wrong."""


class ComplaintError(Exception):
    """An error that a person can correct; the message is one line."""


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """Turn an error that a person can correct into one line on stderr, and exit code 2."""
    try:
        yield
    except (CannotStartError, EmbeddedError, ChildFailedError, ComplaintError, ThroughlineError) as error:
        complain(words_of(error))
        raise typer.Exit(EXIT_CANNOT_START) from None
    except ValidationError:
        complain(text_of("complaint.not_understood"))
        raise typer.Exit(EXIT_CANNOT_START) from None
    except UnicodeError:
        complain(text_of("complaint.no_text"))
        raise typer.Exit(EXIT_CANNOT_START) from None
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except OSError as error:  # an error of the output; a command itself reports errors of files that it opens
        complain_of_output(error)
        raise typer.Exit(EXIT_CANNOT_START) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def complain_of_output(error: OSError) -> None:
    """Write one line to stderr if the output can no longer be written."""
    complain(text_of("complaint.output", why=error.strerror or str(error)))


def complain(words: str) -> None:
    """Write one line to stderr."""
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads it, and Python would try once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stderr.write(f"{' '.join(words.split())}\n")


def words_of(error: Exception, catalogue: Catalogue | None = None) -> str:
    """The text of an error for a person, in the language of a chat, otherwise of the terminal."""
    catalogue = catalogue or terminal_catalogue()
    if isinstance(error, UnauthenticatedError):
        return catalogue.text("cli.complaint.needs_key")
    if isinstance(error, ApiError):
        return _refusal_words(error, catalogue)
    if isinstance(error, ConnectionFailedError):
        return catalogue.text("cli.complaint.no_answer", why=str(error))
    return str(error)


def _refusal_words(error: ApiError, catalogue: Catalogue) -> str:
    detail = error.detail or catalogue.text("cli.complaint.status", status=str(error.status))
    # The service's own messages are English. In another language the code is shown, and what was wrong with the input.
    if title := catalogue.own.get(f"title.{error.code}"):
        detail = f"{title}: {detail}" if error.status in _INPUT_STATUSES else title
    fields = [f"{one.get('field')}: {one.get('message')}" for one in error.errors]
    shown = [detail, *(field for field in fields if field not in detail and detail not in field)]
    return f"{'; '.join(shown)} ({error.code})"
