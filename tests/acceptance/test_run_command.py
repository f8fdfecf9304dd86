"""The one command: what it prints, what it survives, and that it leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import redis
from typer.testing import CliRunner, Result

from app.cli import app
from app.devserver import EmbeddedServers, Endpoints
from app.devserver.run import child_environment
from app.settings import Settings
from tests.acceptance.service import until
from tests.servers import ROOT, execute_sql, unused_port, with_database

STAND_IN = [sys.executable, "-m", "tests.acceptance.stand_in", "run"]
REAL = [sys.executable, "-m", "app.cli", "run"]
RUNNING = "Ctrl-C stops everything"


class Running:
    """A started command, its output, and the processes that belong to it."""

    def __init__(self, argv: list[str], folder: Path, **settings: str) -> None:
        self.data = folder / "data"
        self.port = int(settings.pop("PORT", 0)) or unused_port()
        self._output = folder / f"output-{self.port}"
        self.env = environment(folder, PORT=str(self.port), **settings)
        with self._output.open("w") as output:
            self.process = subprocess.Popen(argv, cwd=ROOT, env=self.env, stdout=output, stderr=subprocess.STDOUT)

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_for(self, text: str, seconds: float = 60, *, times: int = 1) -> None:
        """Wait until the output holds the text this many times, while the command lives."""
        deadline = time.monotonic() + seconds
        while self.output.count(text) < times:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    def end(self, seconds: float = 60) -> int:
        return self.process.wait(seconds)

    def relatives(self) -> list[int]:
        """Every process that was started with our data folder in its environment or arguments."""
        return [pid for pid in all_pids() if pid != os.getpid() and self._related(Path("/proc") / str(pid))]

    def _related(self, entry: Path) -> bool:
        mark = os.fsencode(self.data)
        with contextlib.suppress(OSError):
            return mark in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        return False

    def left_over(self, seconds: float = 15) -> list[int]:
        deadline = time.monotonic() + seconds
        while (left := self.relatives()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left


def all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def environment(folder: Path, **settings: str) -> dict[str, str]:
    return {**os.environ, "THROUGHLINE_DATA_DIR": str(folder / "data"), **settings}


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path, short_folder: Path) -> Iterator[Start]:
    started: list[Running] = []

    def begin(argv: list[str] | None = None, folder: Path = tmp_path, **settings: str) -> Running:
        folder.mkdir(exist_ok=True)
        started.append(Running(argv or STAND_IN, folder, TMPDIR=str(short_folder), **settings))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()
    assert not [pid for one in started for pid in one.left_over()]


def refused(folder: Path, settings: Mapping[str, str]) -> str:
    """Run a command that cannot start, and return the one line that it prints."""
    env = environment(folder, **{"PORT": str(unused_port()), **settings})
    done = CliRunner().invoke(app, ["run"], env=env)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_the_children_import_the_packages_of_this_checkout_wherever_they_run() -> None:
    assert child_environment(Settings(_env_file=None))["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)


@pytest.mark.long
@pytest.mark.processes
def test_it_says_where_it_is_and_goes_on_with_the_same_data(start: Start) -> None:
    first = start()
    first.wait_for(RUNNING)
    first.wait_for("embedded 1")
    assert first.output.index("starting; the first time takes longest") < first.output.index(RUNNING)
    for fact in (first.url, f"{first.url}/docs", str(first.data), "offline", "GOOGLE_API_KEY"):
        assert fact in first.output
    with redis.from_url(queue_of(first)) as queue:
        queue.set("kept", "1")
    first.process.send_signal(signal.SIGINT)
    assert first.end() == 0
    assert "The data stays in" in first.output
    assert not first.left_over(0)
    again = start()
    again.wait_for("redis unix")
    with redis.from_url(queue_of(again)) as queue:
        assert queue.get("kept") == b"1"


def queue_of(running: Running) -> str:
    return str(re.findall(r"redis (unix:\S+)", running.output)[-1])


@pytest.mark.long
@pytest.mark.processes
def test_a_termination_signal_stops_everything(start: Start) -> None:
    running = start()
    running.wait_for(RUNNING)
    running.process.terminate()
    assert running.end() == 0
    assert not running.left_over(0)


@pytest.mark.long
@pytest.mark.processes
def test_a_signal_during_the_start_stops_everything(start: Start) -> None:
    running = start(STAND_IN_API="deaf")
    while not running.left_over(0):
        time.sleep(0.05)
    time.sleep(0.8)
    running.process.send_signal(signal.SIGINT)
    running.end()
    assert not running.left_over(0)


@pytest.mark.long
@pytest.mark.processes
def test_a_deaf_worker_is_ended_after_its_time(start: Start) -> None:
    running = start(STAND_IN_WORKER="deaf")
    running.wait_for("pid")
    running.process.send_signal(signal.SIGINT)
    assert running.end(60) == 0
    assert not running.left_over(0)


@pytest.mark.long
@pytest.mark.processes
def test_a_second_interrupt_does_not_wait(start: Start) -> None:
    running = start(STAND_IN_WORKER="deaf", STAND_IN_API="deaf", STAND_IN_PATIENCE="600")
    running.wait_for("pid")
    running.process.send_signal(signal.SIGINT)
    running.wait_for("Stopping")
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 0
    assert not running.left_over(0)


@pytest.mark.long
@pytest.mark.processes
def test_killed_children_come_back(start: Start) -> None:
    running = start()
    running.wait_for("pid")
    worker = int(re.findall(r"pid (\d+)", running.output)[-1])
    os.kill(worker, signal.SIGKILL)
    running.wait_for("pid", times=2)
    api = int(httpx.get(running.url, trust_env=False).text)
    os.kill(api, signal.SIGKILL)

    def is_back() -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return int(httpx.get(running.url, trust_env=False).text) != api
        return False

    until(is_back, 60, what="the next API")


@pytest.mark.long
@pytest.mark.processes
def test_killed_servers_come_back(start: Start) -> None:
    running = start()
    running.wait_for(RUNNING)
    for name in ("postgres", "valkey"):
        pid = int(
            (running.data / name / ("postmaster.pid" if name == "postgres" else "valkey.pid")).read_text().split()[0]
        )
        os.kill(pid, signal.SIGKILL)
    running.wait_for("PostgreSQL had stopped and runs again")
    running.wait_for("Valkey had stopped and runs again")


@pytest.mark.long
@pytest.mark.processes
def test_a_worker_that_keeps_dying_ends_the_run_with_its_last_words(start: Start) -> None:
    running = start(STAND_IN_WORKER="dies")
    assert running.end(60) == 2
    assert running.output.splitlines()[-1].endswith("no luck today")
    assert not running.left_over(0)


@pytest.mark.long
@pytest.mark.processes
def test_an_api_that_cannot_start_is_one_clear_line(tmp_path: Path) -> None:
    env = environment(tmp_path, PORT=str(unused_port()), STAND_IN_API="dies")
    done = subprocess.run(STAND_IN, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["run    starting; the first time takes longest"]
    assert done.stderr.splitlines() == ["The API stopped while starting: no luck today"]


@pytest.mark.long
@pytest.mark.processes
def test_nothing_outlives_a_killed_supervisor(start: Start) -> None:
    running = start()
    running.wait_for(RUNNING)
    running.process.kill()
    running.end()
    assert not running.left_over()
    again = start()
    again.wait_for(RUNNING)


@pytest.mark.long
@pytest.mark.processes
def test_everything_killed_at_once_starts_again(start: Start) -> None:
    running = start()
    running.wait_for(RUNNING)
    running.process.kill()  # first the parent, so that it starts nothing again
    for pid in running.relatives():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.end()
    again = start()
    again.wait_for(RUNNING)


@pytest.mark.long
@pytest.mark.processes
def test_two_checkouts_run_at_once(start: Start, tmp_path: Path) -> None:
    first, second = start(folder=tmp_path / "a"), start(folder=tmp_path / "b")
    first.wait_for("redis unix")
    second.wait_for("redis unix")
    assert queue_of(first) != queue_of(second)
    first.process.send_signal(signal.SIGINT)
    assert first.end() == 0
    assert httpx.get(second.url, trust_env=False).is_success


@pytest.mark.long
@pytest.mark.processes
def test_a_second_run_over_the_same_data_is_told_where_the_first_one_is(start: Start, tmp_path: Path) -> None:
    first = start()
    first.wait_for(RUNNING)
    line = refused(tmp_path, {})
    assert first.url in line
    assert "already runs" in line


@pytest.mark.long
@pytest.mark.processes
def test_a_port_in_use_is_one_clear_line(start: Start, tmp_path: Path) -> None:
    first = start()
    first.wait_for(RUNNING)
    line = refused(tmp_path / "other", {"PORT": str(first.port)})
    assert line == (
        f"Port {first.port} on 127.0.0.1 is in use: stop what listens there, "
        f"or choose another with PORT={first.port + 1}."
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"PORT": "http"}, "PORT: Input should be a valid integer"),
        ({"HOST": "192.0.2.1"}, "set HOST to an address of this machine"),
        ({"THROUGHLINE_DATA_DIR": "/proc/throughline"}, "set THROUGHLINE_DATA_DIR to a folder you can write to"),
        (
            {"DATABASE_URL": "postgresql://a:secret@127.0.0.1:1/x"},
            "(postgresql://a:***@127.0.0.1:1/x): connection",
        ),
        ({"DATABASE_URL": "postgresql://a:secret@nowhere.invalid/x"}, "unknown host"),
        ({"DATABASE_URL": "mysql://a:secret@localhost/x"}, "must begin with postgresql://, not mysql://"),
        ({"DATABASE_URL": "postgres"}, "DATABASE_URL is not an address"),
        (
            {"REDIS_URL": "redis://:secret@127.0.0.1:1/0"},
            "Cannot use the Redis of REDIS_URL (redis://:***@127.0.0.1:1/0)",
        ),
        ({"REDIS_URL": "valkey"}, "REDIS_URL: no address of a Redis"),
    ],
)
def test_what_a_person_must_put_right_is_one_clear_line(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    line = refused(tmp_path, settings)
    assert said in line
    assert "secret" not in line


def test_a_database_that_does_not_exist_is_one_clear_line(servers: Endpoints, tmp_path: Path) -> None:
    url = servers.database_url.replace("/throughline?", "/absent?")
    assert 'database "absent" does not exist' in refused(tmp_path, {"DATABASE_URL": url})


@pytest.mark.long
@pytest.mark.processes
def test_servers_that_are_given_are_used_and_none_is_started(start: Start, servers: Endpoints) -> None:
    running = start(DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url)
    running.wait_for("embedded 0")
    assert queue_of(running) == servers.redis_url
    assert not running.data.exists()


@pytest.mark.long
@pytest.mark.processes
def test_only_the_missing_server_is_started(start: Start, tmp_path: Path) -> None:
    with EmbeddedServers(tmp_path / "elsewhere", valkey=False, durable=False) as endpoints:
        running = start(DATABASE_URL=endpoints.database_url)
        running.wait_for("embedded 0")
        assert not (running.data / "postgres").exists()
        running.process.terminate()
        assert running.end() == 0


@pytest.mark.long
def test_the_real_service_starts_answers_and_stops(start: Start) -> None:
    running = start(REAL)
    running.wait_for(RUNNING, 120)
    assert httpx.get(f"{running.url}/readyz", trust_env=False).is_success
    assert httpx.get(f"{running.url}/docs", trust_env=False).is_success
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 0, running.output
    assert not running.left_over(0)


@pytest.mark.long
def test_beyond_loopback_without_keys_the_service_says_why_it_refuses(tmp_path: Path) -> None:
    env = environment(tmp_path, PORT=str(unused_port()), HOST="0.0.0.0")  # noqa: S104 - refused is what it must be
    done = subprocess.run(REAL, cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "key" in done.stderr


def migrate(folder: Path, *arguments: str, **settings: str) -> Result:
    return CliRunner().invoke(app, ["migrate", *arguments], env=environment(folder, **settings))


@pytest.mark.long
def test_migrations_run_over_the_embedded_database_and_again_over_a_given_one(tmp_path: Path) -> None:
    assert migrate(tmp_path).exit_code == 0
    with EmbeddedServers(tmp_path / "data", valkey=False) as endpoints:
        again = migrate(tmp_path, DATABASE_URL=endpoints.database_url)
    assert again.stdout.strip() == "The database is up to date."


def test_a_database_of_another_encoding_is_one_clear_line(servers: Endpoints, tmp_path: Path) -> None:
    """Debian makes such databases on machines without a locale; some failed in a search, others stored no Cyrillic."""
    said = {"SQL_ASCII": "has the encoding SQL_ASCII", "UTF8": ""}  # the second is the control
    for encoding, words in said.items():
        name = f"of_{encoding.lower()}"
        execute_sql(servers.database_url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
        done = migrate(tmp_path, DATABASE_URL=with_database(servers.database_url, name))
        assert (done.exit_code, len(done.stderr.splitlines())) == ((2, 1) if words else (0, 0))
        assert words in done.stderr
        execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        ((), {"DATABASE_URL": "postgresql://a:secret@127.0.0.1:1/x"}, "connection refused"),
        (("absent",), {}, "Can't locate revision"),
    ],
)
def test_migrations_that_cannot_run_are_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], said: str
) -> None:
    done = migrate(tmp_path, *arguments, **settings)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert "secret" not in done.stderr
