"""Runs a framework as a process in its own environment."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from bench.peers.databases import Database
from bench.peers.environments import FRAMEWORKS, UnavailableError, python_of
from bench.peers.played import Talk, Turn
from tests.servers import ROOT

_TAIL: Final = 2_000


class Framework:
    """A running process that answers requests."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path, database: Database) -> None:
        self.name = name
        self.folds = FRAMEWORKS[name].folds
        self._process = process
        self._asking, self._answers = _pipes(process)
        self._log = log
        self._database = database
        self.versions: dict[str, str] = self._answer()["versions"]

    @property
    def rows(self) -> Mapping[str, str]:
        """The one row, whose title has the version of the framework."""
        package, number = next(iter(self.versions.items()))
        return {self.name: f"{FRAMEWORKS[self.name].title} ({package} {number})"}

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        """Fill a conversation in the framework's fastest way."""
        asked = {"do": "fill", "conversation": conversation, "file": str(talk.file), "count": count}
        return float(self._ask(asked)["seconds"])

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        """Play a turn, timed in the framework's process."""
        asked = {"do": "turn", "conversation": conversation, "user": user, "assistant": assistant}
        found = self._ask(asked)
        rest = [(role, text) for role, text in found["rest"]]
        return {self.name: Turn(seconds=found["seconds"], cpu=found["cpu"], common=found["common"], rest=rest)}

    def size(self) -> int:
        """The size of the database, which only this framework uses."""
        return self._database.size()

    def settle(self) -> None:
        """Do now what its database does by itself after a while."""
        self._database.settle()

    def _ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._asking.write(json.dumps(asked) + "\n")
        self._asking.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            log_end = self._log.read_text(errors="replace")[-_TAIL:]
            raise UnavailableError(f"{self.name} ended with status {self._process.wait()}: {log_end}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    return process.stdin, process.stdout


@contextlib.contextmanager
def framework(name: str, database: Database, folder: Path) -> Iterator[Framework]:
    """Run a framework with a database of its own. Raises ``UnavailableError``."""
    argv = [str(python_of(name)), "-m", f"bench.peers.children.{FRAMEWORKS[name].module}"]
    env = {**os.environ, "DATABASE_URL": database.url, "PYTHONPATH": str(ROOT), "OTEL_SDK_DISABLED": "true"}
    log = folder / f"{name}.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield Framework(name, process, log, database)
        finally:
            _pipes(process)[0].close()
            process.wait(30)
