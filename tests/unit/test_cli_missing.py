"""What a command says of a version or a segment that there is not: which there are, or where they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.complaints import errors_as_one_line
from app.client import NotFoundError

ID = "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8"
NO_VERSION_9 = "There is no version 9 of the state: the first is 1, the newest 2."


class _Client:
    """A service with one conversation and some versions of its state, which finds none that it is asked for."""

    def __init__(self, versions: tuple[int, ...], *, is_there: bool = True) -> None:
        self.versions = versions
        self.is_there = is_there

    def states(self, _id: str, *, order: str, page_size: int) -> Iterator[Any]:
        assert page_size
        self.conversation(_id)
        return (SimpleNamespace(version=one) for one in sorted(self.versions, reverse=order == "desc"))

    def conversation(self, _id: str) -> None:
        if not self.is_there:
            raise NotFoundError(404, {"code": "not_found", "detail": "No such conversation."})

    def find_nothing(self, *_: object, **__: object) -> None:
        raise NotFoundError(404, {"code": "not_found", "detail": "No such thing."})

    compare_states = restore = segment = find_nothing


@pytest.mark.parametrize(
    ("argv", "versions", "said"),
    [
        (
            ["state", ID, "--diff", "1", "9"],
            (1, 2),
            NO_VERSION_9,
        ),
        (
            ["state", ID, "--diff", "9", "1"],
            (1, 2),
            NO_VERSION_9,
        ),
        (["state", ID, "--version", "9"], (1, 2), NO_VERSION_9),
        (["restore", ID, "99"], (1, 2), "There is no version 99 of the state: the first is 1, the newest 2."),
        (["restore", ID, "99"], (), "There is no state yet: nothing was compacted."),
        (["restore", ID, "2"], (1, 3), "No such thing. (not_found)"),
        (["expand", ID, "nope"], (), "There is no segment 'nope': `throughline context ID` shows the ids, "),
    ],
)
def test_what_there_is_instead_is_said(
    argv: list[str], versions: tuple[int, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _said(argv, _Client(versions), monkeypatch).startswith(said)


@pytest.mark.parametrize("argv", [["state", ID, "--diff", "1", "9"], ["restore", ID, "9"], ["expand", ID, "nope"]])
def test_a_conversation_that_there_is_not_is_said_to_be_missing(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _said(argv, _Client((1,), is_there=False), monkeypatch) == "No such conversation. (not_found)\n"


def _said(argv: list[str], client: _Client, monkeypatch: pytest.MonkeyPatch) -> str:
    @contextmanager
    def connected(*_: object) -> Iterator[_Client]:
        with errors_as_one_line():
            yield client

    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setattr("app.cli.inspect.connected_client", connected)
    done = CliRunner().invoke(app, argv)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    return done.stderr
