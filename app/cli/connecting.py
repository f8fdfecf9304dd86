"""Finds the service that a command talks to, and the conversation that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import typer

from app.cli.complaints import ComplaintError, errors_as_one_line
from app.cli.terminal_language import own_language, text_of
from app.client import Retrying, Throughline, ThroughlineError
from app.client.synchronous import headers_of
from app.devserver import running_at
from app.devserver.configured import address, read_settings

TIMEOUT: Final = 180.0
"""Seconds. It is longer than the service's own limit for a request that compacts."""
NEWEST: Final = "last"
"""The word for the conversation with the newest message."""

_PROBE_SECONDS: Final = 3.0
_SCHEMES: Final = ("http://", "https://")
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Url = Annotated[
    str | None,
    typer.Option(
        help="Where the service is; unset: at PORT if that is set, else the one that runs over the data folder."
    ),
]
Key = Annotated[str | None, typer.Option(help="Its API key.", envvar="THROUGHLINE_API_KEY")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Conversation = Annotated[str, typer.Argument(help=f"Its id, or `{NEWEST}`.", metavar="ID")]


@contextmanager
def connected_client(url: str | None, key: str | None, *, language: str | None = None) -> Iterator[Throughline]:
    """A client of the service that answers; errors become one clear line.

    Labels are requested in ``language``, otherwise in the terminal's language. An English terminal requests none, so
    that chats use the language of the conversation.

    Raises:
        typer.Exit: No service answers, or it refused the request.
    """
    with errors_as_one_line(), open_client(find_service(url), key, language=language or own_language()) as client:
        yield client


def open_client(
    url: str, key: str | None, *, timeout: float = TIMEOUT, attempts: int = 5, language: str | None = None
) -> Throughline:
    """A client. It uses no proxy of the environment for a service on the same machine."""
    try:
        headers_of(key)
    except ValueError:
        raise ComplaintError(text_of("complaint.no_key")) from None
    try:
        host = urlsplit(url).hostname
        retrying = Retrying(attempts=attempts)
        trusts = host not in _LOCAL_HOSTS
        return Throughline(url, key=key, language=language, timeout=timeout, retrying=retrying, trust_env=trusts)
    except (httpx.InvalidURL, ValueError):
        raise ComplaintError(text_of("complaint.no_address", url=repr(url))) from None


def find_service(url: str | None) -> str:
    """The address of the service that answers.

    It is the given one, else the one at the ``HOST`` and ``PORT`` that are set. Only if neither is set, it is the owner
    of the data folder, else the one at the default port.

    Raises:
        ComplaintError: No service answers.
    """
    if url is not None:
        if not url.lower().startswith(_SCHEMES):
            raise ComplaintError(text_of("complaint.no_address", url=repr(url)))
        if not answers(url):
            raise ComplaintError(text_of("complaint.not_ready", url=url.rstrip("/")))
        return url.rstrip("/")
    settings = read_settings()
    tried = address(settings)
    is_named = not settings.model_fields_set.isdisjoint({"host", "port"})
    for candidate in (tried,) if is_named else (running_at(settings.data_dir), tried):
        # An owner that serves nothing, or not yet, is no address.
        if candidate and candidate.startswith(_SCHEMES) and answers(candidate):
            return candidate
    raise ComplaintError(text_of("complaint.not_running", url=tried))


def answers(url: str) -> bool:
    """Whether a service answers there and can work."""
    try:
        with open_client(url, None, timeout=_PROBE_SECONDS, attempts=1) as client:
            return client.readiness()["status"] in {"ok", "degraded"}
    except (ThroughlineError, httpx.HTTPError, ValueError, KeyError, TypeError):
        return False


def conversation_id(client: Throughline, given: str) -> str:
    """The id of the given conversation.

    Raises:
        ComplaintError: It is not an id, or there is no conversation yet.
    """
    if given == NEWEST:
        newest = next(client.conversations(order="desc", page_size=1), None)
        if newest is None:
            raise ComplaintError(text_of("complaint.no_conversation"))
        return str(newest.id)
    try:
        return str(UUID(given))
    except ValueError:
        raise ComplaintError(text_of("complaint.no_id", given=repr(given))) from None
