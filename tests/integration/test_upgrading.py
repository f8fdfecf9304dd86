"""An upgrade under load: nobody waits long for a migration, and the version before runs next to this one."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import asyncpg
import httpx
import pytest
from sqlalchemy.engine import make_url

from app.devserver.run import Commands
from app.settings import Settings
from app.storage import migrations
from app.storage.migrations import run_migrations
from bench.fixture import rows
from bench.fixture.__main__ import FOLDER, ROWS
from tests.acceptance.service import Service, running_service, started, until
from tests.servers import ROOT, execute_sql

COMMIT: Final = "150b694"
LAST_THAT_LOCKS: Final = "202611212230"
"""The revisions after this one hold no lock for long: tests/unit/test_migration_rules.py."""
MESSAGES: Final = 1_000_000
LIMIT: Final = 1.0  # seconds
ANCHORED: Final = "Decision: we use Postgres 18 for the harbour. Please remember that the key is in the drawer."
COPIES: Final = "INSERT INTO messages SELECT (jsonb_populate_record(m, jsonb_build_object('id', gen_random_uuid(), "
ORIGINAL: Final = "FROM messages m WHERE m.ctid = (SELECT ctid FROM messages LIMIT 1)"
COLUMNS: Final = "SELECT column_name FROM information_schema.columns WHERE table_name = 'messages'"
WINDOW: Final = {"context_window": 4_000}

pytestmark = pytest.mark.long


@pytest.fixture
def before(empty_database_url: str) -> str:
    """A database with data, before the first revision that may run while the service does."""
    dumped = rows.Dump.unpacked((ROOT / FOLDER / ROWS).read_bytes())
    run_migrations(empty_database_url, dumped.revision)
    asyncio.run(rows.load(empty_database_url, dumped))
    run_migrations(empty_database_url, LAST_THAT_LOCKS)
    return empty_database_url


class Users:
    """The statements that requests make all the time, and the time of the slowest."""

    STATEMENTS: ClassVar = (
        "UPDATE conversations SET last_event = last_event WHERE id = (SELECT id FROM conversations LIMIT 1)",
        f"{COPIES}'seq', 10000000 + (random() * 1e9)::int))).* {ORIGINAL}",
        """SELECT count(*) FROM (SELECT 1 FROM anchors LIMIT 1) a, (SELECT 1 FROM state_versions LIMIT 1) s,
            (SELECT 1 FROM turns LIMIT 1) t, (SELECT 1 FROM compactions LIMIT 1) c, (SELECT 1 FROM events LIMIT 1) e""",
    )

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._use()))
        self.slowest = 0.0
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        until(lambda: self.rounds > 3, what="the first requests")
        self.slowest = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def _use(self) -> None:
        connection = await asyncpg.connect(self._url)
        while not self._over.is_set():
            for statement in self.STATEMENTS:
                began = time.monotonic()
                await connection.execute(statement)
                self.slowest = max(self.slowest, time.monotonic() - began)
            self.rounds += 1
        await connection.close()


@contextlib.contextmanager
def reading(url: str, seconds: float) -> Iterator[None]:
    """A reader of every table that keeps its transaction open for this long after others began to wait for it."""
    begun = threading.Event()

    async def read() -> None:
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        connection, watcher = await asyncpg.connect(address), await asyncpg.connect(address)
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM anchors, state_versions LIMIT 1")
            begun.set()
            while not await watcher.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110 - Postgres tells nobody
                await asyncio.sleep(0.01)
            await asyncio.sleep(seconds)
        await connection.close()
        await watcher.close()

    thread = threading.Thread(target=lambda: asyncio.run(read()))
    thread.start()
    assert begun.wait(60)
    yield
    thread.join()


def test_a_migration_that_waits_for_a_lock_lets_the_others_pass(before: str) -> None:
    with Users(before) as users, reading(before, 3.0):
        run_migrations(before)
    assert users.slowest < LIMIT


def test_control_one_that_waits_as_long_as_it_takes_holds_everybody_up(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "30s")
    with Users(before) as users, reading(before, 3.0):
        run_migrations(before)
    assert users.slowest > LIMIT


def test_nobody_waits_a_second_for_a_migration_over_a_million_messages(before: str) -> None:
    execute_sql(before, _many_messages(before))
    with Users(before) as users:
        run_migrations(before)
        slowest = users.slowest
        execute_sql(before, "ALTER TABLE messages ALTER COLUMN usage TYPE json USING usage::json")
    print(f"the slowest statement during the migrations took {slowest:.3f} s, during the control {users.slowest:.1f} s")
    assert slowest < LIMIT
    assert users.slowest > LIMIT, "control: a table that is written anew holds everybody up"


def _many_messages(url: str) -> str:
    """The SQL that copies one message many times, column by column; by way of JSON it takes five times as long."""
    made = {"id": "gen_random_uuid()", "seq": "10000 + n", "term_keys": "'{}'"}
    names = [f'"{name}"' for (name,) in execute_sql(url, COLUMNS)]
    values = [made.get(name.strip('"'), f"m.{name}") for name in names]
    rows_of = ORIGINAL.replace("FROM messages m", f"FROM messages m, generate_series(1, {MESSAGES}) n")
    return f"INSERT INTO messages ({', '.join(names)}) SELECT {', '.join(values)} {rows_of}"


@pytest.fixture(scope="module")
def old_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source code of that commit."""
    packed = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, check=False, capture_output=True)
    if packed.returncode:
        pytest.skip(f"needs the git history: commit {COMMIT} is not there")
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class OldService(Service):
    """The API of that version was started with uvicorn's own command."""

    def _commands(self, settings: Settings) -> Commands:
        command = ("uvicorn", "app.main:create_app", "--factory", "--host", settings.host, "--port", str(settings.port))
        return replace(Commands.of(settings), api=(sys.executable, "-m", *command))


