"""``throughline chat``: talk in the terminal, and see what happens to the context."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Annotated, Any, Final

import typer

from app.cli.chat_commands import run_command
from app.cli.complaints import ComplaintError, errors_as_one_line, words_of
from app.cli.connecting import Key, Url, conversation_id, find_service, open_client
from app.cli.gauge_line import show_gauge
from app.cli.notices import Notices
from app.cli.screen import DIM, Screen, one_line
from app.cli.showing import ranges_of, warning_words
from app.cli.terminal_language import own_language, text_of
from app.client import ApiError, ChatEvent, ChatResult, ConflictError, Conversation, Throughline, ThroughlineError
from app.core.text.localization.catalogue import Catalogue, catalogue_of

EXIT_FAILED: Final = 1
"""The exit code if a line of a script was not answered."""
COMPACT: Final = "/compact"
BUSY_SECONDS: Final = 30.0
"""How many seconds a message waits for the end of a turn that another client began or that was interrupted."""
PROMPT: Final = "› "

_RETRY_SECONDS: Final = 0.25


def chat(
    conversation: Annotated[
        str | None, typer.Argument(help="Its id, or `last`; unset: a new one.", metavar="[ID]")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="How it is compacted: `semantic`, `handoff` …")] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt.")] = None,
    title: Annotated[str | None, typer.Option(help="A title.")] = None,
    locale: Annotated[str | None, typer.Option(help="The language, such as `ru`; unset: the terminal's.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Context window of a new conversation in tokens.")] = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Chat; lines from a pipe are answered one after the other."""
    asked = {"preset": preset, "system_prompt": system, "title": title, "locale": locale}
    fields: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    with errors_as_one_line():
        address = find_service(url)
    # No language is requested: a chat uses the language of its conversation.
    with errors_as_one_line(), open_client(address, key) as client:
        talk = _conversation_to_chat_in(client, conversation, fields, window)
        notices = Notices(talk, lambda: open_client(address, key))
        session = Session(client, talk, Screen(catalogue_of(talk.locale)), notices)
        session.open(is_new=conversation is None)
        session.run(_lines(session.screen))
    if session.failures and not session.is_interactive:
        raise typer.Exit(EXIT_FAILED)


def _conversation_to_chat_in(
    client: Throughline, given: str | None, fields: dict[str, Any], window: int | None
) -> Conversation:
    if given is None:
        fields = {"locale": own_language(), **fields} if own_language() else fields
        if window is not None:
            fields = {**fields, "policy": {"context_window": window}}
        return client.create_conversation(**fields)
    if window is not None:
        raise ComplaintError(text_of("complaint.window"))
    id_ = conversation_id(client, given)
    return client.change_conversation(id_, **fields) if fields else client.conversation(id_)


