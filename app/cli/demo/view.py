"""What the demo shows, whoever looks: a terminal, or a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rich.console import Console

from app.cli.demo.client import Compaction, Gauge, Turn
from app.cli.demo.script import Scene

PARTS: Final = ("system", "state", "anchors", "digests", "held", "tail")
"""The parts of a context, from stable to volatile."""
FIELDS: Final = {
    "logos": "facts, decisions, exact values",
    "pathos": "tone and preferences",
    "abstract": "known to both",
    "conversation_summary": "what happened",
}
"""The fields of the state, in words."""
WHERE: Final = {
    "worker": "in the worker",
    "turn": "inside the turn",
    "request": "in the request",
    "sweeper": "in the sweeper",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A message was written, and this is how full the context is now."""

    number: int
    total: int
    role: str
    content: str
    model: str
    """Of a reply that was made while the demo ran; empty for what was imported."""
    gauge: Gauge
    written: int
    """Tokens of the whole history so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where the demo plays."""

    url: str
    conversation_id: str
    messages: int
    gauge: Gauge
    context_window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What it came to."""

    facts: Sequence[tuple[str, str]]
    compactions: Sequence[tuple[str, int, int]]
    """Trigger, how often, tokens taken out of the context by it."""
    next_steps: Sequence[tuple[str, str]]
    """What a command does, and the command."""


class View(Protocol):
    """One way of showing. Everything is text that was written by the demo or came from the service."""

    def open(self, opening: Opening) -> None:
        """Say what is going to happen."""

    def act(self, number: int, title: str, words: str) -> None:
        """Begin an act."""

    def scene(self, scene: Scene) -> None:
        """Begin a sitting of the conversation."""

    def message(self, progress: Progress) -> None:
        """Show a message and the gauge after it."""

    def event(self, kind: str, compaction: Compaction) -> None:
        """Show an event that arrived."""

    def wait(self, words: str) -> None:
        """Say what is being waited for."""

    def overflow(self, before: Gauge, added: int) -> None:
        """Show what a message that is about to be sent does to the gauge."""

    def compacted(self, compaction: Compaction, after: Gauge) -> None:
        """Show one compaction in full: before, after, what it covered."""

    def answer(self, question: str, turn: Turn) -> None:
        """Show a question and what came back."""

    def state(self, version: int, state: Mapping[str, Any]) -> None:
        """Show the state."""

    def context(self, sections: Sequence[tuple[str, int, str]], *, sent: int, full: int) -> None:
        """Show what a model is sent (kind, tokens, words), beside the tokens of the whole history."""

    def note(self, words: str) -> None:
        """Say something that was found out."""

    def close(self, closing: Closing) -> None:
        """Say what it came to."""

    def pause(self, seconds: float) -> None:
        """Let people read."""

    def finish(self) -> None:
        """Leave the terminal as it was found, also in the middle of an act."""


def choose_view(*, fast: bool) -> View:
    """The view that fits where the output goes."""
    from app.cli.demo.plain import PlainView  # noqa: PLC0415 - both build on this module
    from app.cli.demo.terminal import TerminalView  # noqa: PLC0415 - the same

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    return TerminalView(console, fast=fast) if console.is_terminal and not console.is_dumb_terminal else PlainView()


def percent(share: float) -> str:
    """A share in whole percent, rounded down as the thresholds are."""
    return f"{int(share * 100)} %"


def saved(compaction: Compaction) -> int:
    """Tokens that a compaction took out of the context."""
    return compaction.tokens_before - compaction.tokens_after


def event_words(kind: str, compaction: Compaction) -> str:
    """One event in a line."""
    where = WHERE.get(compaction.ran_in, compaction.ran_in)
    if kind != "applied":
        reason = f" ({compaction.reason})" if compaction.reason else ""
        return f"compaction.{kind} · {compaction.trigger}, {where}{reason}"
    change = f"{compaction.tokens_before:,} → {compaction.tokens_after:,} tokens"
    return (
        f"compaction.applied · {compaction.trigger}, {where}: {change}, {compaction.messages_covered} messages folded"
    )


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())
