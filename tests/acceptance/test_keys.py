"""``throughline keys``: made, listed without their secrets, revoked; each mistake is one line."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from app.storage.schema_fit import NO_RIGHTS, NO_SCHEMA
from tests.servers import execute_sql, with_user


def keys(database_url: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["keys", *arguments], env={"DATABASE_URL": database_url})


def test_a_key_is_shown_once_listed_by_its_beginning_and_revoked_once(database_url: str) -> None:
    made = keys(database_url, "create", "web", "--tenant", "acme", "--scope", "read")
    secret = made.stdout.strip()
    listed = keys(database_url, "list").stdout
    id_ = made.stderr.split()[1]

    assert secret.startswith("tl_")
    assert len(secret) > 40
    assert "tenant 'acme', scopes read. Database: DATABASE_URL\n" in made.stderr
    assert id_ in listed
    assert secret[:11] in listed
    assert secret not in listed
    assert " acme " in listed, "what `tenants delete` and `--tenant` take"
    assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\dZ", listed)
    assert keys(database_url, "revoke", id_).stdout.strip() == "Revoked."
    again = keys(database_url, "revoke", id_)
    assert (again.exit_code, again.stderr.strip()) == (2, "no such key, or it is revoked already")


def test_a_key_of_the_embedded_database_is_told_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(id=UUID(int=1), scopes={"read"}), "tl_secret"
    monkeypatch.setattr("app.cli.keys._with_keys", lambda _: made)
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(app, ["keys", "create"], env={"DATABASE_URL": ""})
    assert (done.exit_code, done.stdout) == (0, "tl_secret\n")
    assert done.stderr.endswith(f" Database: {tmp_path / '.data'}\n")


def test_a_name_in_brackets_is_listed_as_it_was_given(database_url: str) -> None:
    keys(database_url, "create", "[/prod] [red]web\x1b[2J")
    done = keys(database_url, "list")
    assert (done.exit_code, done.exception) == (0, None)
    assert " [/prod] [red]web[2J " in done.stdout


def test_an_end_user_of_whom_there_is_nothing_may_be_misspelled(database_url: str) -> None:
    keys(database_url, "create")
    done = CliRunner().invoke(app, ["erase-user", "alcie", "--yes"], env={"DATABASE_URL": database_url})
    assert (done.exit_code, done.stdout) == (0, "Erased: 0 conversations.\n")
    assert "Tenant 'default' has no conversation of 'alcie'" in done.stderr.splitlines()[-1]


def test_what_is_logged_does_not_stand_beside_the_key(database_url: str) -> None:
    with_role = f"{database_url}{'&' if '?' in database_url else '?'}role=nobody_made_this"
    made = subprocess.run(
        [sys.executable, "-m", "app.cli", "keys", "create"],
        env={**os.environ, "DATABASE_URL": with_role},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "database.no_row_security" in made.stderr
    assert re.fullmatch(r"tl_\S+\n", made.stdout), "a script reads the key from here"


def test_a_key_has_an_end_limits_and_a_user_of_its_own(database_url: str) -> None:
    limits = ("--limit", "running_turns=2", "--limit", "open_streams=none")
    made = keys(database_url, "create", "phone", "--user", "alice", "--expires-in-days", "30", *limits)
    assert "scopes read, write" in made.stderr, "a user is no administrator"
    id_ = made.stderr.split()[1]
    assert "read write user:alice" in keys(database_url, "list").stdout
    changed = keys(database_url, "change", id_, "--limit", "requests_per_minute=7")
    assert "open_streams=none, requests_per_minute=7, running_turns=2" in changed.stdout
    assert "requests_per_minute=7" in keys(database_url, "list").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["create", "--scope", "everything"], "everything"),
        (["create", "--tenant", " "], "a tenant is named by printable characters"),
        (["create", "--limit", "turns=3"], "'turns=3' is no limit: write NAME=NUMBER"),
        (["create", "--user", "alice", "--scope", "admin"], "cannot have the scope admin"),
        (["revoke", "not-an-id"], "UUID"),
    ],
)
def test_a_mistake_is_named(database_url: str, arguments: list[str], named: str) -> None:
    done = keys(database_url, *arguments)

    assert done.exit_code == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["keys create", "keys list", "move-media", "index-words", "erase-user x --yes"])
def test_a_database_that_was_not_migrated_is_named_in_one_line(empty_database_url: str, command: str) -> None:
    done = CliRunner().invoke(app, command.split(), env={"DATABASE_URL": empty_database_url})
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == NO_SCHEMA


@pytest.mark.parametrize("command", ["keys create", "keys list", "move-media", "erase-user x --yes", "backup"])
def test_a_user_of_the_database_without_rights_is_named_in_one_line(
    database_url: str, tmp_path: Path, command: str
) -> None:
    name = f"poor_{os.getpid()}"
    execute_sql(database_url, f"CREATE ROLE {name} LOGIN")
    try:
        arguments = [*command.split(), str(tmp_path / "b.zip")] if command == "backup" else command.split()
        done = CliRunner().invoke(app, arguments, env={"DATABASE_URL": with_user(database_url, name)})
    finally:
        execute_sql(database_url, f"DROP ROLE {name}")
    assert (done.exit_code, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    last = done.stderr.splitlines()[-1]
    if command == "backup":
        assert last.startswith("The user of DATABASE_URL may not do this (permission denied for table")
    else:
        assert last == NO_RIGHTS


@pytest.mark.parametrize(
    "arguments",
    [["keys", "list"], ["keys", "revoke", "01a1f9fe-eaf9-7044-8698-ca5f10e63879"], ["move-media"], ["index-words"]],
)
def test_looking_for_a_database_in_a_wrong_folder_makes_none(tmp_path: Path, arguments: list[str]) -> None:
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"There is no data folder {tmp_path / '.data'}: run this where `make run` was run")
    assert list(tmp_path.iterdir()) == []