@contextlib.contextmanager
def old_service(
    folder: Path, code: Path, database_url: str, redis_url: str, *, worker: bool = True
) -> Iterator[tuple[Service, httpx.Client]]:
    folder.mkdir()
    settings = {"PYTHONPATH": str(code)}
    made = OldService(folder, database_url=database_url, redis_url=redis_url, settings=settings)
    with started(made, worker) as service, service.client() as client:
        assert "/conversations/{conversation_id}/examination" not in client.get("/openapi.json").json()["paths"]
        yield service, client


def test_the_version_before_runs_beside_this_one(
    empty_database_url: str, redis_url: str, old_checkout: Path, tmp_path: Path
) -> None:
    run_migrations(empty_database_url)
    (tmp_path / "new").mkdir()
    with (
        old_service(tmp_path / "old", old_checkout, empty_database_url, redis_url) as (_, old),
        running_service(tmp_path / "new", database_url=empty_database_url, redis_url=redis_url) as service,
        service.client() as new,
    ):
        assert "/conversations/{conversation_id}/examination" in new.get("/openapi.json").json()["paths"]
        for first, second in ((old, new), (new, old)):
            path = began(first)
            for turn in range(12):
                ok(
                    first.post(
                        f"{path}/chat", json={"content": f"{ANCHORED} That is entry {turn} of {'the log ' * 40}."}
                    )
                )
                ok(second.post(f"{path}/chat", json={"content": f"And what was said in entry {turn}?"}))
            until(partial(has_state, new, path), what="a compaction in the background")
            ok(first.post(f"{path}/compact", json={"keep_tail_messages": 2}))
            ok(second.post(f"{path}/chat", json={"content": "Thank you. What was decided?"}))
            ok(second.post(f"{path}/compact", json={"keep_tail_messages": 1}))
            check_whole(path, old, new)


def began(client: httpx.Client) -> str:
    path = f"/conversations/{ok(client.post('/conversations', json={'policy': WINDOW}))['id']}"
    ok(client.post(f"{path}/messages", json={"role": "user", "content": ANCHORED}))
    return path


def has_state(client: httpx.Client, path: str) -> bool:
    return bool(ok(client.get(path))["state_version"])


def check_whole(path: str, old: httpx.Client, new: httpx.Client) -> None:
    """Both versions read the same history and the same states; the newer one finds no mistake in them."""
    shown = [ok(client.get(f"{path}/messages", params={"limit": 100, "order": "asc"}))["data"] for client in (old, new)]
    assert [each["seq"] for each in shown[0]] == list(range(1, len(shown[0]) + 1))
    assert [(each["id"], each["content"]) for each in shown[0]] == [(each["id"], each["content"]) for each in shown[1]]
    states = [ok(client.get(f"{path}/states"))["data"] for client in (old, new)]
    assert [(each["version"], each["state"]) for each in states[0]] == [
        (each["version"], each["state"]) for each in states[1]
    ]
    assert len(states[0]) >= 2
    anchors = [ok(client.get(f"{path}/anchors"))["data"] for client in (old, new)]
    assert [each["content"] for each in anchors[0]] == [each["content"] for each in anchors[1]] != []
    for client in (old, new):
        ok(client.get(f"{path}/context"))
    assert ok(new.post(f"{path}/examination", json={}))["damages"] == []


def ok(response: httpx.Response) -> Any:
    assert response.is_success, f"{response.request.method} {response.request.url}: {response.text}"
    return response.json()


def test_control_without_defaults_the_version_before_cannot_write(
    empty_database_url: str, redis_url: str, old_checkout: Path, tmp_path: Path
) -> None:
    run_migrations(empty_database_url, LAST_THAT_LOCKS)
    with old_service(tmp_path / "old", old_checkout, empty_database_url, redis_url, worker=False) as (_, old):
        path = f"/conversations/{ok(old.post('/conversations', json={}))['id']}"
        refused = old.post(f"{path}/messages", json={"role": "user", "content": ANCHORED})
        assert refused.status_code == 500
