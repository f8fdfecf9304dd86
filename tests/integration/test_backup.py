"""``throughline backup`` and ``restore`` keep one moment and every row; a restore is all or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from app.devserver import EmbeddedServers, Endpoints
from app.storage import backup, copying
from app.storage.archive import MANIFEST, ArchiveReader, BackupError, Manifest
from app.storage.migrations import run_migrations
from app.storage.restore import restore
from bench.fixture import rows
from bench.fixture.__main__ import FOLDER, ROWS
from tests.integration.test_migrations import COLUMNS, CONSTRAINTS, INDEXES
from tests.integration.test_migrations import rows as found
from tests.servers import ROOT, execute_sql, with_database

THEN: Final = rows.Dump.unpacked((ROOT / FOLDER / ROWS).read_bytes())
OF_TENANTS: Final = frozenset({"tenants", "api_keys", "idempotency_keys"})
WORKS: Final = "works"
APPEND: Final = """
    WITH newest AS (
        UPDATE conversations SET last_seq = last_seq + 1
        WHERE id = (SELECT min(id::text) FROM conversations)::uuid RETURNING tenant_id, id, last_seq
    ), changed AS (SELECT *, jsonb_build_object('id', gen_random_uuid(), 'seq', last_seq) AS fields FROM newest)
    INSERT INTO messages SELECT (jsonb_populate_record(m, fields)).*
    FROM messages m JOIN changed c ON m.tenant_id = c.tenant_id AND m.conversation_id = c.id AND m.seq = c.last_seq - 1
"""
"""The effect of an append on the order of messages."""


def part(count: int) -> rows.Dump:
    """The rows that belong to this many conversations."""
    (table,) = (each for each in THEN.tables if each.name == "conversations")
    ids = [row.split(b"\t")[table.columns.index("id")] for row in table.rows[::7][:count]]
    chosen = [
        each
        if each.name in OF_TENANTS
        else replace(each, rows=tuple(row for row in each.rows if any(id_ in row for id_ in ids)))
        for each in THEN.tables
    ]
    return replace(THEN, tables=tuple(chosen))


SOME: Final = part(4)


@pytest.fixture(scope="module")
def source(servers: Endpoints) -> Iterator[str]:
    """A database with data of every kind, in the schema of commit 150b694."""
    with database(servers) as url:
        run_migrations(url, THEN.revision)
        asyncio.run(rows.load(url, SOME))
        yield url


@pytest.fixture(scope="module")
def made(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of that database."""
    file = tmp_path_factory.mktemp("backups") / "then.zip"
    write(source, file)
    return file


@contextlib.contextmanager
def database(servers: Endpoints) -> Iterator[str]:
    name = f"backup_{uuid4().hex}"
    execute_sql(servers.database_url, f"CREATE DATABASE {name}")
    yield with_database(servers.database_url, name)
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


def write(url: str, file: Path, progress: backup.Progress = lambda *_: None) -> Manifest:
    with file.open("w+b") as target:
        return asyncio.run(backup.back_up(url, target, program="0.1.0", progress=progress))


def load(url: str, file: Path) -> None:
    with contextlib.closing(ArchiveReader(file)) as archive:
        archive.verify(lambda _: None)
        restore(url, archive, lambda *_: None)


