"""The protocol of a framework's process and the bench: requests and answers, one JSON object per line.

``{"do": "fill", "conversation", "file", "count"}`` makes a conversation of the first ``count`` lines of a file of
``[role, text]`` and is answered by ``{"seconds"}``. ``{"do": "turn", "conversation", "user", "assistant"}`` plays a
turn and is answered by ``{"seconds", "cpu", "common", "rest"}``: the wall and CPU time, and the prompt that the model
would have got, as the number of messages at its beginning that the last prompt also had, and all others as
``[role, text]``.

It uses only the standard library: it runs in environments without the packages of this project.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TextIO

SpokenMessage = tuple[str, str]
"""A message as its role and its text."""


class Framework(Protocol):
    """A framework's memory in the database of ``DATABASE_URL``."""

    async def fill(self, conversation: str, messages: Sequence[SpokenMessage]) -> None:
        """Make a conversation of these messages, as fast as the framework can."""

    async def turn(self, conversation: str, user: str, assistant: str) -> Any:
        """Store the user's message, load the model's input, store the reply; return the input, in any form."""

    def prompt(self, sent: Any) -> list[SpokenMessage]:
        """The roles and texts of what would be sent."""


def common(before: Sequence[SpokenMessage], now: Sequence[SpokenMessage]) -> int:
    """How many messages at the beginning both have."""
    pairs = zip(before, now, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def database_url(driver: str) -> str:
    """The address of the database for that driver."""
    return f"{driver}://{os.environ['DATABASE_URL'].partition('://')[2]}"


class _Served:
    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._prompts: dict[str, list[SpokenMessage]] = {}

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["do"] == "fill":
            return await self._fill(asked["conversation"], asked["file"], asked["count"])
        return await self._turn(asked["conversation"], asked["user"], asked["assistant"])

    async def _fill(self, conversation: str, file: str, count: int) -> dict[str, Any]:
        messages = await asyncio.to_thread(_read, Path(file), count)
        began = time.perf_counter()
        await self._framework.fill(conversation, messages)
        return {"seconds": time.perf_counter() - began}

    async def _turn(self, conversation: str, user: str, assistant: str) -> dict[str, Any]:
        cpu, began = time.process_time(), time.perf_counter()
        sent = await self._framework.turn(conversation, user, assistant)
        took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
        prompt = self._framework.prompt(sent)
        same = common(self._prompts.get(conversation, []), prompt)
        self._prompts[conversation] = prompt
        return {**took, "common": same, "rest": prompt[same:]}


def _read(file: Path, count: int) -> list[SpokenMessage]:
    with file.open(encoding="utf-8") as lines:
        return [(role, text) for role, text in map(json.loads, itertools.islice(lines, count))]


async def serve(framework: Framework, packages: Sequence[str]) -> None:
    """Answer until the input ends; the first line names the versions of these packages."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mixed with answers
    served = _Served(framework)
    _say(answers, {"versions": {name: version(name) for name in packages}})
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(answers, await served.answer(json.loads(line)))


def _say(answers: TextIO, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value, ensure_ascii=False) + "\n")
    answers.flush()
