"""The demo as plain lines: for files, pipes and terminals that can do nothing else."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.cli.demo.client import Compaction, Gauge, Turn
from app.cli.demo.script import Scene
from app.cli.demo.view import FIELDS, PARTS, Closing, Opening, Progress, event_words, one_line, percent

_WIDTH: Final = 100
_EVERY: Final = 10  # messages between two lines of the gauge
_BAR: Final = 40


class PlainView:
    """Writes to stdout, one line after the other, without control codes and without pauses."""

    def open(self, opening: Opening) -> None:
        """Say what is going to happen."""
        gauge = opening.gauge
        self._line(f"Throughline demo: {opening.messages} messages against {opening.url}")
        self._line(f"conversation {opening.conversation_id}")
        self._line(
            f"context_window {opening.context_window:,}: budget {gauge.budget:,} tokens, the worker compacts at "
            f"{gauge.background_at:,} (70 %), the turn at {gauge.sync_at:,} (85 %)"
        )

    def act(self, number: int, title: str, words: str) -> None:
        """Begin an act."""
        self._line("")
        self._line(f"{number}. {title}")
        self._wrapped(words, indent="   ")

    def scene(self, scene: Scene) -> None:
        """Begin a sitting of the conversation."""
        self._line(f"   -- {scene.at:%-d %B %Y}: {scene.title}")

    def message(self, progress: Progress) -> None:
        """Show every tenth message, and every reply that was made now."""
        if progress.model:
            self._wrapped(f"{progress.model} replied: {one_line(progress.content)}", indent="      ")
        if progress.number % _EVERY == 0:
            self._line(f"   {progress.number:>4}/{progress.total} messages  {_gauge(progress.gauge)}")

    def event(self, kind: str, compaction: Compaction) -> None:
        """Show an event that arrived."""
        self._line(f"   event  {event_words(kind, compaction)}")

    def wait(self, words: str) -> None:
        """Say what is being waited for."""
        self._line(f"   {words}")

    def overflow(self, before: Gauge, added: int) -> None:
        """Show what a message that is about to be sent does to the gauge."""
        after = (before.tokens + added) / before.budget
        self._line(f"   {before.tokens:,} tokens + {added:,} of this message: {percent(after)} of the budget")

    def compacted(self, compaction: Compaction, after: Gauge) -> None:
        """Show one compaction in full."""
        covered = f"{compaction.messages_covered} messages folded, in {compaction.duration_ms or 0:,} ms"
        self._line(f"   before {compaction.tokens_before:,} tokens, after {compaction.tokens_after:,}: {covered}")
        self._line(f"   now    {_gauge(after)}")
        for line in compaction.summary.splitlines():
            self._wrapped(line, indent="      | ")

    def answer(self, question: str, turn: Turn) -> None:
        """Show a question and what came back."""
        self._wrapped(f"asked:   {one_line(question)}", indent="   ")
        for line in turn.reply.splitlines():
            self._wrapped(line, indent="      | ")

    def state(self, version: int, state: Mapping[str, Any]) -> None:
        """Show the state."""
        self._line(f"   compressed_state, version {version}")
        for field, value in state.items():
            self._line(f"   {field} ({FIELDS.get(field, '')})")
            for text in [value] if isinstance(value, str) else value or ["(nothing)"]:
                self._wrapped(f"- {text}", indent="      ")

    def context(self, sections: Sequence[tuple[str, int, str]], *, sent: int, full: int) -> None:
        """Show what a model is sent."""
        for kind, tokens, words in sections:
            self._line(f"   {kind:<8}{tokens:>7,} tokens  {words}")
        self._line(f"   {'sent':<8}{sent:>7,} tokens")
        self._line(f"   {'history':<8}{full:>7,} tokens  what every turn would cost without compaction")

    def note(self, words: str) -> None:
        """Say something that was found out."""
        self._wrapped(words, indent="   ")

    def close(self, closing: Closing) -> None:
        """Say what it came to."""
        self._line("")
        self._line("What it came to")
        for name, value in closing.facts:
            self._line(f"   {name:<36}{value}")
        for trigger, times, tokens in closing.compactions:
            self._line(f"   {f'compactions by {trigger}':<36}{times}, {tokens:,} tokens taken out of the context")
        self._line("")
        self._line("Try next")
        for words, command in closing.next_steps:
            self._line(f"   {words}:")
            self._line(f"      {command}")

    def pause(self, seconds: float) -> None:
        """Nobody reads along here."""

    def finish(self) -> None:
        """Nothing was changed that had to be put back."""

    def _wrapped(self, text: str, *, indent: str) -> None:
        for line in textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent) or [indent.rstrip()]:
            self._line(line)

    @staticmethod
    def _line(text: str) -> None:
        # Text of a model may hold anything; a log shall not.
        sys.stdout.write("".join(sign if sign.isprintable() else " " for sign in text) + "\n")
        sys.stdout.flush()


def _gauge(gauge: Gauge) -> str:
    filled = min(round(gauge.utilization * _BAR), _BAR)
    parts = ", ".join(f"{name} {gauge.breakdown[name]:,}" for name in PARTS if gauge.breakdown.get(name))
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {percent(gauge.utilization):>5}  {parts}"
