"""Migrations expand, then contract: no new revision locks a large table for long, or breaks the version before it.

docs/upgrading.md says why, and how each thing is done instead. The exceptions for old revisions are a record:
they ran before anybody had years of data.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from alembic import command

from app.storage.migrations import SCRIPTS, alembic_config
from app.storage.row_security import protection_sql
from tests.rows import each

SMALL: Final = frozenset({"tenants", "api_keys", "alembic_version"})
"""Tables with few rows, however many years pass."""
KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "202611211500": frozenset({"breaks inserts of the version before"}),
    "202611212000": frozenset({"breaks inserts of the version before", "checks every row"}),
    "202611212230": frozenset({"breaks inserts of the version before", "checks every row", "writes every row"}),
}
"""For each revision, what it does although no later revision may."""

_HARMLESS_DEFAULT: Final = re.compile(
    r"\bDEFAULT (?:'[^']*'(?:::[\w\[\]]+)?|-?[\d.]+|true|false|null|now\(\)|current_timestamp)(?=,|\s|$)", re.IGNORECASE
)
_LOCKS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    for name, pattern in {
        "builds an index": r"""
            ^CREATE\ (UNIQUE\ )?INDEX\ (?!CONCURRENTLY)
            | ^REINDEX\ \w+\ (?!CONCURRENTLY)
            | ^ALTER\ TABLE\ .*\ ADD\ CONSTRAINT\ \S+\ (UNIQUE|PRIMARY\ KEY|EXCLUDE)(?!\ USING\ INDEX)
        """,
        "rewrites the table": r"""
            ^ALTER\ TABLE\ .*(\ TYPE\ |SET\ (UN)?LOGGED|SET\ TABLESPACE|SERIAL|GENERATED)
            | ^(CLUSTER|VACUUM\ FULL)
        """,
        "checks every row": r"""
            ^ALTER\ TABLE\ (?!.*NOT\ VALID$).*
            (ADD\ CONSTRAINT\ \S+\ (CHECK|FOREIGN\ KEY) | SET\ NOT\ NULL | ADD\ COLUMN\ .*(\ CHECK\ |\ REFERENCES\ ))
        """,
        "writes every row": r"^(UPDATE|DELETE\ FROM|TRUNCATE|LOCK)\b",
    }.items()
}
_TABLE: Final = re.compile(
    r"^(?:CREATE (?:UNIQUE )?INDEX .*? ON|ALTER TABLE|UPDATE|DELETE FROM|TRUNCATE|LOCK TABLE) (?:ONLY )?(\w+)"
)
_TAKEN_AWAY: Final = re.compile(r"^DROP TABLE|^ALTER TABLE .*(?:DROP COLUMN|RENAME)")
_ADDED: Final = re.compile(r"^ALTER TABLE \w+ ADD COLUMN \w+( .*)$")
_NO_DEFAULT: Final = re.compile(r"^ALTER TABLE \w+ ALTER COLUMN \w+ DROP DEFAULT$")
_VALIDATES: Final = re.compile(r"^ALTER TABLE (\w+) VALIDATE CONSTRAINT")


def revisions() -> dict[str, str]:
    """The SQL of each revision, as ``alembic upgrade head --sql`` prints it."""
    config = alembic_config("postgresql://nobody@127.0.0.1:9/none")
    config.output_buffer = io.StringIO()
    command.upgrade(config, "head", sql=True)
    printed = re.split(r"^-- Running upgrade \S* ?-> (\w+)$", config.output_buffer.getvalue(), flags=re.MULTILINE)
    return dict(zip(printed[1::2], printed[2::2], strict=True))


def statements(sql: str) -> list[str]:
    """One statement a line, without Alembic's own."""
    found = (" ".join(each.split()) for each in re.split(r";\s*\n", sql))
    return [each for each in found if each and "alembic_version" not in each]


def findings(sql: str) -> set[str]:
    """The forbidden things that a revision does."""
    made = set(re.findall(r"CREATE (?:UNLOGGED )?TABLE (\w+)", sql)) | SMALL
    locked: set[str] = set()
    found: set[str] = set()
    is_block = True
    for statement in statements(sql):
        table = _table(statement)
        if statement in {"BEGIN", "COMMIT"} or (statement.startswith("DO $$") and not is_block):
            locked.clear()
            is_block = statement == "BEGIN"
        elif _TAKEN_AWAY.search(statement):
            found.add("takes away what the version before uses")
        elif table not in made:
            found |= set(_found(statement, locked))
            locked |= {table} - {""}
        if len(locked) > 1:
            found.add("locks two tables")
    return found


def _table(statement: str) -> str:
    """The table that a statement locks until the commit; empty if it locks none for so long."""
    found = None if " CONCURRENTLY " in statement else _TABLE.search(statement)
    return found[1] if found else ""


