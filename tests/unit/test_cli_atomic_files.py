"""A file gets its name once it is complete, and never replaces anything but a file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from app.cli.atomic_files import atomic_file, is_special_file
from app.cli.commands import app
from app.client import Throughline
from tests.servers import ROOT

ID = UUID("0193e000-0000-7000-8000-000000000002")


def exported(monkeypatch: pytest.MonkeyPatch, output: Path) -> Result:
    client = SimpleNamespace(readiness=lambda: {"status": "ok"}, download=lambda _: iter([b"whole", b"ness"]))

    class Client:
        def __enter__(self) -> Any:
            return client

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr("app.cli.connecting.open_client", lambda *_, **__: Client())
    return CliRunner().invoke(app, ["export", str(ID), "--url", "http://localhost:1", "--output", str(output)])


def test_a_pipe_is_written_into_and_stays_a_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    done = exported(monkeypatch, pipe)
    assert (done.exit_code, done.stdout) == (0, "")
    assert pipe.is_fifo()
    reader.join(5)
    assert read == [b"wholeness"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    file.parent.mkdir()
    file.write_text("before")
    link.symlink_to(file)
    assert exported(monkeypatch, link).exit_code == 0
    assert link.is_symlink()
    assert file.read_text() == "wholeness"


def test_what_was_broken_off_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")

    def write() -> None:
        with atomic_file(file) as waiting:
            waiting.write(b"half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]


def test_only_devices_pipes_and_sockets_are_special(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    special = {name for name in ("pipe", "file", "nothing", ".") if is_special_file(tmp_path / name)}
    assert special == {"pipe"}
    assert is_special_file(Path("/dev/null"))


def test_a_backup_is_not_put_in_the_place_of_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = CliRunner().invoke(app, ["backup", str(pipe), "--force"])
    assert (done.exit_code, "name a file" in done.stderr) == (2, True)
    assert pipe.is_fifo()


@pytest.mark.parametrize("key", ["ключ", "tl_secret\n", "tl_\x00secret"])
def test_what_is_no_key_is_said_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no key has") as failure:
        Throughline("http://localhost:1", key=key)
    assert key.strip() not in str(failure.value)
    monkeypatch.setattr("app.cli.connecting.answers", lambda _: True)
    done = CliRunner().invoke(app, ["list", "--url", "http://localhost:1", "--key", key])
    assert (done.exit_code, done.stderr.startswith("The API key is not valid")) == (2, True)
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("before", "asked", "after"), [(0o600, 0o666, 0o600), (0o640, 0o666, 0o640), (0o644, 0o600, 0o600)]
)
def test_a_file_that_is_replaced_is_not_shown_to_more_people(
    tmp_path: Path, before: int, asked: int, after: int
) -> None:
    target = tmp_path / "export.json"
    target.touch()
    target.chmod(before)
    with atomic_file(target, asked) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == after, "before anything is written"
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == after


WRITER = """
import asyncio, pathlib, signal, sys
from app.cli.atomic_files import atomic_file

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup

async def write(file):
    file.write(b"every text")
    print("writing", flush=True)
    await asyncio.sleep(60)

with atomic_file(pathlib.Path(sys.argv[1])) as file:
    asyncio.run(write(file))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_asked_to_end_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """As a nightly backup at a shutdown, or under a time limit: no file with every text may pile up."""
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "backup.zip")]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(number)
        assert writer.wait(20) == 128 + number
    assert list(tmp_path.iterdir()) == []
