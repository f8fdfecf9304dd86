"""Checks before anything is started. Each failure is one line that says what to do."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import redis
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.core.model.errors import DependencyUnavailableError, InvalidInputError
from app.devserver.configured import first_line
from app.devserver.errors import CannotStartError
from app.providers.python_tools import ToolSettingError, load_tools
from app.settings import Settings
from app.storage.database import CONNECT_SECONDS, database_address, make_patient_engine
from app.storage.migrations import run_migrations
from app.storage.schema_fit import schema_complaint_at

_ENCODING = "UTF8"
_REDIS_FILES = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})


def check_port(host: str, port: int) -> None:
    """Bind the port and release it, as the server will bind it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise CannotStartError(_port_line(host, port, error)) from error


def _port_line(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        other = port + 1 if port < 65_535 else port - 1  # noqa: PLR2004 - the highest port there is
        return f"Port {port} on {host} is in use: stop what listens there, or choose another with PORT={other}."
    if error.errno == errno.EACCES:
        return f"Port {port} is reserved for root: choose one above 1023 with PORT=8000."
    return f"Cannot listen on {host}:{port} ({error.strerror}): set HOST to an address of this machine."


def check_database(url: str) -> None:
    """Send a query to the database of ``DATABASE_URL``."""
    try:
        masked = database_address(url).set(drivername="postgresql").render_as_string(hide_password=True)
        asyncio.run(_answer_of_database(url, "SELECT 1"))
    except ValueError as error:
        raise CannotStartError(f"{first_line(error)}.") from error
    except Exception as error:
        raise CannotStartError(
            f"Cannot use the database of DATABASE_URL ({masked}): {_reason_in_words(error)}. "
            "Correct it, or unset it to use the embedded PostgreSQL."
        ) from error


async def _answer_of_database(url: str, question: str) -> object:
    engine = make_patient_engine(url)
    try:
        async with engine.connect() as connection:
            return (await connection.execute(text(question))).scalar_one()
    finally:
        await engine.dispose()


def check_redis(url: str) -> None:
    """PING the server of ``REDIS_URL``."""
    try:
        _check_files_of_rediss(url)
        with redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS) as connection:
            connection.ping()
    except Exception as error:
        raise CannotStartError(
            f"Cannot use the Redis of REDIS_URL ({_without_password(url)}): {_reason_in_words(error)}. "
            "Correct it, or unset it to use the embedded Valkey."
        ) from error


def _check_files_of_rediss(url: str) -> None:
    # The client's own error names no file.
    for name, file in parse_qsl(urlsplit(url).query):
        if name in _REDIS_FILES:
            try:
                Path(file).read_bytes()
            except OSError as error:
                raise ValueError(f"{name} cannot be read: {file} ({error.strerror})") from None


def check_tools(references: Sequence[str]) -> None:
    """Import the callables that the settings name as tools."""
    try:
        load_tools(references)
    except ToolSettingError as error:
        raise CannotStartError(f"{error}. Correct THROUGHLINE_TOOLS.") from error


def check_models(settings: Settings) -> None:
    """Build the models that the settings name, without calling a provider."""
    # The imports take a second, and only a start needs them, not a command that uses a running service.
    from app.bootstrap import make_models  # noqa: PLC0415

    models = make_models(settings)
    verifier = settings.verifier_model
    in_use = {settings.resolved_chat_model, settings.resolved_compaction_model, verifier}
    for variable, name, build in (
        ("THROUGHLINE_CHAT_MODEL", settings.resolved_chat_model, models.chat),
        ("THROUGHLINE_COMPACTION_MODEL", settings.resolved_compaction_model, models.summarizer),
    ):
        _check_model(variable, name, build)
    if verifier is not None:
        _check_model("THROUGHLINE_VERIFIER_MODEL", verifier, partial(models.summarizer, verifier))
    for name in sorted(settings.allowed_models - in_use):
        _check_model("THROUGHLINE_MODELS", name, partial(models.chat, name))


def _check_model(variable: str, name: str, build: Callable[[], object]) -> None:
    try:
        build()
    except InvalidInputError as error:
        raise CannotStartError(f"{variable} ({name}): {error.detail}") from error


def check_schema(url: str) -> None:
    """Refuse a database that was not migrated to the schema of this version."""
    try:
        complaint = asyncio.run(schema_complaint_at(url))
    except DependencyUnavailableError as error:
        raise CannotStartError(error.detail) from error
    if complaint is not None:
        raise CannotStartError(complaint)


def migrate(database_url: str, revision: str = "head") -> None:
    """Migrate the database to a revision of the schema. A database that cannot store every text is refused."""
    try:
        encoding = asyncio.run(_answer_of_database(database_url, "SHOW server_encoding"))
        if encoding == _ENCODING:
            run_migrations(database_url, revision)
    except Exception as error:
        raise CannotStartError(f"The migrations failed: {first_line(error)}") from error
    if encoding != _ENCODING:
        raise CannotStartError(
            f"The database of DATABASE_URL has the encoding {encoding}, which cannot keep every text: "
            "make one by CREATE DATABASE throughline TEMPLATE template0 ENCODING 'UTF8'."
        )


def _reason_in_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError | redis.TimeoutError):
        return f"no answer within {CONNECT_SECONDS:g} seconds"
    if isinstance(error, socket.gaierror):
        return "unknown host"
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return first_line(getattr(cause, "orig", None) or cause).rstrip(".")


def _without_password(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "not a URL"
