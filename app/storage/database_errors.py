"""The one place that turns errors of the database into the service's errors.

Unknown ones are defects and pass through.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

import asyncpg
import structlog
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.core.model.errors import (
    ConflictError,
    DatabaseReadOnlyError,
    DependencyUnavailableError,
    DomainError,
    NotFoundError,
)

FOREIGN_KEY_VIOLATION = "23503"
UNIQUE_VIOLATION = "23505"
# The server takes no writes: it has become a replica, or its operator has made it read-only, perhaps for lack of disk.
READ_ONLY = "25006"
DISK_FULL = "53100"
# Something that Postgres lacks or that failed inside it: a full or broken disk, a file of the largest allowed size.
DEFECT_CLASSES = ("53", "58", "XX", READ_ONLY)
# Classes of SQLSTATE that mean "not now": connection, authorisation and catalogue (when connecting), operator
# (shutdown, start, statement timeout), and a server with an internal problem.
UNAVAILABLE_CLASSES = ("08", "28", "3D", "57", *DEFECT_CLASSES)
# Serialisation failure, deadlock, idle in transaction, lock timeout.
UNAVAILABLE_STATES = frozenset({"40001", "40P01", "25P03", "55P03"})
# All errors that SQLAlchemy, the driver and the socket raise.
DATABASE_ERRORS = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

_DETAIL: Final = "\nDETAIL:"
"""What stands before the details in the driver's messages."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _Translated:
    """Translates errors of the block.

    It is a class since it is used for each statement, and a generator is several times slower.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, DATABASE_ERRORS):
            _remove_rows(error)
            if (meant := _as_domain_error(error)) is not None:
                raise meant from error


_TRANSLATED: Final = _Translated()


def translated() -> AbstractContextManager[None]:
    """Raise the service's error for an error of the database in the block, if it has one."""
    return _TRANSLATED


def _as_domain_error(error: Exception) -> DomainError | None:
    state = _sqlstate(error)
    if state == FOREIGN_KEY_VIOLATION:
        return NotFoundError("What this belongs to does not exist.")
    if state == UNIQUE_VIOLATION:
        return ConflictError("Someone else wrote this first.")
    if _is_unavailable(error, state):
        # Its message may quote values.
        if state is not None and state.startswith(DEFECT_CLASSES):
            _log.error("database.ill", sqlstate=state)
        else:
            _log.warning("database.unavailable", sqlstate=state, error=type(_first_cause(error)).__name__)
        if state == READ_ONLY:
            return DatabaseReadOnlyError("The database takes no writes for now; try again.", retry_after=1.0)
        if state == DISK_FULL:
            return DependencyUnavailableError("The disk of the database is full; try again later.", retry_after=1.0)
        return DependencyUnavailableError("The database is away or overloaded; try again.", retry_after=1.0)
    return None


def _remove_rows(error: BaseException) -> None:
    """Remove the server's details from an error and its causes: they may quote a row, and a traceback goes to the log.

    Where row-level security is active, the server quotes no rows.
    """
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, asyncpg.PostgresError):
            found.detail = None
        elif found.args and isinstance(found.args[0], str):
            found.args = (found.args[0].partition(_DETAIL)[0], *found.args[1:])
        found = found.__cause__


def _first_cause(error: BaseException) -> BaseException:
    """The error of the driver or the socket from which all others were raised."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _sqlstate(error: BaseException) -> str | None:
    origin = error.orig if isinstance(error, DBAPIError) else error
    state: str | None = getattr(origin, "sqlstate", None)
    return state


def _is_unavailable(error: Exception, state: str | None) -> bool:
    if state is not None:
        return state.startswith(UNAVAILABLE_CLASSES) or state in UNAVAILABLE_STATES
    if has_lost_protocol(error):
        return True
    # asyncpg treats a value that does not fit its column as an interface error; for the service it is a defect.
    if isinstance(error, DBAPIError):
        is_interface = isinstance(error.orig and error.orig.__cause__, asyncpg.InterfaceError)
        is_value = isinstance(error.orig and error.orig.__cause__, ValueError)
        return error.connection_invalidated or (is_interface and not is_value)
    if isinstance(error, asyncpg.InterfaceError):
        return not isinstance(error, ValueError)
    return isinstance(error, PoolTimeoutError | OSError)


def is_of_read_only_server(error: BaseException) -> bool:
    """Whether the server of the connection takes no writes."""
    return _sqlstate(error) == READ_ONLY


def has_lost_protocol(error: BaseException) -> bool:
    """Whether the driver lost track of a connection.

    It was interrupted at an unexpected point, so it cannot interpret the server's answers any more.
    """
    origin = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(origin, asyncpg.InternalClientError) or (
        origin is not None and isinstance(origin.__cause__, asyncpg.InternalClientError)
    )
