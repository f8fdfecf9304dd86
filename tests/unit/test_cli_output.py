"""An argument that is not text, and an output that accepts no more, lead to one line."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app, files
from app.cli.chat import _lines
from app.cli.screen import Screen
from app.cli.showing import print_found

PROGRAM = """
import sys
from app.cli.complaints import errors_as_one_line
import typer
def main():
    with errors_as_one_line():
        {work}
typer.run(main)
"""


def ended(work: str, **streams: object) -> tuple[int, str]:
    given = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL, **streams}
    argv = [sys.executable, "-c", PROGRAM.format(work=work)]
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False, env={"LANG": "C.UTF-8"}, **given)  # type: ignore[call-overload]
    return done.returncode, done.stderr


@pytest.mark.daily(1)
@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="Linux alone has a device that is always full")
@pytest.mark.parametrize("work", ["sys.stdout.write('x'); sys.stdout.flush()", "sys.stdout.buffer.write(b'x' * 99999)"])
def test_an_output_that_takes_no_more_is_one_line(work: str) -> None:
    with Path("/dev/full").open("w") as full:
        assert ended(work, stdout=full) == (2, "The output ends here: No space left on device.\n")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="Linux alone has a device that is always full")
@pytest.mark.daily(1)
@pytest.mark.parametrize(
    "asked", [["--help"], [], ["--version"], ["compact", "--help"], ["keys"], ["keys", "list", "--help"]]
)
def test_a_help_that_cannot_be_written_is_one_line(asked: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-m", "app.cli", *asked]
        done = subprocess.run(
            argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env={"LANG": "C.UTF-8"}
        )
    assert (done.returncode, done.stderr) == (2, "The output ends here: No space left on device.\n")


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("--help >&-", 2, "The output ends here: Bad file descriptor."),
        ("list --url http://127.0.0.1:1 >&-", 2, "No Throughline answers at http://127.0.0.1:1"),
        ("list --url http://127.0.0.1:1 2>&-", 2, ""),
        ("--version <&- 2>&-", 0, ""),
    ],
)
def test_a_stream_that_the_shell_closed_ends_in_no_traceback(command: str, code: int, said: str) -> None:
    argv = ["/bin/sh", "-c", f"exec {sys.executable} -m app.cli {command}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"LANG": "C.UTF-8"})
    assert (done.returncode, done.stderr[: len(said)]) == (code, said)
    assert done.stderr.count("\n") <= 1


def test_what_is_no_text_is_one_line() -> None:
    assert ended("sys.argv[0] + '\\udcff'.encode().decode()") == (2, "What was given is no text in UTF-8.\n")


def test_a_reader_that_has_seen_enough_is_told_nothing() -> None:
    code, said = ended("raise BrokenPipeError(32, 'Broken pipe')")
    assert (code, "ends here" in said) == (1, False)


def test_without_any_standard_input_there_are_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert list(_lines(Screen())) == ["one\n", "two\n"]
    monkeypatch.setattr("sys.stdin", None)
    assert list(_lines(Screen())) == []


def test_a_conversation_without_files_says_how_to_attach_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_found([], files._print_files, as_json=False)
    assert "throughline files add" in capsys.readouterr().out
    print_found([], files._print_files, as_json=True)
    assert capsys.readouterr().out.strip() == "[]", "the control: programs read a list"


def test_where_options_stand_is_told_and_help_is_given_for_either_name() -> None:
    before = CliRunner().invoke(app, ["--url", "http://localhost:8000", "list"])
    assert (before.exit_code, before.stderr.splitlines()[0]) == (2, "Usage: throughline COMMAND [OPTIONS] [ARGS]...")
    for asked in (["-h"], ["list", "-h"], ["keys", "create", "-h"]):
        short, long = CliRunner().invoke(app, asked), CliRunner().invoke(app, [*asked[:-1], "--help"])
        assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert CliRunner().invoke(app, ["list", "-x"]).exit_code == 2, "control"


@pytest.mark.parametrize(
    ("guessed", "data", "type_"),
    [
        ("application/rls-services+xml", b"fn main() {}\n", "text/plain"),  # main.rs, by the list of types of Debian
        ("image/svg+xml", b"<svg/>", "text/plain"),
        (None, b"a: 1\n", "text/plain"),
        ("text/csv", b"a,b\n", "text/csv"),
        ("application/pdf", b"no PDF", "application/pdf"),
        ("application/zip", b"PK\x03\x04\x00", "application/zip"),
    ],
)
def test_a_text_whose_own_type_is_not_taken_is_attached_as_plain_text(
    guessed: str | None, data: bytes, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimetypes.guess_type", lambda _: (guessed, None))
    assert files.type_of("a name", data) == type_
