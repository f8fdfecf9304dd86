"""How Alembic reaches the database: the address comes from a caller, from ``-x url=…``, or from the settings.

Each revision is a transaction of its own, so that what one has locked is free before the next begins.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from sqlalchemy import Connection, event

from alembic import context
from app.settings import Settings
from app.storage import migrations
from app.storage.database import make_patient_engine, role_of
from app.storage.row_security import DEFAULT_ROLE, role_sql
from app.storage.tables import TenantScoped

# Any fixed number. It makes two processes that migrate at once take turns.
MIGRATION_LOCK = 7_430_211_002
POLL_SECONDS = 0.2
_DESTINATION_OPTION = "destination_rev"
"""The Alembic option by which commands that change the schema are recognised; only they have it."""


def database_url() -> str:
    given = context.config.attributes.get(migrations.URL_ATTRIBUTE) or context.get_x_argument(as_dictionary=True).get(
        "url"
    )
    url = given or Settings().database_url
    if not url:
        sys.exit("DATABASE_URL is not set: name the database to migrate, or use `throughline run`, which has its own.")
    return str(url)


def wait_briefly(connection: Connection) -> None:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{migrations.LOCK_TIMEOUT}'")


def migrate(connection: Connection) -> None:
    event.listen(connection, "begin", wait_briefly)
    context.configure(connection=connection, target_metadata=TenantScoped.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    role = role_of(database_url())
    if role is not None and _DESTINATION_OPTION in context.get_context().opts:
        # Done even if the schema is already new: the role may be possible today although it was not before.
        connection.exec_driver_sql(role_sql(role))
        connection.commit()


async def run() -> None:
    engine = make_patient_engine(database_url())
    try:
        async with engine.connect() as turn, engine.connect() as connection:
            await take_turn((await turn.get_raw_connection()).driver_connection)
            await connection.run_sync(migrate)
    finally:
        await engine.dispose()


async def take_turn(connection: Any) -> None:
    """Open a transaction that holds the lock for as long as the revisions take, also through a pooler.

    Neither the process with the lock nor one that waits for it may keep a snapshot: CREATE INDEX CONCURRENTLY would
    wait for it.
    """
    while True:
        transaction = connection.transaction()
        await transaction.start()
        if await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", MIGRATION_LOCK):
            break
        await transaction.rollback()
        await asyncio.sleep(POLL_SECONDS)
    # A simple query, which ends the previous one and its snapshot.
    await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


def print_sql() -> None:
    """Print the statements, for an operator who applies them by hand: ``alembic upgrade head --sql``."""
    context.configure(
        dialect_name="postgresql",
        target_metadata=TenantScoped.metadata,
        literal_binds=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    context.execute(role_sql(DEFAULT_ROLE))


if context.is_offline_mode():
    print_sql()
else:
    asyncio.run(run())
