"""Runs migrations from Python, in any working directory, with or without a running event loop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from alembic import command, op
from alembic.config import Config
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.storage.database_errors import translated

SCRIPTS = Path(__file__).resolve().parent / "alembic"
"""The folder is part of a wheel too. ``alembic.ini``, which only a checkout has, is for the command line."""
URL_ATTRIBUTE = "database_url"
LOCK_TIMEOUT: Final = "900ms"
"""The longest wait for a table's lock. All others queue behind the waiting migration, so it gives up and tries again
later.
"""
GAVE_WAY: Final = frozenset({"55P03", "40P01"})
"""The SQLSTATEs of migrations that ended in favour of others: a lock that did not come in time, or a deadlock."""
ATTEMPTS: Final = 30
PAUSE_SECONDS: Final = 1.0
"""The pause between two attempts to lock a table that is always in use; the other processes go on meanwhile."""


class LaterSchemaError(Exception):
    """A later version of the service has migrated the database; this version does not know its revisions."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"the database has the schema of a later version of Throughline ({revision}). Start that version, or"
            " restore a backup of before the upgrade; docs/upgrading.md says how to go back."
        )


def alembic_config(url: str) -> Config:
    """Alembic's settings for that database."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes[URL_ATTRIBUTE] = url
    return config


def run_migrations(url: str, revision: str = "head") -> None:
    """Migrate the database up to a revision. Blocks.

    Raises:
        DependencyUnavailableError: The database is away.
        LaterSchemaError: The database has a revision that this version does not know.

    It runs in a thread of its own, since Alembic's environment runs an event loop and the caller may have one.
    """
    with ThreadPoolExecutor(1) as thread, translated():
        thread.submit(_upgrade_with_retries, url, revision).result()


def create_partial_index(name: str, table: str, columns: Sequence[Any], where: str, *, unique: bool = False) -> None:
    """Make an index of the rows that meet a condition; for use within a migration."""
    op.create_index(name, table, columns, unique=unique, postgresql_where=text(where))


def _upgrade_with_retries(url: str, revision: str) -> None:
    # Finished revisions stay, so that another attempt goes on from there.
    for left in reversed(range(ATTEMPTS)):
        try:
            command.upgrade(alembic_config(url), revision)
        except DBAPIError as error:
            if not left or getattr(error.orig, "sqlstate", None) not in GAVE_WAY:
                raise
            time.sleep(PAUSE_SECONDS)
        except CommandError as error:
            unknown = error.__cause__
            if isinstance(unknown, ResolutionError) and unknown.argument != revision:
                raise LaterSchemaError(str(unknown.argument)) from error
            raise
        else:
            return
