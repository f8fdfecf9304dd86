"""The flow of the demo: six acts over one conversation, and what must happen in each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from app.cli.demo import story
from app.cli.demo.client import Compaction, DemoError, Gauge, Throughline, Turn, Written
from app.cli.demo.listener import Listener
from app.cli.demo.script import CONTEXT_WINDOW, LINES, SCENES, SYSTEM_PROMPT, Line
from app.cli.demo.view import WHERE, Closing, Opening, Progress, View, saved

PATIENCE_SECONDS: Final = 30.0
"""How long the worker may take to begin; longer, and there is none."""
# A provider's model writes a state in some ten seconds, and a refused one is asked for again.
_MODEL_SECONDS: Final = 90.0
_TITLE: Final = "Lantern Nights (demo)"
_OFFLINE: Final = "offline"
_OFFLINE_NOTE: Final = (
    "The offline model only quotes what it is sent: the first message, which is always held word for word, the state "
    "and the tail. With GOOGLE_API_KEY set, a real model answers in its own words."
)


def play(service: Throughline, view: View, *, patience: float = PATIENCE_SECONDS, later: str | None = None) -> None:
    """Play it from the first to the last act.

    Args:
        service: Where; it answers.
        view: How it is shown.
        patience: Seconds for the worker to begin.
        later: Where a service over the same data will be, when this one ends with the demo.

    Raises:
        DemoError: Something expected did not happen.
    """
    listener = Listener(service)
    try:
        _Play(service, listener, view, patience).run(later)
    finally:
        listener.stop()
        view.finish()


class _Play:
    def __init__(self, service: Throughline, listener: Listener, view: View, patience: float) -> None:
        self._service = service
        self._listener = listener
        self._view = view
        self._patience = patience
        self._written: list[Written] = []
        self._turns: list[tuple[int, int]] = []  # of each turn: tokens sent, tokens of the whole history
        self._in_flight: set[str] = set()
        self._begun = False
        self._announced = False
        self._applied: list[Compaction] = []
        self._problem: Compaction | None = None
        self._fullest = 0

    def run(self, later: str | None) -> None:
        self._open()
        self._talk()
        self._compact_now()
        self._show_state()
        self._ask_about_the_beginning()
        self._check_history()
        self._close(later)

    # Acts 1 to 3

    def _open(self) -> None:
        service = self._service
        service.create(title=_TITLE, system_prompt=SYSTEM_PROMPT, context_window=CONTEXT_WINDOW)
        self._listener.start()
        self._view.open(
            Opening(
                url=service.url,
                conversation_id=service.conversation_id,
                messages=len(LINES),
                gauge=service.usage(),
                context_window=CONTEXT_WINDOW,
            )
        )

    def _talk(self) -> None:
        self._view.act(1, "The context fills", "Message by message, with nothing compacted yet.")
        for scene in SCENES:
            self._view.scene(scene)
            for line in scene.lines:
                self._say(line)
        self._settle()

    def _say(self, line: Line) -> None:
        if line.manner == "jump":
            self._jump(line)
        elif line.manner == "asked":
            self._turn(line.content)
        else:
            self._remember(self._service.append(line.role, line.content, line.at))
            gauge = self._service.usage()
            self._show(self._written[-1], gauge)
            self._hear()
            # The worker may have been quicker than our look at the gauge.
            if not self._announced and (self._applied or gauge.tokens >= gauge.background_at):
                self._first_compaction()
            elif gauge.tokens >= gauge.background_at:
                self._calm()  # in step with the worker: on a slow machine too each compaction finds the same messages

    def _first_compaction(self) -> None:
        """Act 2: the worker was called by the append that reached 70 %."""
        self._announced = True
        self._view.wait("70 % reached: waiting for the worker's event …")
        self._settle()
        first = self._expect(lambda item: item.trigger == "background", "no background compaction was applied")
        self._view.act(
            2,
            "70 %: the worker compacts",
            "The append was answered at once; the news came as an event over SSE. From now on the worker keeps pace, "
            "while messages go on being accepted.",
        )
        row = next((row for row in self._service.compactions() if row.id == first.id), first)
        self._view.compacted(replace(row, summary=""), self._service.usage())

    def _jump(self, line: Line) -> None:
        """Act 3: one message that leaves no time for the worker."""
        before = self._calm()
        added = self._service.count(line.content)
        self._view.act(
            3,
            "A jump over 85 %, inside one turn",
            f"Ines pastes the harbour's whole agreement and wants a reply. {WHERE['worker'].capitalize()} it would "
            "come too late, so the turn compacts first, and answers then.",
        )
        self._view.overflow(before, added)
        self._fullest = max(self._fullest, before.tokens + added)
        turn = self._turn(line.content, shown=False)
        if turn.compaction is None or turn.compaction.status != "applied":
            raise DemoError("The long message was answered, but no compaction came with the reply.")
        if turn.compaction.ran_in != "turn":
            raise DemoError(f"The long message was compacted {turn.compaction.ran_in}, not inside its turn.")
        self._view.compacted(replace(turn.compaction, summary=""), turn.gauge)
        self._view.answer("Here's the whole agreement … (all of it is still there, word for word)", turn)

    def _turn(self, content: str, *, shown: bool = True) -> Turn:
        """A turn of the configured model."""
        self._view.wait("the model answers …")
        turn, both = self._service.chat(content)
        if not turn.reply.strip():
            raise DemoError("The model's reply was empty.")
        self._remember(*both)
        self._turns.append((turn.input_tokens, self._history_tokens - both[1].tokens))
        if shown:
            self._show(both[0], turn.gauge)
            self._show(both[1], turn.gauge, model=turn.model)
        self._hear()
        return turn

    # Acts 4 to 6

    def _compact_now(self) -> None:
        self._view.act(4, "POST …/compact", "On demand: everything but the last turn goes into the state.")
        compaction = self._service.compact()
        if compaction.status != "applied":
            raise DemoError(f"POST …/compact ended {compaction.status}: {compaction.reason}.")
        self._view.compacted(replace(compaction, summary=""), self._service.usage())
        self._hear()

    def _show_state(self) -> None:
        version, state = self._service.state()
        if not any(state.values()):
            raise DemoError("The conversation has no state, although it was compacted.")
        self._view.act(5, "The state itself", "What stands for the covered messages, and what a model is sent now.")
        self._view.state(version, state)
        context = self._service.context()
        if not any(message["content"] == LINES[0].content for message in context["messages"]):
            raise DemoError("The first message is not in the context, although it is held.")
        system = next((part["tokens"] for part in context["sections"] if part["kind"] == "system"), 0)
        self._view.context(
            list(_sections(context["sections"])),
            sent=context["gauge"]["tokens"],
            full=system + self._history_tokens,
        )

    def _ask_about_the_beginning(self) -> None:
        self._view.act(6, "Back to the very beginning", f"{len(self._written)} messages later.")
        model = ""
        for question in (story.FIRST_QUESTION, story.SECOND_QUESTION):
            turn = self._turn(question, shown=False)
            self._view.answer(question, turn)
            model = turn.model
        if model == _OFFLINE:
            self._view.note(_OFFLINE_NOTE)

    def _check_history(self) -> None:
        """Nothing is lost: what was written is what GET …/messages has."""
        found = [(message.seq, message.role, message.content) for message in self._service.history()]
        written = [(place, message.role, message.content) for place, message in enumerate(self._written, 1)]
        if found != written:
            raise DemoError(f"GET …/messages has {len(found)} messages, not the {len(written)} that were written.")
        self._view.note(f"GET …/messages: all {len(found)} messages are there, every one as it was written.")

    def _close(self, later: str | None) -> None:
        rows = [row for row in self._service.compactions() if row.status == "applied"]
        times = Counter(row.trigger for row in rows)
        freed = {trigger: sum(saved(row) for row in rows if row.trigger == trigger) for trigger in times}
        sent, whole = (sum(values) for values in zip(*self._turns, strict=True))
        facts = (
            ("messages in the history", f"{len(self._written)}, unchanged"),
            ("tokens ever written", f"{self._history_tokens:,}"),
            ("fullest context, before compaction", f"{self._fullest:,} tokens"),
            ("context now", f"{self._service.usage().tokens:,} tokens"),
            (f"sent in the {len(self._turns)} turns answered now", f"{sent:,} tokens, instead of {whole:,}"),
        )
        compactions = [(trigger, times[trigger], freed[trigger]) for trigger in times]
        self._view.close(Closing(facts=facts, compactions=compactions, next_steps=list(self._next_steps(later))))

    def _next_steps(self, later: str | None) -> Iterator[tuple[str, str]]:
        service = self._service
        if later:
            yield "this service ends with the demo; start one that stays, over the same data", "make run"
        url = f"{later or service.url}{service.path}"
        yield "every version of the state, with the messages that each entry came from", f"curl {url}/states"
        yield "what the next model call would be sent", f"curl {url}/context"
        yield "talk on", f"""curl {url}/chat -H 'content-type: application/json' -d '{{"content": "What is open?"}}'"""
        yield "the whole contract, to click through", f"{later or service.url}/docs"

    # What is heard and remembered

    @property
    def _history_tokens(self) -> int:
        return sum(message.tokens for message in self._written)

    def _remember(self, *messages: Written) -> None:
        self._written.extend(messages)

    def _show(self, message: Written, gauge: Gauge, *, model: str = "") -> None:
        self._fullest = max(self._fullest, gauge.tokens)
        self._view.message(
            Progress(
                number=message.seq,
                total=max(_TOTAL, message.seq),
                role=message.role,
                content=message.content,
                model=model,
                gauge=gauge,
                written=self._history_tokens,
            )
        )

    def _hear(self, seconds: float = 0.0) -> bool:
        """Take note of every event that has arrived, waiting for the first of them; whether there was one."""
        heard = self._listener.next(seconds)
        if heard is None:
            return False
        while heard is not None:
            self._note(*heard)
            heard = self._listener.next()
        return True

    def _note(self, kind: str, compaction: Compaction) -> None:
        if kind in {"queued", "started"}:
            self._in_flight.add(compaction.id)
            self._begun = self._begun or kind == "started"
            return
        self._in_flight.discard(compaction.id)
        self._view.event(kind, compaction)
        if kind == "applied":
            self._applied.append(compaction)
        elif kind == "failed":
            self._problem = compaction

    def _settle(self) -> None:
        """Wait until no compaction is in flight."""
        self._hear(0.3)
        self._until(lambda: self._begun or bool(self._applied), self._patience, "started none")
        self._until(lambda: not self._in_flight, _MODEL_SECONDS, "did not finish one")

    def _calm(self) -> Gauge:
        """The gauge, when no compaction is in flight and none is due."""
        deadline = time.monotonic() + self._patience
        while True:
            self._settle()
            gauge = self._service.usage()
            if gauge.tokens < gauge.background_at:
                return gauge
            if time.monotonic() >= deadline:
                raise DemoError(f"The context stays at {gauge.tokens} tokens, above the 70 %.{self._reason()}")
            self._hear(1.0)

    def _until(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise DemoError(
                    f"A compaction is due, but within {seconds:g} seconds the worker {what}; is it running, and does "
                    f"it share Redis and Postgres with the service?{self._reason()}"
                )
            self._hear(min(left, 1.0))

    def _expect(self, wanted: Callable[[Compaction], bool], otherwise: str) -> Compaction:
        found = next((item for item in self._applied if wanted(item)), None)
        if found is None:
            raise DemoError(f"At 70 % {otherwise}.{self._reason()}")
        return found

    def _reason(self) -> str:
        problem = self._problem
        return f" The last one ended {problem.status}: {problem.reason}." if problem else ""


_TOTAL: Final = len(LINES) + sum(line.manner != "imported" for line in LINES)
"""With the replies that are made while the demo runs."""


def _sections(parts: list[dict[str, Any]]) -> Iterator[tuple[str, int, str]]:
    """Kind, tokens, words; neighbours of one kind as one."""
    words = {
        "system": "the system prompt, and how to read the state",
        "state": "what stands for the covered messages",
        "anchors": "decisions, promises and numbers, word for word",
        "digests": "the covered messages by topic, with the way back",
        "held": "the first message, word for word",
    }
    for kind, found in groupby(parts, key=lambda part: str(part["kind"])):
        same = list(found)
        seqs = sum(len(part["seqs"]) for part in same)
        tail = f"the last {seqs} messages, word for word" if kind == "tail" else ""
        yield kind, sum(part["tokens"] for part in same), words.get(kind, tail)
