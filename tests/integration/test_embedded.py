"""The embedded servers in situations that happen on a developer's machine."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from app.devserver import (
    AlreadyRunningError,
    EmbeddedError,
    EmbeddedServers,
    Endpoints,
    binaries,
    privileges,
    running_at,
)
from app.devserver.binaries import postgres_programs, valkey_program
from app.devserver.lock import DataDirLock
from app.devserver.privileges import identities
from app.devserver.processes import wait_until
from app.storage.migrations import run_migrations
from tests.servers import ROOT, execute_sql

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")

# A process that owns the servers, prints their addresses, and waits for its end.
OWNER = textwrap.dedent(
    """
    import pathlib, sys, time
    from app.devserver import EmbeddedServers
    servers = EmbeddedServers(pathlib.Path(sys.argv[1]), durable=False)
    endpoints = servers.start()
    print(endpoints.database_url, endpoints.redis_url, flush=True)
    time.sleep(120)
    """
)
# A command that owns the servers, and ends at once.
COMMAND = textwrap.dedent(
    """
    import pathlib, sys
    from app.devserver import EmbeddedServers
    with EmbeddedServers(pathlib.Path(sys.argv[1]), valkey=False, outstays_guests=sys.argv[2] == "waits"):
        print("started", flush=True)
        sys.stdin.readline()
    """
)

Owner = tuple[subprocess.Popen[str], Endpoints]


@pytest.fixture
def own(tmp_path: Path, short_folder: Path) -> Iterator[Callable[[], Owner]]:
    env = {**os.environ, "TMPDIR": str(short_folder)}
    started: list[subprocess.Popen[str]] = []

    def start() -> Owner:
        argv = [sys.executable, "-c", OWNER, str(tmp_path / "data")]
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        database_url, redis_url = process.stdout.readline().split()
        return process, Endpoints(database_url=database_url, redis_url=redis_url)

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert gone(tmp_path / "data")


def write(endpoints: Endpoints) -> None:
    execute_sql(endpoints.database_url, "CREATE TABLE kept (n int)")
    execute_sql(endpoints.database_url, "INSERT INTO kept VALUES (1)")
    with redis.from_url(endpoints.redis_url) as connection:
        connection.set("kept", "1")


def read(endpoints: Endpoints) -> bool:
    execute_sql(endpoints.database_url, "SELECT 1 / (SELECT count(*) FROM kept)")  # without a row this divides by zero
    with redis.from_url(endpoints.redis_url) as connection:
        return bool(connection.get("kept") == b"1")


def server_pids(data: Path) -> list[int]:
    """Find the servers of a data folder by their arguments, as in ``ps``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if {os.fsencode(data / "postgres"), os.fsencode(data / "valkey")} & set(arguments):
                found.append(int(entry.name))
    return found


def gone(data: Path) -> bool:
    return wait_until(lambda: not server_pids(data), 15)


@pytest.mark.long
def test_data_outlives_a_stop_and_nothing_is_left_running(tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path) as endpoints:
        runtime = Path(endpoints.redis_url.removeprefix("unix://")).parent
        assert runtime.stat().st_mode & 0o777 == 0o700
        write(endpoints)
    assert not runtime.exists()
    assert not server_pids(tmp_path)
    with EmbeddedServers(tmp_path) as endpoints:
        assert read(endpoints)


@pytest.mark.long
def test_a_second_process_attaches_and_leaves_the_servers_running(tmp_path: Path, own: Callable[[], Owner]) -> None:
    _, endpoints = own()
    write(endpoints)
    with EmbeddedServers(tmp_path / "data") as attached:
        assert attached == endpoints
    assert read(endpoints)


