from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import HeadMaintainer
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

from app.core.model.errors import DependencyUnavailableError
from app.storage.copying import driver_connection, drop_tables
from app.storage.migrations import SCRIPTS, LaterSchemaError, alembic_config, run_migrations
from app.storage.row_security import DEFAULT_ROLE
from app.storage.schema_fit import EARLIER_SCHEMA, NO_RIGHTS, NO_SCHEMA, schema_complaint_at
from app.storage.tables import TenantScoped
from tests.servers import ROOT, execute_sql, unused_port, with_user

TABLES = {
    "tenants",
    "api_keys",
    "idempotency_keys",
    "conversations",
    "messages",
    "contents",
    "embeddings",
    "state_versions",
    "events",
    "compactions",
    "turns",
    "anchors",
    "segments",
    "segment_levels",
    "expansions",
    "detail_calls",
    "verifications",
    "works",
    "crashes",
    "audit",
    "chat_spending",
    "erasures",
    "provider_copies",
    "files",
    "provider_files",
    "provider_caches",
    "provider_cache_members",
    "provider_cache_entries",
}
COLUMNS = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'public'
    AND table_name NOT IN (SELECT viewname FROM pg_views UNION SELECT 'alembic_version') ORDER BY 1, 2
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> coalesce(to_regclass('alembic_version'), 0::oid)
"""


async def rows(url: str, statement: str) -> set[tuple[Any, ...]]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = {tuple(row) for row in await connection.execute(text(statement))}
    await engine.dispose()
    return found


async def tables(url: str) -> set[str]:
    return {name for (name,) in await rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@pytest.mark.long
async def test_up_twice_dropped_and_up_again(empty_database_url: str) -> None:
    run_migrations(empty_database_url)
    assert await tables(empty_database_url) == TABLES | {"alembic_version"}
    run_migrations(empty_database_url)

    execute_sql(empty_database_url, "CREATE TABLE others (id int PRIMARY KEY)")
    async with driver_connection(empty_database_url) as connection:
        await drop_tables(connection)
    assert await tables(empty_database_url) == {"others"}, "what is not ours stays"
    for left in (
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
        "SELECT viewname FROM pg_views WHERE schemaname = 'public'",
    ):
        assert await rows(empty_database_url, left) == set()

    run_migrations(empty_database_url)
    assert await tables(empty_database_url) == TABLES | {"alembic_version", "others"}


@pytest.mark.long
def test_check_finds_nothing_to_do_and_notices_a_difference(empty_database_url: str) -> None:
    run_migrations(empty_database_url)
    command.check(alembic_config(empty_database_url))
    execute_sql(empty_database_url, "ALTER TABLE turns DROP COLUMN error_code")
    with pytest.raises(Exception, match="error_code"):
        command.check(alembic_config(empty_database_url))


async def test_migrations_build_exactly_what_the_tables_say(database_url: str, empty_database_url: str) -> None:
    """The comparison includes checks, partial indexes and foreign keys, which ``alembic check`` does not compare."""
    engine = create_async_engine(empty_database_url)
    async with engine.begin() as connection:
        await connection.run_sync(TenantScoped.metadata.create_all)
    await engine.dispose()
    for statement in (COLUMNS, INDEXES, CONSTRAINTS):
        built, said = await rows(database_url, statement), await rows(empty_database_url, statement)
        assert built
        assert built - said == set(), "made by the migrations, and not in app/storage/tables.py"
        assert said - built == set(), "in app/storage/tables.py, and not made by the migrations"


async def test_every_table_has_the_tenant_first_in_its_key(database_url: str) -> None:
    keys = await rows(
        database_url,
        """
        SELECT c.relname, a.attname FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version'
        """,
    )
    assert keys == {(table, "tenant_id") for table in TABLES}
    assert {table.__tablename__ for table in TenantScoped.__subclasses__()} == TABLES


async def test_no_table_draws_its_numbers_from_a_sequence(database_url: str) -> None:
    """A restore of a backup does not set sequences."""
    assert await rows(database_url, "SELECT relname FROM pg_class WHERE relkind = 'S'") == set()


@pytest.mark.long
def test_two_at_once_take_turns(empty_database_url: str, tmp_path: Path) -> None:
    both = [process(empty_database_url, "upgrade", "head", cwd=tmp_path) for _ in range(2)]
    said = [running.communicate(timeout=60)[1] for running in both]
    assert [running.returncode for running in both] == [0, 0], said


CONCURRENT = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "209901010000", "HEAD"

def upgrade() -> None:
    op.add_column("messages", sa.Column("extra", sa.String()))
    with op.get_context().autocommit_block():
        op.create_index("ix_messages_extra", "messages", ["extra"], postgresql_concurrently=True)
    op.add_column("turns", sa.Column("extra", sa.String()))
"""


