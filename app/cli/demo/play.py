"""Plays the demo in six acts: one conversation, shown as in ``throughline chat``, and what must happen in each act."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final

from app.cli.chat import PROMPT, Session
from app.cli.complaints import ComplaintError
from app.cli.connecting import open_client
from app.cli.demo.story import Line, Story, load_story
from app.cli.gauge_line import gauge_parts, show_gauge
from app.cli.notices import Notices
from app.cli.screen import DIM, Screen, one_line
from app.cli.showing import compaction_words, show_context, show_state
from app.client import Compaction, Gauge, Message, Throughline
from app.core.model.model_io import OFFLINE

PATIENCE_SECONDS: Final = 30.0
"""How many seconds the worker may take to begin. After that the demo assumes that there is no worker."""

_MODEL_SECONDS: Final = 90.0  # a provider's model takes some ten to write a state, and a refused one is requested again
_POLL_SECONDS: Final = 0.2
_MESSAGE_SECONDS: Final = 0.06
_READING_SECONDS: Final = 2.0
_MESSAGES_PER_GAUGE_LINE: Final = 10  # messages between two lines of the gauge, if no terminal shows it all the time
_PAGE_SIZE: Final = 100


def play(url: str, key: str | None, screen: Screen, *, fast: bool = False, patience: float = PATIENCE_SECONDS) -> None:
    """Play the demo from the first to the last act.

    With ``fast``, and outside a terminal, there are no pauses. ``patience`` is the number of seconds for the worker to
    begin.

    Raises:
        ComplaintError: Something expected did not happen.
        ThroughlineError: The service refused a request, or does not answer.
    """
    story = load_story()
    policy = {"context_window": story.context_window}
    with open_client(url, key) as client:
        talk = client.create_conversation(title=story.title, system_prompt=story.system_prompt, policy=policy)
        notices = Notices(talk, lambda: open_client(url, key))
        session = Session(client, talk, screen, notices)
        session.is_interactive = False
        screen.line(("Throughline demo", "bold"), f": {len(story.messages)} messages against {url}")
        session.open(is_new=True)
        notices.listen(0)
        has_pauses = screen.is_terminal and not fast
        _Play(client, str(talk.id), session, screen, story, patience, has_pauses, talk.context).run()


@dataclass(slots=True)
class _Play:
    client: Throughline
    id: str
    session: Session
    screen: Screen
    story: Story
    patience: float
    has_pauses: bool
    gauge: Gauge
    has_compacted: bool = False
    written: list[str] = field(default_factory=list)

    def run(self) -> None:
        self._play_conversation()
        self._compact()
        self._show_state()
        self._ask_about_the_beginning()
        self._check_nothing_is_lost()

    # Acts 1 to 3

    def _play_conversation(self) -> None:
        self._begin_act(1)
        self._print_and_pause(
            f"A window of {self.story.context_window:,} tokens leaves a budget of {self.gauge.budget:,}: the worker "
            f"compacts at {self.gauge.background_at or 0:,} (70 %), the turn at {self.gauge.sync_at or 0:,} (85 %)."
        )
        for scene in self.story.scenes:
            self.screen.line((f"── {scene.at:%-d %B %Y} · {scene.title}", "bold"))
            for manner, lines in groupby(self.story.lines_of(scene), key=lambda line: line.manner):
                if manner == "imported":
                    self._append_imported(lines)
                else:
                    for line in lines:
                        self._ask(line.content) if manner == "asked" else self._ask_with_long_text(line.content)
        self._settle()

    def _append_imported(self, lines: Iterable[Line]) -> None:
        with self.screen.status() as show:
            for line in lines:
                seq = self.client.append(self.id, line.role, line.content, created_at=line.created_at).seq
                self.written.append(line.content)
                before, self.gauge = self.gauge.tokens, self.client.usage(self.id)
                shown = (f"{seq:>4}/{self.story.length} messages  ", *gauge_parts(self.screen, self.gauge))
                if self.screen.is_terminal:
                    speaker = ("Ines       ", "cyan") if line.role == "user" else ("assistant  ", "green")
                    self.screen.row(speaker, one_line(line.content))
                    show(*shown)
                elif seq % _MESSAGES_PER_GAUGE_LINE == 0:
                    self.screen.line(*shown)
                self.session.show_notices()
                # The worker may have ended before the gauge was read.
                if _is_due(self.gauge) or self.gauge.tokens < before:
                    self._wait_for_worker()
                self._pause(_MESSAGE_SECONDS)

    def _wait_for_worker(self) -> None:
        # On a slow machine, too, each compaction must find the same messages.
        if self.has_compacted:
            self._settle()
            return
        self.has_compacted = True
        self.screen.line("70 % reached: waiting for the worker …")
        self._settle()
        self._begin_act(2)
        self._show_compaction(self._require_applied(trigger="background"))

    def _ask_with_long_text(self, content: str) -> None:
        self._settle()
        self._begin_act(3)
        before, added = self.gauge, self.client.count_tokens(content).tokens
        share = int((before.tokens + added) / before.budget * 100)
        self._print_and_pause(f"{before.tokens:,} tokens + {added:,} of this message: {share} % of the budget.")
        self._ask(content, shown=f"{content.splitlines()[0]} … (the agreement, {added:,} tokens)")
        if (ran_in := self._require_applied(trigger="sync").ran_in) != "turn":
            raise ComplaintError(f"The long message was compacted in the {ran_in}, not inside its turn.")

    def _ask(self, content: str, *, shown: str = "") -> None:
        self.screen.line()
        self.screen.line((PROMPT, "bold cyan"), shown or content)
        self.session.follow(content)
        self.written.append(content)
        self.gauge = self.client.usage(self.id)
        self._pause(_READING_SECONDS)

    # Acts 4 to 6

    def _compact(self) -> None:
        self._begin_act(4)
        self.client.compact(self.id)
        self._show_compaction(self._require_applied(trigger="manual"))

    def _show_state(self) -> None:
        self._begin_act(5)
        version = next(self.client.states(self.id, order="desc", page_size=1), None)
        if version is None or not any(version.state.values()):
            raise ComplaintError("The conversation has no state, although it was compacted.")
        show_state(self.screen, version)
        self._pause(_READING_SECONDS)
        self.screen.line()
        context = self.client.look_at_context(self.id)
        if not any(message["content"] == self.written[0] for message in context.messages):
            raise ComplaintError("The first message is not in the context, although it is held.")
        show_context(self.screen, context)
        whole = context.gauge.breakdown.system + sum(message.token_count for message in self._history())
        self._print_and_pause(f"Without compaction every turn would cost {whole:,} tokens.")

    def _ask_about_the_beginning(self) -> None:
        self._begin_act(6)
        for question in self.story.questions:
            self._ask(question)

    def _check_nothing_is_lost(self) -> None:
        """Check that nothing is lost: the history has every message that was written."""
        history = self._history()
        self.screen.line()
        if history[-1].model == OFFLINE:
            self._print_and_pause(self.story.offline_note)
        if [message.content for message in history if message.model is None] != self.written:
            raise ComplaintError(f"GET …/messages has not the {len(self.written)} messages that were written.")
        self._print_and_pause(f"GET …/messages: all {len(history)} messages are there, every one as it was written.")
        self.screen.line()
        self.screen.line(("What it came to", "bold"))
        applied = [row for row in self._newest_compactions() if row.status == "applied"]
        for name, value in figures(history, applied, self.gauge.tokens):
            self.screen.line((f"   {name:<36}", DIM), value)

    # Events during a turn, and how they are shown

    def _settle(self) -> None:
        """Wait until no compaction is due and none runs."""
        begin = time.monotonic()
        while True:
            time.sleep(_POLL_SECONDS)
            statuses = [row.status for row in self._newest_compactions()]
            self.gauge = self.client.usage(self.id)
            self.session.show_notices()
            if not _is_due(self.gauge) and not {"queued", "running"} & {*statuses}:
                return
            seconds, done = (_MODEL_SECONDS, "finished") if "running" in statuses else (self.patience, "started")
            if time.monotonic() - begin > seconds:
                raise ComplaintError(
                    f"A compaction is due, but within {seconds:g} seconds the worker {done} none; is it running, and "
                    f"does it share Redis and Postgres with the service? The newest one: {', '.join(statuses[:1])}."
                )

    def _require_applied(self, *, trigger: str) -> Compaction:
        """The newest compaction by a trigger. Raises ``ComplaintError`` if it was not applied."""
        row = next((row for row in self._newest_compactions() if row.trigger == trigger), None)
        if row is None or row.status != "applied":
            why = f": {compaction_words(row, self.screen.catalogue)}" if row else ""
            raise ComplaintError(f"No compaction by {trigger} was applied{why}.")
        return row

    def _newest_compactions(self) -> list[Compaction]:
        return list(islice(self.client.compactions(self.id, order="desc", page_size=_PAGE_SIZE), _PAGE_SIZE))

    def _history(self) -> list[Message]:
        return list(self.client.messages(self.id, order="asc", page_size=_PAGE_SIZE))

    def _show_compaction(self, row: Compaction) -> None:
        self.session.show_notices()
        self.screen.line((compaction_words(row, self.screen.catalogue), "green"))
        show_gauge(self.screen, self.client.usage(self.id))
        self._pause(_READING_SECONDS)

    def _begin_act(self, number: int) -> None:
        act = self.story.acts[number - 1]
        self.screen.line()
        self.screen.line((f"{number}. {act.title}", "bold cyan"))
        self._print_and_pause(act.words)

    def _print_and_pause(self, words: str) -> None:
        self.screen.line(words)
        self._pause(_READING_SECONDS)

    def _pause(self, seconds: float) -> None:
        if self.has_pauses:
            time.sleep(seconds)


def figures(history: Sequence[Message], applied: Sequence[Compaction], tokens: int) -> Iterator[tuple[str, str]]:
    """The results of a conversation, as names and values.

    ``history`` is every message, in order; ``applied`` are the compactions that took effect, the newest first.
    """
    written = sent = whole = turns = 0
    for message in history:
        if message.model is not None:
            turns, whole = turns + 1, whole + written
            sent += int((message.usage or {}).get("input_tokens", 0))
        written += message.token_count
    yield "messages in the history", f"{len(history)}, unchanged"
    yield "tokens ever written", f"{written:,}"
    yield "fullest context, before compaction", f"{max(row.tokens_before or 0 for row in applied):,} tokens"
    yield "context now", f"{tokens:,} tokens"
    yield f"sent in the {turns} turns answered now", f"{sent:,} tokens, instead of {whole:,}"
    for trigger in dict.fromkeys(row.trigger for row in reversed(applied)):
        freed = [(row.tokens_before or 0) - (row.tokens_after or 0) for row in applied if row.trigger == trigger]
        yield f"compactions by {trigger}", f"{len(freed)}, {sum(freed):,} tokens taken out of the context"


def _is_due(gauge: Gauge) -> bool:
    return gauge.tokens >= (gauge.background_at or gauge.budget)