def _found(statement: str, locked: set[str]) -> Iterator[str]:
    yield from (name for name, pattern in _LOCKS.items() if pattern.search(statement))
    validated = _VALIDATES.search(statement)
    if validated and validated[1] in locked:  # the lock of the earlier change is held until the commit
        yield "checks every row"
    added = _ADDED.search(statement)
    if added and " DEFAULT " in added[1] and not _HARMLESS_DEFAULT.search(added[1]):
        yield "rewrites the table"
    if _NO_DEFAULT.search(statement) or (added and "NOT NULL" in added[1] and " DEFAULT " not in added[1]):
        yield "breaks inserts of the version before"


def python_findings(revision: str) -> set[str]:
    """The forbidden things that no printed statement shows."""
    (file,) = (
        each
        for each in (SCRIPTS / "versions").glob("*.py")
        if f'revision = "{revision}"' in each.read_text(encoding="utf-8").splitlines()
    )
    return {"works in Python"} if "get_bind" in file.read_text(encoding="utf-8") else set()


def test_no_new_revision_locks_for_long_or_breaks_the_version_before() -> None:
    found = {name: findings(sql) | python_findings(name) for name, sql in revisions().items()}
    assert {name: each for name, each in found.items() if each} == KNOWN


@each(
    ("sql", "finding"),
    [
        ("CREATE INDEX ix ON messages (role);", "builds an index"),
        ("CREATE UNIQUE INDEX ix ON turns (id);", "builds an index"),
        ("ALTER TABLE events ADD CONSTRAINT u UNIQUE (number);", "builds an index"),
        ("ALTER TABLE messages ALTER COLUMN seq TYPE INTEGER;", "rewrites the table"),
        ("ALTER TABLE messages ADD COLUMN n BIGSERIAL;", "rewrites the table"),
        ("ALTER TABLE messages ADD COLUMN n UUID DEFAULT gen_random_uuid();", "rewrites the table"),
        ("ALTER TABLE messages ALTER COLUMN model SET NOT NULL;", "checks every row"),
        ("ALTER TABLE turns ADD CONSTRAINT c CHECK (seq > 0);", "checks every row"),
        ("ALTER TABLE turns ADD CONSTRAINT f FOREIGN KEY(a) REFERENCES conversations (a);", "checks every row"),
        ("ALTER TABLE turns ADD COLUMN a INTEGER CHECK (a > 0);", "checks every row"),
        (
            "ALTER TABLE turns ADD CONSTRAINT c CHECK (a > 0) NOT VALID;\nALTER TABLE turns VALIDATE CONSTRAINT c;",
            "checks every row",
        ),
        ("UPDATE messages SET role = 'user';", "writes every row"),
        ("DELETE FROM events WHERE number < 5;", "writes every row"),
        ("ALTER TABLE turns ADD COLUMN a INTEGER NOT NULL;", "breaks inserts of the version before"),
        (
            "ALTER TABLE turns ADD COLUMN a INT DEFAULT 0 NOT NULL;\nALTER TABLE turns ALTER COLUMN a DROP DEFAULT;",
            "breaks inserts of the version before",
        ),
        ("ALTER TABLE turns DROP COLUMN warnings;", "takes away what the version before uses"),
        ("ALTER TABLE turns ADD COLUMN a INT;\nALTER TABLE events ADD COLUMN a INT;", "locks two tables"),
        (
            f"{protection_sql('messages')};\n\n{protection_sql('turns')};",
            "locks two tables",
        ),
        ("DROP TABLE crashes;", "takes away what the version before uses"),
        ("ALTER TABLE turns RENAME COLUMN warnings TO hints;", "takes away what the version before uses"),
    ],
)
def test_control_what_none_may_do_is_found(sql: str, finding: str) -> None:
    assert findings(f"BEGIN;\n\n{sql}\n\nCOMMIT;\n") == {finding}


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT;\n\nCREATE INDEX CONCURRENTLY a ON messages (role);\n\nCREATE INDEX CONCURRENTLY b ON turns (id);",
        "CREATE TABLE fresh (a INTEGER NOT NULL);\n\nCREATE INDEX ix ON fresh (a);\n\nUPDATE fresh SET a = 1;",
        "ALTER TABLE messages ADD COLUMN a TEXT;",
        "ALTER TABLE messages ADD COLUMN a TEXT DEFAULT 'x' NOT NULL;",
        "ALTER TABLE messages ADD COLUMN a JSONB DEFAULT '[]'::jsonb NOT NULL;",
        "ALTER TABLE messages ADD COLUMN a TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL;",
        """ALTER TABLE turns ADD CONSTRAINT c CHECK (a > 0) NOT VALID;
        COMMIT;
        BEGIN;
        ALTER TABLE turns VALIDATE CONSTRAINT c;""",
        f"COMMIT;\n\n{protection_sql('messages')};\n\n{protection_sql('turns')};\n\nBEGIN;",
        "UPDATE tenants SET name = 'a';",
        "DROP INDEX ix_old;",
    ],
)
def test_what_is_done_instead_passes(sql: str) -> None:
    assert findings(f"BEGIN;\n\n{sql}\n\nCOMMIT;\n") == set()
