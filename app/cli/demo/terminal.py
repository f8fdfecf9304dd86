"""The demo in a terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.cli.demo.client import Compaction, Gauge, Turn
from app.cli.demo.gauge_bar import COLOURS, bar, legend, marks
from app.cli.demo.script import Scene
from app.cli.demo.view import FIELDS, WHERE, Closing, Opening, Progress, event_words, one_line, percent, saved

_WIDEST: Final = 110  # columns; longer lines are hard to read
_SPOKEN: Final = 4  # messages on the stage
_LINES: Final = 2  # of each
_EVENTS: Final = 4
_MESSAGE_SECONDS: Final = 0.09
_REPLY_SECONDS: Final = 1.2
_PANEL_SECONDS: Final = 2.5
_EVENT_STYLES: Final = {"applied": "green", "failed": "red"}


class TerminalView:
    """A stage with the newest messages, the gauge and the events; between the acts, panels that stay."""

    def __init__(self, console: Console, *, fast: bool) -> None:
        self._console = console
        self._fast = fast
        self._live: Live | None = None
        self._scene: Scene | None = None
        self._spoken: deque[tuple[str, str, str]] = deque(maxlen=_SPOKEN)
        self._events: deque[tuple[str, str]] = deque(maxlen=_EVENTS)
        self._progress: Progress | None = None
        self._waiting = ""
        self._shown_at = 0.0

    @property
    def _width(self) -> int:
        return min(self._console.width, _WIDEST)

    def open(self, opening: Opening) -> None:
        """Say what is going to happen."""
        gauge = opening.gauge
        words = Text.assemble(
            f"{opening.messages} messages about two evenings of film on a ferry quay, through HTTP, against ",
            (opening.url, "bold"),
            f".\nA window of {opening.context_window:,} tokens leaves a budget of {gauge.budget:,}; the worker "
            f"compacts at {gauge.background_at:,}, the turn itself at {gauge.sync_at:,}.\n",
            (f"conversation {opening.conversation_id}", "bright_black"),
        )
        self._print(Panel(words, title="[bold]Throughline[/] · demo", border_style="cyan", width=self._width))
        self.pause(2.0)

    def act(self, number: int, title: str, words: str) -> None:
        """Begin an act; of the one before, the gauge stays."""
        if self._live and self._progress:
            self.finish()
            self._print(Padding(self._gauge(self._progress, self._width - 4), (0, 4)))
        self._print(Text())
        self._print(Text.assemble((f" {number} ", "black on cyan"), (f" {title}", "bold")))
        self._print(Padding(Text(words, style="default"), (0, 4)))
        self.pause(1.0)

    def scene(self, scene: Scene) -> None:
        """Begin a sitting of the conversation."""
        self._scene = scene
        self._spoken.clear()

    def message(self, progress: Progress) -> None:
        """Show a message and the gauge after it."""
        speaker = "Ines" if progress.role == "user" else "assistant"
        self._spoken.append((speaker, progress.content, progress.model))
        self._progress = progress
        self._waiting = ""
        self._refresh()
        self._pace(_REPLY_SECONDS if progress.model else _MESSAGE_SECONDS)

    def event(self, kind: str, compaction: Compaction) -> None:
        """Show an event that arrived."""
        self._events.append((kind, _event_words(kind, compaction)))
        if self._live:
            self._refresh()
        else:
            self._print(Padding(self._event_line(kind, _event_words(kind, compaction)), (0, 4)))

    def wait(self, words: str) -> None:
        """Say what is being waited for."""
        self._waiting = words
        if self._live:
            self._refresh()
        else:
            self._print(Padding(Text(words, style="italic bright_black"), (0, 4)))

    def overflow(self, before: Gauge, added: int) -> None:
        """Show what a message that is about to be sent does to the gauge."""
        width = self._width - 8
        words = Text(f"now {before.tokens:,} tokens; this message has {added:,} more:")
        self._print(Padding(Group(bar(before, width), words, bar(before, width, pending=added)), (0, 4)))
        self.pause(2.0)

    def compacted(self, compaction: Compaction, after: Gauge) -> None:
        """Show one compaction in full: before, after, what it covered."""
        table = Table.grid(padding=(0, 2))
        widest = max(self._width - 30, 20)
        for name, tokens, style in (
            ("before", compaction.tokens_before, "yellow"),
            ("after", compaction.tokens_after, "green"),
        ):
            length = max(round(tokens / max(compaction.tokens_before, 1) * widest), 1)
            table.add_row(Text(name, "bright_black"), Text("█" * length, style), Text(f"{tokens:,}", "bold"))
        parts: list[RenderableType] = [table, Text(), Text(_told(compaction)), legend(after)]
        if compaction.summary:
            parts += [Text(), Text(compaction.summary, style="bright_black")]
        self._panel(Group(*parts), f"compaction · {compaction.trigger}", "green")
        self.pause(_PANEL_SECONDS)

    def answer(self, question: str, turn: Turn) -> None:
        """Show a question and what came back."""
        self._panel(
            Group(Text.assemble(("Ines  ", "bold cyan"), question), Text(), Text(turn.reply)),
            f"answered by {turn.model}, which was sent {turn.input_tokens:,} tokens",
            "cyan",
        )
        self.pause(_PANEL_SECONDS)

    def state(self, version: int, state: Mapping[str, Any]) -> None:
        """Show the state."""
        parts: list[RenderableType] = []
        for field, value in state.items():
            texts: list[str] = [value] if isinstance(value, str) else value
            parts.append(Text.assemble((field, "bold magenta"), (f"  {FIELDS.get(field, '')}", "bright_black")))
            parts += [_item(text) for text in texts or ["(nothing)"]]
        self._panel(Group(*parts), f"compressed_state · version {version}", "magenta")
        self.pause(_PANEL_SECONDS)

    def context(self, sections: Sequence[tuple[str, int, str]], *, sent: int, full: int) -> None:
        """Show what a model is sent."""
        table = Table.grid(padding=(0, 2))
        widest = max(self._width - 60, 10)
        for kind, tokens, words in sections:
            length = max(round(tokens / full * widest), 1)
            style = COLOURS.get(kind, "green")
            table.add_row(Text(kind, style), Text(f"{tokens:,}", justify="right"), Text("█" * length, style), words)
        table.add_row(Text("sent", "bold"), Text(f"{sent:,}", "bold", justify="right"), "", "tokens altogether")
        table.add_row(
            Text("history", "red"),
            Text(f"{full:,}", justify="right"),
            Text("█" * widest, "red"),
            "what a turn would cost",
        )
        self._panel(table, "what a model is sent now", "cyan")
        self.pause(_PANEL_SECONDS)

    def note(self, words: str) -> None:
        """Say something that was found out."""
        self._print(Padding(Text(words, style="default"), (0, 4)))
        self.pause(1.0)

    def close(self, closing: Closing) -> None:
        """Say what it came to."""
        self.finish()
        table = Table.grid(padding=(0, 3))
        for name, value in closing.facts:
            table.add_row(Text(name, "bright_black"), Text(value, "bold"))
        for trigger, times, tokens in closing.compactions:
            told = Text.assemble((str(times), "bold"), f"  took {tokens:,} tokens out of the context")
            table.add_row(Text(f"compactions by {trigger}", "bright_black"), told)
        self._print(Text())
        self._panel(table, "what it came to", "green")
        self._print(Text("\nTry next", style="bold"))
        for words, command in closing.next_steps:
            self._print(Text(f"  {words}"))
            # Without wrapping by us, so that it can be copied.
            self._console.print(Text(f"    {command}", style="cyan"), soft_wrap=True)

    def pause(self, seconds: float) -> None:
        """Let people read."""
        if not self._fast:
            time.sleep(seconds)

    def _pace(self, seconds: float) -> None:
        """Hold a message up for so long, of which the calls since the one before have taken a part."""
        self.pause(max(seconds - (time.monotonic() - self._shown_at), 0.0) if self._shown_at else seconds)
        self._shown_at = time.monotonic()

    def finish(self) -> None:
        """Take the stage away; the panels before it stay."""
        if self._live:
            self._live.stop()
            self._live = None

    def _refresh(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._stage(), refresh=True)

    def _stage(self) -> RenderableType:
        if self._progress is None:
            return Text(self._waiting)
        progress, width = self._progress, self._width
        events = list(self._events) or [("", "no compaction yet")]
        # Always as many lines, so that nothing jumps.
        events += [(" ", "")] * (_EVENTS - len(events))
        return Group(
            self._dialogue(width),
            Padding(self._gauge(progress, width), (0, 2)),
            Text(),
            *(Padding(self._event_line(kind, words), (0, 2)) for kind, words in events),
            Text(),
            Padding(self._footer(progress), (0, 2)),
        )

    @staticmethod
    def _gauge(progress: Progress, width: int) -> Group:
        gauge = progress.gauge
        return Group(bar(gauge, width - 4), marks(gauge, width - 4), legend(gauge))

    def _dialogue(self, width: int) -> Panel:
        inner = width - 4
        lines: list[Text] = []
        for speaker, content, model in self._spoken:
            style = "bold cyan" if speaker == "Ines" else "bold green"
            head = Text.assemble((f"{speaker}{f' ({model})' if model else ''}  ", style), one_line(content))
            wrapped = head.wrap(self._console, inner)
            shown = list(wrapped[:_LINES])
            if len(wrapped) > _LINES:
                shown[-1].truncate(inner - 1)
                shown[-1].append("…")
            lines += shown
        title = f"{self._scene.at:%-d %B %Y} · {self._scene.title}" if self._scene else ""
        body = Group(*lines) if lines else Text()
        return Panel(
            body, title=title, title_align="left", border_style="bright_black", width=width, height=_SPOKEN * _LINES + 2
        )

    def _footer(self, progress: Progress) -> Text:
        done = f"message {progress.number} of {progress.total}"
        text = Text.assemble((done, "bold"), f"   ever written {progress.written:,} tokens")
        return text.append(f"   {self._waiting}", style="italic yellow") if self._waiting else text

    @staticmethod
    def _event_line(kind: str, words: str) -> Text:
        style = _EVENT_STYLES.get(kind, "bright_black")
        sign = {"": "○ ", " ": "  "}.get(kind, "● ")
        return Text.assemble((sign, style), (words, "default" if kind == "applied" else "bright_black"))

    def _panel(self, body: RenderableType, title: str, style: str) -> None:
        self.finish()
        self._print(Panel(body, title=title, title_align="left", border_style=style, width=self._width))

    def _print(self, what: RenderableType) -> None:
        self._console.print(what, width=self._width)


def _item(text: str) -> Table:
    """A list item whose further lines stand below its first."""
    row = Table.grid(padding=(0, 1))
    row.add_row("  ·", Text(text))
    return row


def _event_words(kind: str, compaction: Compaction) -> str:
    """An event within the width of the smallest terminal."""
    where = WHERE.get(compaction.ran_in, compaction.ran_in)
    if kind != "applied":
        return event_words(kind, compaction)
    change = f"{compaction.tokens_before:,} → {compaction.tokens_after:,} tokens"
    return f"{compaction.trigger}, {where} · {change} · {compaction.messages_covered} messages folded"


def _told(compaction: Compaction) -> str:
    share = percent(saved(compaction) / max(compaction.tokens_before, 1))
    took = f", in {compaction.duration_ms:,} ms" if compaction.duration_ms is not None else ""
    return f"{compaction.messages_covered} messages folded, {share} of the context freed{took}; the history stays whole"