def add_fresh_revision(config: Config, folder: Path) -> None:
    head = ScriptDirectory.from_config(config).get_current_head()
    (folder / "fresh.py").write_text(CONCURRENT.replace("HEAD", str(head)))
    config.set_main_option("version_locations", os.pathsep.join((str(SCRIPTS / "versions"), str(folder))))


@pytest.mark.long
def test_a_revision_may_build_an_index_while_others_write(empty_database_url: str, tmp_path: Path) -> None:
    config = alembic_config(empty_database_url)
    add_fresh_revision(config, tmp_path)
    command.upgrade(config, "head")
    found = asyncio.run(rows(empty_database_url, INDEXES))
    assert "ix_messages_extra" in {name for name, _ in found}


@pytest.mark.long
def test_a_revision_that_is_cut_off_is_begun_again(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a revision does outside its transaction remains if the process dies before the revision is recorded."""
    config = alembic_config(empty_database_url)
    revisions = [*ScriptDirectory.from_config(config).walk_revisions()][::-1]
    for before, revision in pairwise(revisions):
        if "autocommit_block" in Path(revision.path).read_text():
            command.upgrade(config, before.revision)
            cut_off(config, revision.revision, monkeypatch)
            command.upgrade(config, revision.revision)

    add_fresh_revision(config, tmp_path)  # the control: what the revision adds before its block exists already
    command.upgrade(config, revisions[-1].revision)
    cut_off(config, "head", monkeypatch)
    with pytest.raises(ProgrammingError, match="already exists"):
        command.upgrade(config, "head")


def cut_off(config: Config, revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr(HeadMaintainer, "update_to_step", die)
        with pytest.raises(ConnectionResetError):
            command.upgrade(config, revision)


async def test_a_process_hears_what_is_to_be_done_about_the_schema(database_url: str, empty_database_url: str) -> None:
    assert await schema_complaint_at(empty_database_url) == NO_SCHEMA
    execute_sql(empty_database_url, "CREATE TABLE alembic_version (version_num varchar(32))")
    assert await schema_complaint_at(empty_database_url) == NO_SCHEMA
    execute_sql(empty_database_url, "INSERT INTO alembic_version VALUES ('202611272000')")
    assert await schema_complaint_at(empty_database_url) == EARLIER_SCHEMA
    execute_sql(empty_database_url, "UPDATE alembic_version SET version_num = '209901010000'")
    assert await schema_complaint_at(empty_database_url) is None, "a later schema serves this version too"
    assert await schema_complaint_at(database_url) is None


async def test_a_process_whose_user_has_no_rights_hears_what_to_do(database_url: str) -> None:
    name = f"without_rights_{os.getpid()}"
    execute_sql(database_url, f"CREATE ROLE {name} LOGIN")
    try:
        assert await schema_complaint_at(with_user(database_url, name)) == NO_RIGHTS
        execute_sql(database_url, f"GRANT {DEFAULT_ROLE} TO {name}")
        assert await schema_complaint_at(with_user(database_url, name)) is None
    finally:
        execute_sql(database_url, f"DROP ROLE {name}")


def test_the_schema_of_a_later_version_is_left_alone_in_clear_words(empty_database_url: str) -> None:
    execute_sql(empty_database_url, "CREATE TABLE alembic_version (version_num varchar(32))")
    execute_sql(empty_database_url, "INSERT INTO alembic_version VALUES ('209901010000')")
    with pytest.raises(LaterSchemaError, match=r"of a later version of Throughline \(209901010000\)"):
        run_migrations(empty_database_url)
    with pytest.raises(CommandError, match="nonsense"):
        run_migrations(empty_database_url, "nonsense")


def test_a_server_that_is_away_is_one_domain_error() -> None:
    with pytest.raises(DependencyUnavailableError):
        run_migrations(f"postgresql://nobody@127.0.0.1:{unused_port()}/none")


def process(url: str, *words: str, cwd: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "alembic", "-c", str(ROOT / "alembic.ini"), "-x", f"url={url}", *words]
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return subprocess.Popen(argv, cwd=cwd, env=env, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_without_an_address_it_says_so(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "alembic", "-c", str(ROOT / "alembic.ini"), "current"]
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(argv, cwd=tmp_path, env=env, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines() == [
        "DATABASE_URL is not set: name the database to migrate, or use `throughline run`, which has its own."
    ]