def refused(url: str, file: Path) -> str:
    with pytest.raises(BackupError) as caught:
        load(url, file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def kept(url: str) -> dict[str, rows.Table]:
    """Every row of every table that a backup contains."""
    return {table.name: table for table in asyncio.run(rows.dump(url)).tables if table.name != WORKS}


def column(archive: zipfile.ZipFile, table: str, *names: str) -> Iterator[tuple[bytes, ...]]:
    manifest = Manifest.model_validate_json(archive.read(MANIFEST))
    columns = next(each.columns for each in manifest.tables if each.name == table)
    for line in io.BytesIO(archive.read(f"tables/{table}.copy")):
        values = line.rstrip(b"\n").split(b"\t")
        yield tuple(values[columns.index(name)] for name in names)


@pytest.mark.parametrize("data", [SOME, pytest.param(THEN, marks=pytest.mark.long)], ids=["some", "all"])
def test_every_row_comes_back_from_an_older_schema_in_todays(
    data: rows.Dump, servers: Endpoints, empty_database_url: str, tmp_path: Path
) -> None:
    with database(servers) as migrated:
        run_migrations(migrated, data.revision)
        asyncio.run(rows.load(migrated, data))
        before = write(migrated, tmp_path / "before.zip")
        load(empty_database_url, tmp_path / "before.zip")
        run_migrations(migrated)
        assert kept(empty_database_url) == kept(migrated)
        for shape in (COLUMNS, INDEXES, CONSTRAINTS):
            assert asyncio.run(found(empty_database_url, shape)) == asyncio.run(found(migrated, shape))
    count = len(kept(empty_database_url)["messages"].rows)
    assert before.history.messages == count == len(next(each for each in data.tables if each.name == "messages").rows)
    # The checksum is of the history, whatever the schema is.
    assert write(empty_database_url, tmp_path / "after.zip").history == before.history


def torn(source: str, file: Path) -> int:
    """The number of conversations whose count of messages is wrong in a backup with appends in the middle of it."""

    def append(table: str, *_: int) -> None:
        if table == "messages":
            execute_sql(source, APPEND)

    write(source, file, append)
    with zipfile.ZipFile(file) as archive:
        last = {id_: int(seq) for id_, seq in column(archive, "conversations", "id", "last_seq")}
        found = dict.fromkeys(last, 0)
        for id_, seq in column(archive, "messages", "conversation_id", "seq"):
            found[id_] = max(found[id_], int(seq))
    return sum(found[id_] != seq for id_, seq in last.items())


def test_a_backup_under_appends_is_of_one_moment(source: str, tmp_path: Path) -> None:
    assert torn(source, tmp_path / "busy.zip") == 0


def test_control_without_one_snapshot_it_is_torn(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "ISOLATION", "read_committed")
    assert torn(source, tmp_path / "torn.zip") == 1


def test_a_file_that_was_cut_off_or_changed_is_refused_before_anything_is_written(
    made: Path, empty_database_url: str, tmp_path: Path
) -> None:
    whole = made.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.zip").write_bytes(whole[:cut])
        assert "cut off" in refused(empty_database_url, tmp_path / "cut.zip")
    for place in (40, len(whole) // 3, len(whole) // 2):
        changed = bytearray(whole)
        changed[place] ^= 1
        (tmp_path / "changed.zip").write_bytes(changed)
        assert "changed or damaged" in refused(empty_database_url, tmp_path / "changed.zip")
    rewritten(made, tmp_path / "other.zip", text=lambda text: text.replace(b"the", b"thy", 1))
    assert "table messages is not what the manifest says" in refused(empty_database_url, tmp_path / "other.zip")
    assert tables(empty_database_url) == []


@pytest.mark.long
def test_one_changed_message_under_a_changed_manifest_rolls_everything_back(
    made: Path, empty_database_url: str, tmp_path: Path
) -> None:
    def consistent(manifest: dict[str, Any], texts: dict[str, bytes]) -> None:
        (table,) = (each for each in manifest["tables"] if each["name"] == "messages")
        table["sha256"] = hashlib.sha256(texts["messages"]).hexdigest()

    rewritten(made, tmp_path / "other.zip", text=lambda text: text.replace(b"the", b"thy", 1), manifest=consistent)
    assert "is not that of the backup" in refused(empty_database_url, tmp_path / "other.zip")
    assert all(not table.rows for table in kept(empty_database_url).values())
    # The remaining database is empty, so that the right file still fits into it.
    load(empty_database_url, made)
    assert len(kept(empty_database_url)["messages"].rows) > 100


def test_what_a_later_version_made_is_named(made: Path, empty_database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "later.zip"
    rewritten(made, file, manifest=lambda manifest, _: manifest.update(revision="209901010000", throughline="9.1"))
    assert "later version of Throughline (9.1, schema 209901010000)" in refused(empty_database_url, file)
    rewritten(made, file, manifest=lambda manifest, _: manifest.update(version=2))
    assert "a later format" in refused(empty_database_url, file)
    rewritten(made, file, manifest=lambda manifest, _: manifest["tables"][0].update(name="pg_authid"))
    assert "not those of its manifest" in refused(empty_database_url, file)
    assert tables(empty_database_url) == []


def test_a_database_with_rows_or_with_processes_is_refused(
    source: str, made: Path, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.restore._DISCONNECT_SECONDS", 0.2)
    before = kept(source)
    assert "is not empty" in refused(source, made)
    assert kept(source) == before

    async def beside() -> str:
        async with copying.driver_connection(empty_database_url):
            return await asyncio.to_thread(refused, empty_database_url, made)

    assert "stop them" in asyncio.run(beside())


def test_a_full_disk_leaves_no_file(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", source)
    file = tmp_path / "backup.zip"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        done = CliRunner().invoke(app, ["backup", str(file)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done.exit_code, done.stderr) == (2, f"Cannot write {file}: File too large.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_commands_on_a_database_of_your_own(
    source: str, empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup.zip"
    monkeypatch.setenv("DATABASE_URL", source)
    first = good("backup", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert f"{file} is there already" in bad("backup", str(file))
    assert "is a folder" in bad("backup", str(tmp_path))
    assert "No such file or directory" in bad("backup", str(tmp_path / "none" / "backup.zip"))
    assert json.loads(good("backup", str(file), "--force", "--json"))["history"]["sha256"] in first
    assert "is whole: 4 conversations" in good("restore", str(file), "--check")
    assert "is not empty" in bad("restore", str(file))
    assert "leave out --url" in bad("restore", str(file), "--url", "http://127.0.0.1:9")
    assert "which version of last" in bad("restore", "last")
    assert "is no backup" in bad("restore", str(ROOT / "README.md"))
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    assert "no tables of Throughline" in bad("backup", str(tmp_path / "none.zip"))
    assert first.splitlines()[1].split()[-1] in good("restore", str(file))
    assert "messages" in tables(empty_database_url)


@pytest.mark.long
def test_the_embedded_database_is_backed_up_while_it_runs_and_restored_when_it_is_not(tmp_path: Path) -> None:
    file, there, fresh = tmp_path / "backup.zip", tmp_path / "there", tmp_path / "fresh"
    with EmbeddedServers(there, valkey=False) as endpoints:
        run_migrations(endpoints.database_url, THEN.revision)
        asyncio.run(rows.load(endpoints.database_url, THEN))
        running = command(there, "backup", str(file))
        assert running.returncode == 0, running.stderr
        refusal = command(there, "restore", str(file))
        assert (refusal.returncode, "stop it, then restore" in refusal.stderr) == (2, True), refusal.stderr
    restored = command(fresh, "restore", str(file))
    assert restored.returncode == 0, restored.stderr
    stopped = command(fresh, "backup", str(tmp_path / "again.zip"))
    assert running.stdout.splitlines()[1] == stopped.stdout.splitlines()[1]
    assert "There is no data folder" in command(tmp_path / "none", "backup", str(tmp_path / "x.zip")).stderr
    assert not (tmp_path / "none").exists()
    shutil.rmtree(fresh)


def command(data: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "THROUGHLINE_DATA_DIR": str(data)}
    argv = (sys.executable, "-m", "app.cli", *argv)
    return subprocess.run(argv, env=env, cwd=data.parent, check=False, capture_output=True, text=True)


def good(*argv: str) -> str:
    done = invoked(*argv)
    assert done.exit_code == 0, done.output
    return done.stdout


def bad(*argv: str) -> str:
    done = invoked(*argv)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    return done.stderr


def invoked(*argv: str) -> Result:
    return CliRunner().invoke(app, argv)


def rewritten(
    file: Path,
    into: Path,
    *,
    text: Callable[[bytes], bytes] = lambda text: text,
    manifest: Callable[[dict[str, Any], dict[str, bytes]], None] = lambda *_: None,
) -> None:
    """Write the archive again, with another text of the messages and another manifest."""
    with zipfile.ZipFile(file) as archive:
        described = json.loads(archive.read(MANIFEST))
        texts = {each["name"]: archive.read(f"tables/{each['name']}.copy") for each in described["tables"]}
    texts["messages"] = text(texts["messages"])
    manifest(described, texts)
    with zipfile.ZipFile(into, "w") as archive:
        for name, value in texts.items():
            archive.writestr(f"tables/{name}.copy", value)
        archive.writestr(MANIFEST, json.dumps(described))


def tables(url: str) -> list[str]:
    async def names() -> list[str]:
        async with copying.driver_connection(url) as connection:
            return list(await copying.tables_of(connection))

    return asyncio.run(names())
