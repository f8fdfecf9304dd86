"""The engine: how a process reaches Postgres, and how long it waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from typing import Any, Literal
from uuid import uuid4

from asyncpg import connect
from sqlalchemy import event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from app.core.model.errors import DependencyUnavailableError
from app.core.text.patterns import compiled
from app.storage import connections
from app.storage.connections import TenantConnection
from app.storage.database_errors import translated
from app.storage.row_security import DEFAULT_ROLE
from app.storage.tls import PARAMETERS as TLS_PARAMETERS
from app.storage.tls import tls_of

CONNECT_SECONDS = 5.0
# The time limit for a server that accepts but never answers. It is longer than statement_timeout, so that a working
# server answers first.
COMMAND_SECONDS = 35.0
POOL_SECONDS = 10.0
TENANT_CONNECTIONS = 10  # of the fifteen in a pool: the most that one tenant may hold at once
# Shorter than the idle limits of common proxies and firewalls.
RECYCLE_SECONDS = 1_500
PING_SECONDS = 2.0
# Statements are short, so compiling them (jit) would cost more than it saves. A statement that waited for a lock has to
# see what was committed meanwhile, whatever isolation the server has by default; and a migration would wait for its own
# snapshot.
SESSION_SETTINGS = {
    "application_name": "throughline",
    "timezone": "UTC",
    "jit": "off",
    "default_transaction_isolation": "read committed",
}
# The only settings that a pooler in transaction mode passes on to every server.
POOLER_SETTINGS = frozenset({"application_name", "timezone"})
TIMEOUTS = {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "30s", "lock_timeout": "10s"}
SCHEMES = frozenset({"postgresql", "postgres", "postgresql+asyncpg"})
OWN_PARAMETERS = frozenset({"pgbouncer", "role"})
PARAMETERS = frozenset({"host", "port"}) | OWN_PARAMETERS | TLS_PARAMETERS
NO_ROLE = "none"
DatabaseState = Literal["ok", "read_only", "away"]
_IS_ROW_SECURITY_ACTIVE = text("SELECT coalesce(row_security_active(to_regclass('conversations')::oid), false)")
_IS_READ_ONLY = text("SELECT current_setting('transaction_read_only')::boolean")
_ROLE_NAME = compiled(r"[a-z_][a-z0-9_]{0,62}")
# Letters are not escaped: a json column keeps the given text, and an escaped Cyrillic letter is three times as long.
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


def database_address(url: str) -> URL:
    """Accept ``postgresql://``, ``postgres://`` and ``postgresql+asyncpg://``, with ``?host=/dir`` for a socket.

    ``sslmode`` is accepted for ``ssl``. Raises ``ValueError`` in one line, without the password.
    """
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError("DATABASE_URL is not an address like postgresql://user:password@host:5432/name") from None
    if address.drivername not in SCHEMES:
        raise ValueError(f"DATABASE_URL must begin with postgresql://, not {address.drivername}://")
    query = {("ssl" if name == "sslmode" else name): value for name, value in address.query.items()}
    if unknown := ", ".join(sorted(query.keys() - PARAMETERS)):
        raise ValueError(f"DATABASE_URL has parameters that are not known here: {unknown}; leave them out")
    if query.get("pgbouncer", "false") not in {"true", "false"}:
        raise ValueError("DATABASE_URL: pgbouncer must be true or false")
    return address.set(drivername="postgresql+asyncpg", query=query)


def role_of(url: str) -> str | None:
    """The role as which the service acts: ``?role=name`` of the address, and ``None`` for ``?role=none``.

    Raises ``ValueError`` for an invalid name.
    """
    named = database_address(url).query.get("role", DEFAULT_ROLE)
    if not isinstance(named, str) or not _ROLE_NAME.fullmatch(named):
        raise ValueError("DATABASE_URL: role must be a name of small letters, digits and _, or none")
    return None if named == NO_ROLE else named


class _Connecting:
    """A requested connection. Connecting begins only when it is awaited, which cannot happen outside of a greenlet."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    def __await__(self) -> Generator[Any, None, Any]:
        return connect(**self._given).__await__()  # type: ignore[no-any-return]  # it comes without types