@pytest.mark.daily(1)
@pytest.mark.parametrize("outstays", ["waits", pytest.param("ends", id="control")])
def test_a_command_that_owns_the_servers_ends_after_those_that_attached(tmp_path: Path, outstays: str) -> None:
    argv, both = [sys.executable, "-c", COMMAND, str(tmp_path / "data"), outstays], subprocess.PIPE
    with subprocess.Popen(argv, cwd=ROOT, stdin=both, stdout=both, stderr=both, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "started\n"
        with EmbeddedServers(tmp_path / "data", valkey=False) as endpoints:
            assert command.stdin is not None
            command.stdin.close()
            if outstays == "ends":
                assert command.wait(30) == 0
                with pytest.raises(OSError, match="No such file"):
                    execute_sql(endpoints.database_url, "SELECT 1")
                return
            assert command.stderr is not None
            assert "waiting for it to end" in command.stderr.readline()
            assert execute_sql(endpoints.database_url, "SELECT 1") == [(1,)]
        assert command.wait(30) == 0


@pytest.mark.long
def test_a_second_owner_is_refused_and_told_where_the_first_one_is(tmp_path: Path, own: Callable[[], Owner]) -> None:
    process, _ = own()
    assert running_at(tmp_path / "data") == f"process {process.pid}"
    with pytest.raises(AlreadyRunningError, match=f"process {process.pid}"):
        EmbeddedServers(tmp_path / "data").start(attach=False)


@pytest.mark.long
def test_servers_end_with_a_killed_owner(tmp_path: Path, own: Callable[[], Owner]) -> None:
    process, _ = own()
    assert server_pids(tmp_path / "data")
    process.kill()
    assert gone(tmp_path / "data")


@pytest.mark.long
def test_a_start_right_after_killing_the_owner_finds_the_data(tmp_path: Path, own: Callable[[], Owner]) -> None:
    process, endpoints = own()
    write(endpoints)
    process.kill()
    process.wait()
    with EmbeddedServers(tmp_path / "data") as endpoints:
        assert read(endpoints)


@pytest.mark.long
def test_a_start_after_killing_everything_finds_the_data(tmp_path: Path, own: Callable[[], Owner]) -> None:
    process, endpoints = own()
    write(endpoints)
    time.sleep(1.1)  # Valkey's file is flushed every second
    for pid in (process.pid, *server_pids(tmp_path / "data")):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    with EmbeddedServers(tmp_path / "data") as endpoints:
        assert read(endpoints)


@pytest.mark.long
def test_an_orphan_is_stopped_before_a_new_server_starts(
    tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    orphaned = EmbeddedServers(tmp_path, durable=False)
    write(orphaned.start())
    orphans = server_pids(tmp_path)
    orphaned._lock.release()  # as if the owner had died, and the kernel had not told anybody
    with EmbeddedServers(tmp_path, durable=False) as endpoints:
        assert read(endpoints)
        assert not set(orphans) & set(server_pids(tmp_path))
    assert not any(server.alive() for server in orphaned._servers)
    orphaned._servers = []


@pytest.mark.long
def test_stale_pid_files_of_strangers_are_no_reason_not_to_start(tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path, durable=False) as endpoints:
        write(endpoints)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "postgres" / "postmaster.pid").write_text(f"{stranger.pid}\n{tmp_path / 'postgres'}\n")
        (tmp_path / "valkey" / "valkey.pid").write_text(f"{stranger.pid}\n")
        with EmbeddedServers(tmp_path, durable=False) as endpoints:
            assert read(endpoints)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.long
def test_dead_servers_are_revived_at_the_same_address(tmp_path: Path) -> None:
    servers = EmbeddedServers(tmp_path, durable=False)
    endpoints = servers.start()
    try:
        write(endpoints)
        time.sleep(1.1)
        for server in servers._servers:
            assert server._process is not None
            os.kill(server._process.pid, signal.SIGKILL)
            wait_until(lambda: not server.alive(), 5)  # noqa: B023 - called at once
        assert servers.revive() == ["PostgreSQL", "Valkey"]
        assert read(endpoints)
        assert servers.revive() == []
    finally:
        servers.stop()


@pytest.mark.long
def test_a_half_made_database_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "postgres.draft").mkdir()
    (tmp_path / "postgres.draft" / "PG_VERSION").write_text("18\n")
    with EmbeddedServers(tmp_path, valkey=False, durable=False) as endpoints:
        execute_sql(endpoints.database_url, "SELECT 1")


