"""What a peer is to the rounds, and what a turn of it gave."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from bench.peers.children.protocol import Said
from bench.scale import contents

SEED: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn: how long it took, and what a model would have been sent in it."""

    seconds: float
    cpu: float
    """Seconds of the processor, of every process but the database and the workers in the background."""
    common: int
    """Messages that the prompt before began with as well."""
    rest: Sequence[Said]
    """All messages of the prompt after those."""


class Peer(Protocol):
    """Somebody who keeps conversations."""

    @property
    def name(self) -> str:
        """One word."""

    @property
    def folds(self) -> bool:
        """Whether something is folded, or dropped, each few turns."""

    @property
    def rows(self) -> Mapping[str, str]:
        """By the name of each row, its title: a peer can load in more than one way."""

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        """Make a conversation of the talk's first messages; the seconds that it took."""

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        """Play a turn; what each row gave."""

    def size(self) -> int:
        """Bytes of its database."""

    def settle(self) -> None:
        """Do now what its database does by itself after a while."""


class Talk:
    """One talk for all, and a file that has it: a longer one begins with the shorter one."""

    def __init__(self, messages: int, folder: Path) -> None:
        self.messages: list[Said] = list(said(messages))
        self.file = folder / "talk.jsonl"
        with self.file.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(message, ensure_ascii=False) + "\n" for message in self.messages)

    def turns(self, after: int) -> Iterator[tuple[str, str]]:
        """What user and assistant say after so many messages, turn by turn. Raises ``ValueError`` for half a turn."""
        if after % 2:
            raise ValueError(f"{after} messages end in the middle of a turn")
        for place in range(after, len(self.messages) - 1, 2):
            yield self.messages[place][1], self.messages[place + 1][1]


def said(messages: int) -> Iterator[Said]:
    """Roles and texts: user and assistant in turns."""
    return itertools.islice(contents(messages, SEED), messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Tokens of a prompt."""

    tokens: int
    cached: int
    """Of the longest beginning that the prompt before has too: what a provider's cache can have of it."""

    @property
    def fresh(self) -> int:
        """What the model has to read anew."""
        return self.tokens - self.cached


class Prompts:
    """The prompts of one conversation, one after the other, of which only the last is kept."""

    def __init__(self, weigh: Callable[[str, str], int]) -> None:
        self._weigh = weigh
        self._last: list[Said] = []
        self._sums = [0]  # tokens of the first so many messages

    def count(self, common: int, rest: Sequence[Said]) -> Counted:
        """The next prompt: the last one's first messages, then these."""
        cached = self._sums[common] + self._begun(common, rest)
        del self._last[common:], self._sums[common + 1 :]
        for role, text in rest:
            self._last.append((role, text))
            self._sums.append(self._sums[-1] + self._weigh(role, text))
        return Counted(tokens=self._sums[-1], cached=cached)

    def _begun(self, common: int, rest: Sequence[Said]) -> int:
        """Tokens of the beginning of the first other message, where it begins as the one that stood there."""
        if common == len(self._last) or not rest or self._last[common][0] != rest[0][0]:
            return 0
        role, text = self._last[common]
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text, rest[0][1], strict=False)))
        return self._weigh(role, text[:same]) if same else 0