def make_engine(url: str, *, pool_size: int = 10, max_overflow: int = 5) -> AsyncEngine:
    """An engine for the running event loop. Make it after a fork; nothing is connected yet.

    Its transactions act as the role that the address names, if any. They see no rows until a session says for which
    tenant it acts (``connections.py``). With ``?pgbouncer=true`` no statements are prepared, and each transaction sets
    what a pooler in transaction mode does not carry over. Raises ``ValueError`` for an address or a certificate that it
    cannot read.
    """
    engine = create_async_engine(
        _driver_address(url),
        connect_args=_connect_arguments(url, TIMEOUTS)
        | {"command_timeout": COMMAND_SECONDS, "connection_class": TenantConnection, "async_creator_fn": _Connecting},
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=POOL_SECONDS,
        pool_recycle=RECYCLE_SECONDS,
        pool_use_lifo=True,  # the connection used last has its statements prepared and is in the caches
        # Parameters contain people's messages, and the text of an error goes into the log.
        hide_parameters=True,
        json_serializer=_encode_json,
        json_deserializer=_decode_json,
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    connections.prepare_connections(engine, role_of(url), _settings_for_pooler() if _is_pooled(url) else "")
    return engine


def _decode_json(written: str) -> Any:
    # Most values are empty, and need no parser.
    if written == "[]":
        return []
    return {} if written == "{}" else json.loads(written)


def make_patient_engine(url: str) -> AsyncEngine:
    """An engine for migrations and backups: no pool, no time limits, and the rights of the user that signs in."""
    return create_async_engine(_driver_address(url), connect_args=_connect_arguments(url, {}), poolclass=NullPool)


def _driver_address(url: str) -> URL:
    return database_address(url).difference_update_query([*OWN_PARAMETERS, *TLS_PARAMETERS])


def _is_pooled(url: str) -> bool:
    return database_address(url).query.get("pgbouncer") == "true"


def _settings_for_pooler() -> str:
    # A connection pooler passes these settings on only if they are sent with each transaction.
    settings = {name: value for name, value in SESSION_SETTINGS.items() if name not in POOLER_SETTINGS} | TIMEOUTS
    return "".join(f" SET LOCAL {name} = '{value}';" for name, value in settings.items())


def _connect_arguments(url: str, timeouts: dict[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"timeout": CONNECT_SECONDS, **tls_of(database_address(url).query)}
    if not _is_pooled(url):
        return arguments | {"server_settings": SESSION_SETTINGS | timeouts}
    return arguments | {
        "server_settings": {name: SESSION_SETTINGS[name] for name in POOLER_SETTINGS},
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": lambda: f"__throughline_{uuid4().hex}__",
    }


def _refuse_closed(connection: Any, record: Any, proxy: Any) -> None:  # noqa: ARG001 - the event's signature
    # This only looks at the socket and needs no round trip; the pool then takes another connection.
    if connection.driver_connection.is_closed():
        raise DisconnectionError


async def ping(engine: AsyncEngine) -> DatabaseState:
    """Whether Postgres answers, within two seconds, and takes writes."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            with translated():
                async with engine.connect() as connection:
                    is_read_only: bool = (await connection.execute(_IS_READ_ONLY)).scalar_one()
    except (DependencyUnavailableError, TimeoutError):
        return "away"
    return "read_only" if is_read_only else "ok"


async def row_security(engine: AsyncEngine) -> bool:
    """Whether Postgres itself separates tenants for this engine. Nothing is reported about a database that is away."""
    with translated():
        async with engine.connect() as connection:
            return bool((await connection.execute(_IS_ROW_SECURITY_ACTIVE)).scalar_one())


async def is_protected(url: str) -> bool:
    """Whether Postgres would separate tenants for a service with that address.

    Raises ``DependencyUnavailableError``.
    """
    engine = make_engine(url, pool_size=1)
    try:
        return await row_security(engine)
    finally:
        await engine.dispose()
