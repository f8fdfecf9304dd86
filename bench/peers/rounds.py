"""Plays the rounds: in each, every peer plays the talk's next turn; the order of the peers rotates."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.peers.played import Counted, Peer, Prompts, Talk, Turn


@dataclass(slots=True, kw_only=True)
class Row:
    """The results of one way to load a context, in conversations of one length."""

    title: str
    prompts: Prompts
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    grown: list[int] = field(default_factory=list)
    """The bytes by which the database grew, for each turn."""

    def add(self, turn: Turn, grown: int, *, timed: bool) -> None:
        """Add a turn."""
        self.counted.append(self.prompts.count(turn.common, turn.rest))
        self.grown.append(grown)
        if timed:
            self.seconds.append(turn.seconds)
            self.cpu.append(turn.cpu)

    @property
    def tokens(self) -> float:
        """The mean tokens of a turn's prompt, over all turns but the first, which has no prompt before it."""
        return statistics.fmean(each.tokens for each in self.counted[1:])

    @property
    def fresh(self) -> float:
        """The mean of those tokens that no cache can have."""
        return statistics.fmean(each.fresh for each in self.counted[1:])

    @property
    def stored(self) -> float:
        """The bytes that a turn adds to the database."""
        return statistics.fmean(self.grown[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All rows of conversations of one length."""

    messages: int
    rounds: int
    rows: Mapping[str, Row]
    filled: Mapping[str, float]
    """The seconds that filling took, by peer."""


def play(
    peers: Sequence[Peer], talk: Talk, messages: int, *, rounds: int, turns: int, weigh: Callable[[str, str], int]
) -> Played:
    """Fill a conversation of each peer, and play the rounds.

    Args:
        peers: The peers that take part.
        talk: The talk: it needs two more messages for each turn than the conversation is filled with.
        messages: How many messages the conversation is filled with.
        rounds: How many rounds count, after one that does not.
        turns: How many turns peers that fold play at least, so that tokens are a mean over several folds.
        weigh: Gives the tokens of a message, by role and text.
    """
    conversation = f"c{messages}"
    filled = {each.name: _filled(each, conversation, talk, messages) for each in peers}
    rows = {name: Row(title=title, prompts=Prompts(weigh)) for each in peers for name, title in each.rows.items()}
    for number, (user, assistant) in enumerate(talk.turns(messages)):
        if number > max(rounds, turns):
            break
        playing = [each for each in peers if number <= rounds or each.folds]
        first = number % max(len(playing), 1)
        for each in [*playing[first:], *playing[:first]]:
            before = each.size()
            found = each.turn(conversation, user, assistant)
            grown = each.size() - before
            for name, turn in found.items():
                rows[name].add(turn, grown, timed=0 < number <= rounds)
    return Played(messages=messages, rounds=rounds, rows=rows, filled=filled)


def _filled(peer: Peer, conversation: str, talk: Talk, messages: int) -> float:
    seconds = peer.fill(conversation, talk, messages)
    peer.settle()
    print(f"{peer.name}: {messages} messages in {seconds:.1f} s", file=sys.stderr)
    return round(seconds, 1)
