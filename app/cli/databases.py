"""The database of the settings, for commands that work on it: that of ``DATABASE_URL``, or the embedded one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import asyncpg
from sqlalchemy.exc import DBAPIError

from app.cli.complaints import complain
from app.cli.terminal_language import text_of
from app.core.model.errors import DomainError
from app.devserver import EmbeddedServers
from app.devserver.configured import first_line, misspelled_variables, read_settings
from app.devserver.errors import CannotStartError
from app.devserver.preflight import check_database, check_schema, migrate
from app.logs import configure_logs
from app.settings import Settings

if TYPE_CHECKING:
    from app.bootstrap import Container

INSUFFICIENT_PRIVILEGE: Final = "42501"


def settings_of_command() -> Settings:
    """The settings of a command that starts no service. A variable that looks like a misspelled one is mentioned."""
    settings = read_settings()
    for line in misspelled_variables():
        complain(line)
    return settings


@contextmanager
def database(settings: Settings, *, any_version: bool = False) -> Iterator[str]:
    """The address of the database. The embedded one runs during the block, and is made if it is missing.

    With ``any_version``, an embedded one may be of an earlier PostgreSQL.
    """
    if settings.database_url:
        check_database(settings.database_url)
        with _missing_rights_in_one_line():
            yield settings.database_url
    else:
        with EmbeddedServers(
            settings.data_dir, valkey=False, any_version=any_version, outstays_guests=True
        ) as endpoints:
            yield endpoints.database_url


@contextmanager
def _missing_rights_in_one_line() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, asyncpg.PostgresError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if cause is None or getattr(cause, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        raise CannotStartError(
            f"The user of DATABASE_URL may not do this ({first_line(cause)}): name the one that ran `throughline"
            " migrate`."
        ) from None


@contextmanager
def settings_with_database(*, wants: bool) -> Iterator[Settings]:
    """Settings that name a database with the schema of this version. Redis is not used.

    The embedded one is migrated; one of your own is refused without that schema.

    With ``wants``, the database must exist already: an empty new one would mean that the command runs in the wrong
    folder.
    """
    settings = settings_of_command()
    # Otherwise log lines would go to standard output, mixed with a key that a script reads.
    configure_logs(settings)
    is_embedded = not settings.database_url
    if wants and is_embedded and not settings.data_dir.exists():
        raise CannotStartError(text_of("complaint.no_folder", folder=str(settings.data_dir.absolute())))
    with database(settings) as url:
        if is_embedded:
            migrate(url)
        else:
            check_schema(url)
        yield settings.model_copy(update={"database_url": url, "redis_url": settings.redis_url or "redis://localhost"})


@asynccontextmanager
async def services(settings: Settings) -> AsyncIterator[Container]:
    """The services of this process, closed afterwards. If they refuse something, the command ends with one line."""
    # These imports take seconds, and only these commands need them.
    from app.bootstrap import build_container  # noqa: PLC0415

    container = await build_container(settings)
    try:
        yield container
    except DomainError as error:
        raise CannotStartError(error.detail) from None
    finally:
        await container.close()