class Session:
    """One chat: lines in, replies out."""

    def __init__(self, client: Throughline, talk: Conversation, screen: Screen, notices: Notices) -> None:
        self._client = client
        self._talk = talk
        self._notices = notices
        self.screen = screen
        self.failures = 0
        self._unanswered = False
        self.is_interactive = screen.is_terminal and sys.stdin.isatty()

    @property
    def _say(self) -> Catalogue:
        return self.screen.catalogue

    @property
    def _conversation_id(self) -> str:
        return str(self._talk.id)

    def open(self, *, is_new: bool) -> None:
        """Print which conversation this is."""
        title = f" · {one_line(self._talk.title)}" if self._talk.title else ""
        head = f"{self._say.text('cli.conversation')} "
        self.screen.line((head, DIM), self._conversation_id, (f" · {self._talk.preset}{title}", DIM))
        if not is_new:
            self._show_last_exchange()
        show_gauge(self.screen, self._talk.context)
        if self.is_interactive:
            self.screen.line((self._say.text("cli.welcome"), DIM))

    def run(self, lines: Iterator[str]) -> None:
        """Answer each line, until the input ends or a line asks to quit."""
        for line in lines:
            self.show_notices()
            text = line.rstrip("\n")
            if not self.is_interactive:
                self.screen.line((PROMPT, DIM), text)
            if text.startswith("/") and text.split()[0] != COMPACT:
                if not self._goes_on_after_command(text):
                    return
            elif text.strip():
                self._turn(text)
            elif self._unanswered and self.is_interactive:
                self._turn(None)
        self.show_notices()

    def _goes_on_after_command(self, text: str) -> bool:
        try:
            return run_command(text, self._client, self._conversation_id, self.screen)
        except (ThroughlineError, ComplaintError) as error:
            self._complain(error)
            return True

    def _turn(self, text: str | None) -> None:
        """Run one turn. An interrupt stops the reply, but not the chat."""
        over = threading.Event()
        try:
            with _on_interrupt(lambda: self._interrupt_until_stopped(over)):
                self.follow(text)
        except KeyboardInterrupt:
            self.screen.line()
            self.screen.line((self._say.text("cli.not_listening"), "yellow"))
        except (ThroughlineError, ComplaintError) as error:
            self._unanswered = isinstance(error, ApiError) and "message_id" in error.problem
            self._complain(error)
            if self._unanswered and self.is_interactive:
                self.screen.line((self._say.text("cli.kept"), DIM))
        finally:
            over.set()

    def follow(self, text: str | None) -> None:
        """Run one turn: show the reply as it comes, and what happened. The caller handles errors."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._show(self._client.chat_stream(self._conversation_id, text, utc_offset=_utc_offset()))
            except ConflictError as error:
                if error.code != "turn_in_progress" or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _show(self, events: Iterator[ChatEvent]) -> None:
        written, writes = "", False
        for event in events:
            if event.id is not None:
                self._notices.listen(event.id)
            if event.text:
                written, writes = written + event.text, True
                self.screen.piece(event.text)
            elif words := self._notices.words(event.type, event.data):
                if writes:
                    self.screen.line()
                    writes = False
                self.screen.line((f"· {words}", "cyan"))
            if event.result is not None:
                if writes:
                    self.screen.line()
                if written != event.result.reply.content:  # the reply came at once, or differs from the pieces
                    self.screen.line(event.result.reply.content)
                self._show_below_reply(event.type, event.result)

    def _show_below_reply(self, type_: str, result: ChatResult) -> None:
        self._unanswered = False
        if type_ == "reply.interrupted" or result.reply.status == "interrupted":
            self.screen.line((self._say.text("cli.interrupted"), "yellow"))
        self.show_notices()
        if seqs := [seq for one in result.recalled for seq in one.seqs]:
            self.screen.line((self._say.text("cli.recalled", seqs=ranges_of(seqs)), DIM))
        for warning in result.warnings:
            self.screen.line((f"{self._say.text('cli.warning')}: ", "yellow"), warning_words(warning, self._say))
        show_gauge(self.screen, result.context)

    def _interrupt_until_stopped(self, over: threading.Event) -> None:
        with contextlib.suppress(ThroughlineError):
            while not over.is_set() and not self._client.interrupt(self._conversation_id).interrupted:
                over.wait(_RETRY_SECONDS)

    def _show_last_exchange(self) -> None:
        last: list[Any] = []
        for message in self._client.messages(self._conversation_id, order="desc", page_size=2):
            last.insert(0, message)
            if len(last) == 2:  # noqa: PLR2004 - a question and its answer
                break
        for message in last:
            mark = PROMPT if message.role == "user" else ""
            self.screen.line((f"{mark}{message.content}", DIM))
        self._unanswered = bool(last) and last[-1].role == "user"

    def show_notices(self) -> None:
        """Show what was heard of compactions since the last call."""
        for words in self._notices.waiting():
            self.screen.line((f"· {words}", "cyan"))

    def _complain(self, error: Exception) -> None:
        self.failures += 1
        self.screen.line((" ".join(words_of(error, self._say).split()), "red"))


def _utc_offset() -> int:
    """The minutes from UTC to the clock of this terminal now: its day is the day of the message."""
    offset = datetime.now(UTC).astimezone().utcoffset() or timedelta(0)
    return offset // timedelta(minutes=1)


def _lines(screen: Screen) -> Iterator[str]:
    """The lines that are typed, until Ctrl-D, or the lines of a pipe."""
    if not (screen.is_terminal and sys.stdin.isatty()):
        yield from sys.stdin or ()
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - its import gives input() a history and editing
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            screen.line()
            return
        except KeyboardInterrupt:
            screen.line()
            screen.line((screen.catalogue.text("cli.goodbye"), DIM))


@contextlib.contextmanager
def _on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Run ``act`` on the first Ctrl-C, while the block goes on. The second Ctrl-C is an ordinary one."""

    def first(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=act, name="interrupt", daemon=True).start()

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