def test_a_queue_that_cannot_be_read_is_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a loss of power the end of a file may be zeros; Valkey mends only one that was cut off."""
    with EmbeddedServers(tmp_path, postgres=False) as endpoints, redis.from_url(endpoints.redis_url) as connection:
        connection.set("kept", "1")
    (file,) = (tmp_path / "valkey" / "appendonlydir").glob("*.incr.aof")
    file.write_bytes(file.read_bytes()[:-20] + bytes(20))
    with EmbeddedServers(tmp_path, postgres=False) as endpoints, redis.from_url(endpoints.redis_url) as connection:
        assert connection.set("new", "1")
        assert not connection.exists("kept")
    assert "Bad file format" in capsys.readouterr().err
    assert (tmp_path / "valkey.unreadable" / "appendonlydir" / file.name).read_bytes().endswith(bytes(20))


def test_a_queue_stays_where_it_was_not_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "valkey" / "appendonlydir" / "kept"
    kept.parent.mkdir(parents=True)
    kept.touch()
    monkeypatch.setattr("app.devserver.valkey.valkey_program", lambda: Path("/bin/false"))
    with pytest.raises(EmbeddedError, match=r"^Valkey did not start: [^\n]*log: [^\n]*$"):
        EmbeddedServers(tmp_path, postgres=False).start()
    assert kept.exists()


@pytest.mark.long
def test_two_data_folders_do_not_disturb_each_other(tmp_path: Path) -> None:
    with (
        EmbeddedServers(tmp_path / "a", durable=False) as first,
        EmbeddedServers(tmp_path / "b", durable=False) as second,
    ):
        assert first != second
        write(first)
        write(second)
        assert read(first)
        assert read(second)


def test_a_copy_of_a_folder_in_use_leaves_the_first_alone(tmp_path: Path) -> None:
    """Somebody copies the whole data folder while the service runs, and starts the copy elsewhere."""
    with EmbeddedServers(tmp_path / "a", postgres=False) as first:
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        assert DataDirLock(tmp_path / "a").read() is not None, "control: the first is found by its note"
        assert DataDirLock(tmp_path / "b").read() is None
        with EmbeddedServers(tmp_path / "b", postgres=False) as second:
            assert first != second
            with redis.from_url(second.redis_url) as one:
                assert one.ping()
        with redis.from_url(first.redis_url) as one:
            assert one.ping()


def test_a_deep_temporary_folder_does_not_lengthen_the_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with (
        EmbeddedServers(tmp_path / ("y" * 100), postgres=False) as endpoints,
        redis.from_url(endpoints.redis_url) as one,
    ):
        assert one.ping()


@pytest.mark.long
def test_variables_of_another_postgres_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGHOST": "nowhere", "PGPORT": "1", "PGDATA": "/nowhere", "LC_ALL": "xx_YY"}.items():
        monkeypatch.setenv(name, value)
    servers = EmbeddedServers(tmp_path, valkey=False, durable=False)
    servers.start()
    servers.stop()


@pytest.mark.parametrize("blocked", ["file", "proc"])
def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path, blocked: str) -> None:
    (tmp_path / "file").write_text("")
    data = tmp_path / "file" / "data" if blocked == "file" else Path("/proc/throughline")
    with pytest.raises(EmbeddedError, match=r"^Cannot write to the data folder .* THROUGHLINE_DATA_DIR [^\n]*$"):
        EmbeddedServers(data).start()


@pytest.mark.parametrize("name", ["lock", "valkey.log"])
def test_a_file_that_cannot_be_used_is_one_clear_line_and_keeps_no_lock(tmp_path: Path, name: str) -> None:
    """As of a file that a command of root has left."""
    (tmp_path / name).mkdir()
    with pytest.raises(EmbeddedError, match=rf"^Cannot use {tmp_path / name} \([^\n]*THROUGHLINE_DATA_DIR[^\n]*$"):
        EmbeddedServers(tmp_path, postgres=False).start()
    assert running_at(tmp_path) is None


@pytest.mark.parametrize("version", ["9.6", "99"])
def test_data_of_another_major_version_is_one_clear_line_and_stays_untouched(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "data" / "postgres"
    folder.mkdir(parents=True)
    (folder / "PG_VERSION").write_text(f"{version}\n")
    (folder / "postmaster.pid").write_text("1\n")
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    with pytest.raises(
        EmbeddedError, match=rf"^[^\n]*was made by PostgreSQL {version}, found here is \d+[^\n]*$"
    ) as said:
        EmbeddedServers(tmp_path / "data").start()
    assert f"install PostgreSQL {version} first" in str(said.value)
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()} == before


def test_data_without_their_version_are_one_clear_line_and_stay_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "postgres"
    (folder / "base").mkdir(parents=True)
    with pytest.raises(EmbeddedError, match=r"^[^\n]*is no whole database[^\n]*no PG_VERSION[^\n]*$"):
        EmbeddedServers(tmp_path / "data").start()
    assert [file.name for file in folder.iterdir()] == ["base"]


@pytest.mark.long
def test_the_commands_of_that_line_convert_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data of the distribution's PostgreSQL are converted by running the printed commands in a shell."""
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        try:
            distribution = binaries.major_version(postgres_programs())
        except EmbeddedError:
            pytest.skip("the distribution's PostgreSQL is not installed")
        with EmbeddedServers(tmp_path / "data", valkey=False, durable=False) as endpoints:
            run_migrations(endpoints.database_url)
            execute_sql(endpoints.database_url, "INSERT INTO tenants VALUES (gen_random_uuid(), 'somebody')")
    if binaries.major_version(postgres_programs()) == distribution:
        pytest.skip("the distribution's PostgreSQL is not installed in another version than the wheel's")
    with pytest.raises(EmbeddedError) as said:
        EmbeddedServers(tmp_path / "data", valkey=False).start()
    commands = re.findall(r"THROUGHLINE_DATA_DIR=\S+ throughline [^;]+", str(said.value))
    assert len(commands) == 2
    for command in commands:
        line = command.replace(" throughline ", f" {sys.executable} -m app.cli ")
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(["sh", "-c", line], env=env, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    new = Path(commands[1].removeprefix("THROUGHLINE_DATA_DIR=").split()[0])
    with EmbeddedServers(new, valkey=False) as endpoints:
        execute_sql(endpoints.database_url, "SELECT 1 / (SELECT count(*) FROM tenants WHERE name = 'somebody')")


@pytest.mark.long
def test_a_damaged_database_is_one_clear_line_and_leaves_nothing_running(tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path, valkey=False, durable=False):
        pass
    (tmp_path / "postgres" / "global" / "pg_control").unlink()
    with pytest.raises(EmbeddedError, match=r"^PostgreSQL did not start: [^\n]*log: [^\n]*$"):
        EmbeddedServers(tmp_path, valkey=False, durable=False).start()
    assert not server_pids(tmp_path)
    assert running_at(tmp_path) is None


@pytest.mark.long
def test_a_database_that_cannot_be_created_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that the files of the server itself have filled."""
    monkeypatch.setattr("app.devserver.postgres._DATABASE", "no name")
    with pytest.raises(EmbeddedError, match=r"^PostgreSQL could not create its database: ERROR: +syntax[^\n]*$"):
        EmbeddedServers(tmp_path, valkey=False, durable=False).start()
    assert not server_pids(tmp_path)


@pytest.mark.long
def test_the_distribution_serves_where_the_wheels_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    try:
        assert "site-packages" not in str(postgres_programs())
    except EmbeddedError:
        pytest.skip("the distribution's PostgreSQL is not installed")
    with EmbeddedServers(tmp_path, valkey=False, durable=False) as endpoints:
        execute_sql(endpoints.database_url, "SELECT 1")


def test_no_programs_at_all_are_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(binaries, "_distribution_folders", list)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EmbeddedError, match="set DATABASE_URL"):
        postgres_programs()
    with pytest.raises(EmbeddedError, match="set REDIS_URL"):
        valkey_program()


@as_root
@pytest.mark.long
def test_root_without_user_namespaces_runs_postgres_as_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with EmbeddedServers(closed / "data", durable=False) as endpoints:
        write(endpoints)
    namespace, nobody = identities()
    monkeypatch.setattr(privileges, "identities", lambda: [nobody, namespace])
    with EmbeddedServers(closed / "data", durable=False) as endpoints:
        assert read(endpoints)
        assert (closed / "data" / "postgres").stat().st_uid == nobody.uid
    monkeypatch.undo()
    with EmbeddedServers(closed / "data", durable=False) as endpoints:
        assert read(endpoints)


@as_root
@pytest.mark.long
def test_root_leaves_the_data_of_another_user_alone(tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path, valkey=False, durable=False):
        pass
    os.chown(tmp_path / "postgres", 12345, -1)
    with pytest.raises(EmbeddedError, match="belongs to user 12345: start as that user"):
        EmbeddedServers(tmp_path, valkey=False, durable=False).start()


def pythons_for(user: pwd.struct_passwd, env: dict[str, str]) -> list[str]:
    """List interpreters that the user can start; a version manager's own often lies in a closed home."""
    found = []
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            argv = [python, "-c", "import app.devserver"]
            tried = subprocess.run(argv, env=env, user=user.pw_uid, extra_groups=[], check=False, capture_output=True)
            found += [python] if tried.returncode == 0 else []
    return found


@as_root
@pytest.mark.long
def test_a_plain_user_runs_both_servers() -> None:
    plain = pwd.getpwnam("nobody")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}"}
    pythons = pythons_for(plain, env)
    if not pythons:
        pytest.skip("Python or this checkout is closed to other users")
    # Pytest's own folder is closed to others.
    data = Path(tempfile.mkdtemp(prefix="throughline-test-", dir="/tmp"))
    os.chown(data, plain.pw_uid, plain.pw_gid)
    argv = [pythons[0], "-c", OWNER.replace("time.sleep(120)", "servers.stop()"), str(data)]
    try:
        done = subprocess.run(
            argv, env=env, user=plain.pw_uid, group=plain.pw_gid, extra_groups=[], check=False, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        assert (data / "postgres" / "PG_VERSION").stat().st_uid == plain.pw_uid
    finally:
        shutil.rmtree(data)
