"""What a command does before anything else."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli import connecting
from app.cli.commands import COMMANDS, app, imported_command
from app.cli.complaints import ComplaintError
from app.cli.running import _announce, _Printer, _startup_facts
from app.cli.screen import replace_unprintable
from app.devserver import supervisor
from app.devserver.postgres import _reason_in_output
from app.devserver.run import Commands, Service
from app.devserver.supervisor import Child, ChildFailedError, Signals, StopRequestedError, Supervisor
from app.settings import Settings
from app.usecases.chat.starting import CANCEL_SECONDS
from app.version import VERSION
from tests.rows import each

INTERRUPTED = """
import os, signal, sys, weakref
class Thing: pass
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "app.cli.commands":
            thing = Thing()
            # In a callback like those of the imports themselves, where Python drops every exception.
            kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
            del thing
sys.meta_path.insert(0, Interrupts())
"""


def read(script: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_while_modules_are_read_ends_the_command_without_a_traceback() -> None:
    assert read(f"{INTERRUPTED}\nfrom app.cli import app") == (130, "", "")


def test_python_itself_would_drop_that_interrupt() -> None:
    script = INTERRUPTED.replace("app.cli.commands", "colorsys")
    code, said, complained = read(f"{script}\nimport colorsys\nprint('goes on')")
    assert (code, said) == (0, "goes on\n")
    assert "Exception ignored" in complained


def test_a_request_to_stop_that_python_drops_is_raised_again() -> None:
    with Signals():
        drop_a_request_to_stop()
        with pytest.raises(StopRequestedError):
            time.sleep(60)


@pytest.fixture
def slowly_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test time for its next line before a dropped request is raised again."""
    monkeypatch.setattr(supervisor, "_RAISED_AGAIN_SECONDS", 0.5)


@pytest.mark.usefixtures("slowly_asked_again")
def test_a_request_to_stop_is_raised_again_as_often_as_it_is_dropped() -> None:
    with Signals():
        drop_a_request_to_stop()
        begin = time.monotonic()
        call_where_exceptions_are_dropped(lambda: time.sleep(60))
        assert time.monotonic() - begin < 30, "control: it was raised there, and dropped"
        with pytest.raises(StopRequestedError):
            time.sleep(60)


@pytest.mark.usefixtures("slowly_asked_again")
def test_nothing_raises_a_dropped_request_once_the_stop_has_begun() -> None:
    with Signals() as signals:
        drop_a_request_to_stop()
        signals.begin_stop()
        time.sleep(0.6)
        assert not signals.forced


def test_a_dropped_request_that_nobody_raises_again_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)
    with Signals():
        drop_a_request_to_stop()
        time.sleep(0.1)


def drop_a_request_to_stop() -> None:
    """Send a signal in a callback in which Python drops every exception."""
    call_where_exceptions_are_dropped(lambda: os.kill(os.getpid(), signal.SIGTERM))


def call_where_exceptions_are_dropped(callback: Callable[[], None]) -> None:
    class Thing:
        pass

    thing = Thing()
    weakref.finalize(thing, callback)
    del thing


@pytest.mark.usefixtures("slowly_asked_again")
def test_a_dropped_request_to_stop_shows_no_traceback() -> None:
    def fail() -> None:
        raise ValueError

    with warnings_of_dropped_exceptions() as dropped, Signals() as signals:
        drop_a_request_to_stop()
        signals.begin_stop()
        assert dropped == []
        call_where_exceptions_are_dropped(fail)
        assert dropped == [ValueError], "control: a defect is shown"


@contextmanager
def warnings_of_dropped_exceptions() -> Iterator[list[type[BaseException]]]:
    """Collect what Python drops instead of printing it."""
    dropped: list[type[BaseException]] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda told: dropped.append(told.exc_type)
    try:
        yield dropped
    finally:
        sys.unraisablehook = before


def test_a_full_disk_is_told_without_a_stamp_and_with_what_to_do() -> None:
    said = (
        'creating\n2026-11-20 17:43:52.133 UTC [30640] FATAL:  could not write to file "x": No space left on device\n'
    )
    assert _reason_in_output(said) == (
        'FATAL:  could not write to file "x": No space left on device. '
        "Free some space, or set THROUGHLINE_DATA_DIR to a folder on another disk"
    )
    assert _reason_in_output("") == "it said nothing"


def test_the_version_is_that_of_the_project_and_of_the_api() -> None:
    told = CliRunner().invoke(app, ["--version"])
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert (told.exit_code, told.stdout) == (0, f"throughline {project['version']}\n")
    assert project["version"] == VERSION


@each("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_of_itself(name: str) -> None:
    command = imported_command(name)
    assert (command.name, " ".join(command.help.split("\n\n")[0].split())) == (name, COMMANDS[name][1])


def test_the_list_of_commands_waits_for_none_of_them() -> None:
    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom app.cli import app\n"
        "told = CliRunner().invoke(app, {arguments})\n"
        "heavy = {{'fastapi', 'sqlalchemy', 'alembic', 'pydantic_ai', 'httpx', 'app.core', 'app.settings',"
        "'app.core.text.tables'}}\n"
        "print(told.exit_code, sorted(heavy & sys.modules.keys()))"
    )
    assert read(script.format(arguments=["--help"])) == (0, "0 []\n", "")
    code, said, _ = read(script.format(arguments=["chat", "--help"]))
    assert (code, said) == (0, "0 ['app.core', 'app.settings', 'httpx']\n"), "control: what is imported is seen"


