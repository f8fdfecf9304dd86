"""How Alembic reaches the database: the address comes from a caller, from ``-x url=…``, or from the settings."""

from __future__ import annotations

import asyncio
import sys

from sqlalchemy import Connection, text

from alembic import context
from app.settings import Settings
from app.storage.database import make_patient_engine
from app.storage.migrations import URL_ATTRIBUTE
from app.storage.tables import TenantScoped

# Any fixed number: two processes that migrate at once take turns.
MIGRATION_LOCK = 7_430_211_002
# Whoever waits for a table's lock makes everyone behind it wait: better to give up than to stop the service.
LOCK_TIMEOUT = "10s"


def database_url() -> str:
    given = context.config.attributes.get(URL_ATTRIBUTE) or context.get_x_argument(as_dictionary=True).get("url")
    url = given or Settings().database_url
    if not url:
        sys.exit("DATABASE_URL is not set: name the database to migrate, or use `throughline run`, which has its own.")
    return str(url)


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=TenantScoped.metadata)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": MIGRATION_LOCK})
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        context.run_migrations()


async def run() -> None:
    engine = make_patient_engine(database_url())
    try:
        async with engine.connect() as connection:
            await connection.run_sync(migrate)
    finally:
        await engine.dispose()


def print_sql() -> None:
    """``alembic upgrade head --sql``: the statements, for who applies them by hand."""
    context.configure(dialect_name="postgresql", target_metadata=TenantScoped.metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    print_sql()
else:
    asyncio.run(run())
