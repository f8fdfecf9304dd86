"""Checks whether a database has a schema that this version of the code can work with."""

from __future__ import annotations

from functools import cache
from typing import Final

from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage.database import make_engine
from app.storage.database_errors import translated
from app.storage.migrations import alembic_config
from app.storage.row_security import DEFAULT_ROLE

NO_SCHEMA: Final = "The database has no schema yet: run `throughline migrate` first."
EARLIER_SCHEMA: Final = (
    "The database still has the schema of an earlier version: run `throughline migrate` first. Processes of the version"
    " before go on over the new schema."
)
NO_RIGHTS: Final = (
    "The user of DATABASE_URL may not use the tables: name the one that ran `throughline migrate`, or give it the role"
    f" (GRANT {DEFAULT_ROLE} TO …; docs/running.md says more)."
)
_RIGHTS: Final = text(
    "SELECT has_table_privilege(to_regclass('alembic_version'), 'SELECT') AS may_read,"
    " has_table_privilege(to_regclass('conversations'), 'INSERT') AS may_write"
)
_REVISION: Final = text("SELECT version_num FROM alembic_version")


async def schema_complaint(engine: AsyncEngine) -> str | None:
    """What has to be done before this code can work with the database; ``None`` if nothing.

    The schema of a later version serves this one as well (docs/upgrading.md). Raises ``DependencyUnavailableError``.
    """
    with translated():
        async with engine.connect() as connection:
            rights = (await connection.execute(_RIGHTS)).one()
            if rights.may_write is False:
                return NO_RIGHTS
            if rights.may_read is False:  # if this cannot be known, the service still starts
                return None
            revision = (await connection.execute(_REVISION)).scalar_one_or_none() if rights.may_read else None
    newest, known = known_revisions()
    if revision is None:
        return NO_SCHEMA
    return EARLIER_SCHEMA if revision != newest and revision in known else None


async def schema_complaint_at(url: str) -> str | None:
    """What ``schema_complaint`` says of the database with this address. Raises ``DependencyUnavailableError``."""
    engine = make_engine(url, pool_size=1)
    try:
        return await schema_complaint(engine)
    finally:
        await engine.dispose()


@cache
def known_revisions() -> tuple[str, frozenset[str]]:
    """The newest revision of this code, and all of them."""
    scripts = ScriptDirectory.from_config(alembic_config(""))
    return str(scripts.get_current_head()), frozenset(script.revision for script in scripts.walk_revisions())