def test_what_is_no_id_of_a_file_is_told_before_the_service_is_asked() -> None:
    told = CliRunner().invoke(app, ["files", "remove", "last", "nope"])
    assert told.exit_code == 2
    assert told.stderr == "'nope' is no file's id: `throughline files list ID` shows them.\n"


@pytest.mark.parametrize(
    ("models", "hint"),
    [
        ({}, "offline needs no key; for Gemini set GOOGLE_API_KEY and start again"),
        (
            {"chat_model": "openai:llama"},
            "offline quotes; for summaries set THROUGHLINE_COMPACTION_MODEL=openai:llama and start again",
        ),
        ({"chat_model": "openai:llama", "compaction_model": "openai:llama"}, None),
    ],
)
def test_the_start_says_what_a_language_model_would_need(models: dict[str, Any], hint: str | None) -> None:
    bare = Settings.model_construct(**models)
    assert next((value for name, value in _startup_facts(bare) if not name), None) == hint


def test_a_start_is_told_where_the_terminal_lacks_the_letters_of_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def announce() -> bytes:
        written = io.BytesIO()
        output = io.TextIOWrapper(written, encoding="ascii")
        monkeypatch.setattr("sys.stdout", output)
        if is_lenient:
            replace_unprintable()
        _announce(Console(highlight=False), Settings(data_dir=Path("/srv/Разговоры")))
        output.flush()
        return written.getvalue()

    is_lenient = True
    assert b"/srv/?????????" in announce()
    is_lenient = False
    with pytest.raises(UnicodeEncodeError):  # the control
        announce()


def test_an_address_with_a_slash_at_its_end_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "answers", lambda url: False)
    with pytest.raises(ComplaintError, match=r"http://127\.0\.0\.1:9/readyz"):
        connecting.find_service("http://127.0.0.1:9/")


FOLDERS = "http://127.0.0.1:8123"
"""Where the service over the data folder is."""
NAMED = "http://127.0.0.1:9"
DEFAULT = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("variables", "answering", "found"),
    [
        ({"PORT": "9"}, {FOLDERS, NAMED, DEFAULT}, NAMED),
        ({"PORT": "9"}, {FOLDERS, DEFAULT}, None),
        ({"HOST": "127.0.0.2"}, {FOLDERS, DEFAULT}, None),
        ({}, {FOLDERS, DEFAULT}, FOLDERS),
        ({}, {DEFAULT}, DEFAULT),
        ({}, set(), None),
    ],
)
@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_command_asks_no_other_service_than_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    answering: set[str],
    found: str | None,
    where: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if where == "environment":
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    else:
        (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in variables.items()))
    monkeypatch.setattr(connecting, "running_at", lambda _: FOLDERS)
    monkeypatch.setattr(connecting, "answers", lambda url: url in answering)
    if found is not None:
        assert connecting.find_service(None) == found
        return
    named = f"http://{variables.get('HOST', '127.0.0.1')}:{variables.get('PORT', '8000')}"
    with pytest.raises(ComplaintError, match=re.escape(named)):
        connecting.find_service(None)


@pytest.mark.parametrize("owner", ["process 4711", "another process"])
def test_an_owner_of_the_data_folder_that_serves_nothing_is_no_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: str
) -> None:
    """As while ``throughline run`` still starts, or another command uses the database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connecting, "running_at", lambda _: owner)
    monkeypatch.setattr(connecting, "address", lambda _: "http://127.0.0.1:1")
    with pytest.raises(ComplaintError, match=r"^No Throughline answers at http://127\.0\.0\.1:1"):
        connecting.find_service(None)


def test_the_api_is_not_killed_before_it_has_ended_its_turns() -> None:
    settings = Settings(shutdown_seconds=4)
    api = Service(settings, emit=lambda *_: None)._children()[0]
    grace = int(Commands.of(settings).api[-1])
    assert api._patience > grace + settings.shutdown_seconds + CANCEL_SECONDS


def test_a_child_goes_on_when_its_lines_cannot_be_printed(tmp_path: Path) -> None:
    """The reader of the output may have left, as with ``throughline run | head``."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = tmp_path / "done"
    talks = f"for n in range(99): print('-' * 999 + str(n))\nopen({str(done)!r}, 'w')"  # more than a pipe holds
    with os.fdopen(write_end, "w", encoding="utf-8") as output:
        child = Child("talker", (sys.executable, "-c", talks), env=os.environ, emit=_Printer(output), patience=9)
        child.start()
        child.show()
        deadline = time.monotonic() + 30
        while not child.last_line.endswith("-98") and time.monotonic() < deadline:
            time.sleep(0.02)
        child.end(lambda: False)
        os.dup2(os.open(os.devnull, os.O_WRONLY), write_end)  # what is left is flushed when the file is closed
    assert done.exists()


def test_a_slow_start_is_told_until_the_service_answers_or_the_time_is_up() -> None:
    told: list[str] = []
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    child = Child("API", sleeper, env=os.environ, emit=lambda *_: None, patience=9)
    starting = Supervisor([child], revive=list, emit=lambda _, line: told.append(line))
    try:
        starting.start(lambda: len(told) == 2, seconds=30, told_each=0.05)
        assert all(line.startswith("still starting") for line in told)
        starting.stop(lambda: True)
        with pytest.raises(ChildFailedError, match=r"within 0\.1 seconds: it said nothing"):
            starting.start(lambda: False, seconds=0.1, told_each=30)
    finally:
        starting.stop(lambda: True)
