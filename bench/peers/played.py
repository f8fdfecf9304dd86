"""The interface of a peer, and the results of a turn."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from bench.peers.children.protocol import SpokenMessage
from bench.scale import contents

SEED: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn: its times, and the prompt that a model would have got."""

    seconds: float
    cpu: float
    """Seconds of CPU of all processes except the database and background workers."""
    common: int
    """How many messages at the beginning the prompt before also had."""
    rest: Sequence[SpokenMessage]
    """All messages of the prompt after those."""


class Peer(Protocol):
    """A program that stores conversations."""

    @property
    def name(self) -> str:
        """Its name, in one word."""

    @property
    def folds(self) -> bool:
        """Whether it folds or drops messages every few turns."""

    @property
    def rows(self) -> Mapping[str, str]:
        """The titles of its rows, by name: a peer can load a context in more than one way."""

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        """Make a conversation of the talk's first messages; return the seconds that it took."""

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        """Play a turn; return the result for each row."""

    def size(self) -> int:
        """The bytes of its database."""

    def settle(self) -> None:
        """Do now what its database does by itself after a while."""


class Talk:
    """One talk for all peers, also as a file: a longer talk begins with the shorter one."""

    def __init__(self, messages: int, folder: Path) -> None:
        self.messages: list[SpokenMessage] = list(spoken_messages(messages))
        self.file = folder / "talk.jsonl"
        with self.file.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(message, ensure_ascii=False) + "\n" for message in self.messages)

    def turns(self, after: int) -> Iterator[tuple[str, str]]:
        """The texts of user and assistant after so many messages, by turn. Raises ``ValueError`` within a turn."""
        if after % 2:
            raise ValueError(f"{after} messages end in the middle of a turn")
        for place in range(after, len(self.messages) - 1, 2):
            yield self.messages[place][1], self.messages[place + 1][1]


def spoken_messages(messages: int) -> Iterator[SpokenMessage]:
    """Roles and texts: user and assistant in turn."""
    return itertools.islice(contents(messages, SEED), messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The tokens of a prompt."""

    tokens: int
    cached: int
    """The tokens of the longest beginning that the prompt before also has: a provider's cache can have these."""

    @property
    def fresh(self) -> int:
        """The tokens that are not in the cache."""
        return self.tokens - self.cached


class Prompts:
    """Counts the prompts of one conversation, one after the other; only the last one is kept."""

    def __init__(self, weigh: Callable[[str, str], int]) -> None:
        self._weigh = weigh
        self._last: list[SpokenMessage] = []
        self._sums = [0]  # the tokens of the first n messages, by n

    def count(self, common: int, rest: Sequence[SpokenMessage]) -> Counted:
        """Count the next prompt: the first ``common`` messages of the last prompt, then ``rest``."""
        cached = self._sums[common] + self._begun(common, rest)
        del self._last[common:], self._sums[common + 1 :]
        for role, text in rest:
            self._last.append((role, text))
            self._sums.append(self._sums[-1] + self._weigh(role, text))
        return Counted(tokens=self._sums[-1], cached=cached)

    def _begun(self, common: int, rest: Sequence[SpokenMessage]) -> int:
        """Tokens that the first different message has in common with the one in its place, at its beginning."""
        if common == len(self._last) or not rest or self._last[common][0] != rest[0][0]:
            return 0
        role, text = self._last[common]
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text, rest[0][1], strict=False)))
        return self._weigh(role, text[:same]) if same else 0
