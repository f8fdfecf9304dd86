"""Measures how many functions and modules an operation passes, and how often its texts are parsed.

``python -m bench.walks`` traces three operations of a service in this process, with the offline model unless another is
named: a message posted over HTTP; a compaction; a context with a question. A candidate of a provider's model (the
scripted Gemini of the tests) is traced from the call of the model's adapter to the end of the compaction.

The path of an operation has each function of ``app`` once, in the order of first calls. A stay is a run of functions of
one module on the path, a hop the change from one stay to the next, a return a stay in a module that was left before.
Crossings are all calls from one module into another, repeated ones included. A parser is a function that takes a text
apart; only real calls are counted, not those that a cache answered. Every text is new to the process when it is traced.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import itertools
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final
from uuid import UUID

from app.client import AsyncThroughline
from app.client import endpoints as api
from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.clock import SystemClock
from app.storage.migrations import run_migrations
from bench.growth import talk
from bench.process import Process, running
from bench.report import print_table, write_json
from tests.gemini_server import gemini_process

APP: Final = Path(__file__).resolve().parents[1] / "app"
HISTORY: Final = 60
"""Messages before the traced operation."""
POSTED: Final = (
    "We decided to move the launch to 14 May 2026, because Priya found order ORD-73155 in src/billing/export.py, and it"
    " costs €48,250. Please remember that Kenji owns the contract. Should we use Grafana 11.2 instead of Kafka?"
)
BUDGET: Final = 2_000
"""Tokens of a context with a question."""
QUESTION: Final = "What did Amina say about the delivery and its costs, and which order was late?"
PARSERS: Final[dict[str, tuple[str, ...]]] = {
    "sentences": ("core/text/sentences.py:sentence_spans", "core/anchors/statements.py:statements_of"),
    "clauses": ("core/text/clauses.py:clauses_with_values", "core/summarizer/offline/items.py:label_and_clauses"),
    "tokens": (
        "core/text/words.py:words",
        "core/text/words.py:ascii_tokens",
        "core/retrieval/terms.py:terms",
        "core/retrieval/corpus.py:words_of",
    ),
    "stems": ("core/text/words.py:stems",),
    "names and values": ("core/text/identifiers.py:_scan",),
    "exact values": ("core/text/value_reader.py:read_values",),
    "weight": ("core/text/token_counts.py:counts",),
    "language": ("core/text/language.py:detect",),
    "anchors": ("core/anchors/detect.py:detect",),
    "redaction": ("core/model/redaction.py:redact",),
}
"""The functions that find each kind of part, as ``file:name`` below ``app``. Add the new name when one moves."""
_SYNTHETIC: Final = frozenset({"<module>"})
_RESUMES: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MAX_SHOWN: Final = 3


class Trace:
    """The calls of one operation.

    Args:
        app: The folder of the modules that count.
        begins_at: Calls are noted from the call of a function of this qualified name on; ``None``: from the start.
    """

    def __init__(self, app: Path = APP, begins_at: str | None = None) -> None:
        self._prefix = f"{app}/"
        self._begins_at = begins_at
        self._parsers = {place: kind for kind, places in PARSERS.items() for place in places}
        self.path: list[str] = []
        """The modules of the functions, in the order of their first calls."""
        self.crossings = 0
        self.parsed: Counter[str] = Counter()
        """Calls by kind of parser."""
        self.characters: Counter[str] = Counter()
        """The characters that each kind of parser was given."""
        self.texts: set[tuple[str, str]] = set()
        """The distinct texts that each kind was given."""
        self._seen: set[CodeType] = set()
        self._frames: dict[int, FrameType] = {}
        self._modules: dict[CodeType, str | None] = {}

    def called(self, frame: FrameType) -> None:
        """Note a call."""
        code = frame.f_code
        if code.co_flags & _RESUMES and self._has_begun(frame):
            return
        module = self._module_of(code)
        if module is None or (self._begins_at is not None and not self.path and code.co_qualname != self._begins_at):
            return
        caller = self._module_of(frame.f_back.f_code) if frame.f_back is not None else None
        self.crossings += caller not in {None, module}
        if code not in self._seen:
            self._seen.add(code)
            self.path.append(module)
        kind = self._parsers.get(f"{module}:{code.co_name}")
        if kind is not None:
            self._note(kind, frame)

    def _has_begun(self, frame: FrameType) -> bool:
        """Whether a coroutine or generator has begun before; its frame is kept, so that no other one gets its id."""
        known = id(frame) in self._frames
        self._frames[id(frame)] = frame
        return known

    def _note(self, kind: str, frame: FrameType) -> None:
        count = frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
        given = (frame.f_locals[name] for name in frame.f_code.co_varnames[:count])
        text = max((text for value in given if (text := _text_of(value))), key=len, default="")
        self.parsed[kind] += 1
        self.characters[kind] += len(text)
        self.texts.add((kind, text))

    def _module_of(self, code: CodeType) -> str | None:
        if code not in self._modules:
            ours = code.co_filename.startswith(self._prefix) and code.co_name not in _SYNTHETIC
            self._modules[code] = code.co_filename.removeprefix(self._prefix) if ours else None
        return self._modules[code]


def _text_of(value: object) -> str:
    """The text that an argument is or contains."""
    carried = (value, getattr(value, "content", ""), getattr(value, "text", ""))
    return next((each for each in carried if isinstance(each, str) and each), "")


class Profiler:
    """Hands calls to the trace that is being recorded, from the thread that installs it and from later ones."""

    def __init__(self) -> None:
        self._trace: Trace | None = None

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Listen within the block; enter it before an event loop starts threads, which would be missed otherwise."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextlib.contextmanager
    def recording(self, trace: Trace) -> Iterator[None]:
        """Hand the calls within the block to this trace."""
        self._trace = trace
        try:
            yield
        finally:
            self._trace = None

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and self._trace is not None:
            self._trace.called(frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The figures of an operation."""

    functions: int
    modules: int
    hops: int
    returns: int
    crossings: int
    most_visited: dict[str, int]
    """How many stays the modules with most stays have."""
    parsers: dict[str, dict[str, float]]
    """By kind: calls, distinct texts, and characters read as a multiple of the operation's own text.

    Its own text is the posted message, all messages of the conversation, or these and the question.
    """


def walk_of(trace: Trace, characters: int) -> Walk:
    """The figures of a trace on a text of so many characters. Raises ``ValueError`` for an empty one."""
    if not trace.path:
        raise ValueError("the traced operation never began: is its function still called so?")
    stays = [module for module, _ in itertools.groupby(trace.path)]
    visits = Counter(stays)
    return Walk(
        functions=len(trace.path),
        modules=len(visits),
        hops=max(len(stays) - 1, 0),
        returns=len(stays) - len(visits),
        crossings=trace.crossings,
        most_visited=dict(visits.most_common(_MAX_SHOWN)),
        parsers={
            kind: {
                "calls": trace.parsed[kind],
                "texts": sum(each == kind for each, _ in trace.texts),
                "times": round(trace.characters[kind] / characters, 2),
            }
            for kind in PARSERS
        },
    )


def as_json(walk: Walk) -> dict[str, Any]:
    """The figures for the file."""
    return {name: getattr(walk, name) for name in Walk.__slots__}


def unknown_parsers(app: Path = APP) -> list[str]:
    """The names in ``PARSERS`` that no file has any more."""
    return [
        place
        for places in PARSERS.values()
        for place in places
        if not _has(app / place.partition(":")[0], place.partition(":")[2])
    ]


def _has(path: Path, name: str) -> bool:
    return path.exists() and f"def {name}(" in path.read_text(encoding="utf-8")


class Walker:
    """Traces operations of one process."""

    def __init__(self, process: Process, profiler: Profiler) -> None:

        self._container = process.container
        self._profiler = profiler
        self._client = AsyncThroughline("http://localhost", transport=process.transport, timeout=600)
        self._seeds = itertools.count(11)

    async def posted(self) -> Walk:
        """Trace a message posted over HTTP."""
        at = await self._conversation()
        await self._client.send(api.append(at, "user", _warm(POSTED)))
        return await self._traced(lambda: self._client.send(api.append(at, "user", POSTED)), len(POSTED))

    async def folded(self, begins_at: str | None = None) -> Walk:
        """Trace a compaction as the worker runs it; with ``begins_at``, from the call of that function on."""
        await self._fold(await self._conversation(), Trace())
        trace, at = Trace(begins_at=begins_at), await self._conversation()
        await self._fold(at, trace)
        return walk_of(trace, await self._characters(at))

    async def asked(self, *, before: bool) -> Walk:
        """Trace a context with a question; with ``before``, the conversation was asked another question before."""
        folded = [await self._conversation() for _ in range(2)]
        for at in folded:
            await self._fold(at, Trace())
        at = folded[1]
        await self._client.send(api.context(at if before else folded[0], BUDGET, query=_warm(QUESTION)))
        characters = len(QUESTION) + await self._characters(at)
        return await self._traced(lambda: self._client.send(api.context(at, BUDGET, query=QUESTION)), characters)

    async def _conversation(self) -> UUID:
        policy = {"context_window": 16_000, "max_tokens": -1}
        made = await self._client.send(api.create_conversation(policy=policy))
        messages = talk(HISTORY, next(self._seeds))
        lines = [{"role": message.role, "content": message.content} for message in messages]
        await self._client.send(api.append_many(made.id, lines))
        return made.id

    async def _characters(self, at: UUID) -> int:
        page = await self._client.send(api.messages(at, page_size=100).first)
        return sum(len(message.content) for message in page.data)

    async def _fold(self, at: UUID, trace: Trace) -> None:
        row = await self._client.send(api.compact(at, keep_tail_messages=6, wait=False))
        await self._container.outbox.drain()
        with self._profiler.recording(trace):
            done = await self._container.compaction.execute(row.id) if row.id else None
        if done is None or done.status != "applied":
            raise RuntimeError(f"nothing was folded: {done.reason if done else 'no row'}")

    async def _traced(self, work: Callable[[], Awaitable[object]], characters: int) -> Walk:
        trace = Trace()
        with self._profiler.recording(trace):
            await work()
        return walk_of(trace, characters)


def _warm(text: str) -> str:
    """A text of other words in the same shape, used first so that imports and compiling are not part of a walk."""
    return text.replace("launch", "survey").replace("Priya", "Jonas").replace("delivery", "menu")


@contextlib.asynccontextmanager
async def walker(servers: Endpoints, profiler: Profiler, **settings: Any) -> AsyncIterator[Walker]:
    """Run a walker with a process of these settings."""
    async with running(servers, SystemClock(), embedded=True, **settings) as process:
        await process.container.keys.make_default_tenant()
        yield Walker(process, profiler)


async def measured(servers: Endpoints, profiler: Profiler, gemini_url: str) -> dict[str, Walk]:
    """Every walk, by its name."""
    async with walker(servers, profiler) as offline:
        found = {
            "append": await offline.posted(),
            "fold": await offline.folded(),
            "first question": await offline.asked(before=False),
            "question": await offline.asked(before=True),
        }
    async with walker(servers, profiler, google_api_key="test", google_base_url=gemini_url) as gemini:
        return {**found, "candidate": await gemini.folded(begins_at="_SummarizerOffRecord.ask")}


def main() -> int:
    """Trace, print, write; 1 when a parser is no longer found under its name."""
    argparse.ArgumentParser(prog="python -m bench.walks", description=__doc__).parse_args()
    profiler = Profiler()
    with (
        tempfile.TemporaryDirectory(prefix="tl-") as folder,
        gemini_process() as gemini,
        EmbeddedServers(Path(folder), durable=False) as servers,
    ):
        run_migrations(servers.database_url)
        with profiler.installed():
            walks = asyncio.run(measured(servers, profiler, gemini.url))
    columns = ("functions", "modules", "hops", "returns", "crossings")
    print_table(["walk", *columns], [[name, *(str(getattr(each, x)) for x in columns)] for name, each in walks.items()])
    print()
    print_table(
        ["calls (texts, times read)", *walks],
        [
            [
                kind,
                *(
                    f"{found['calls']:.0f} ({found['texts']:.0f}, {found['times']:.1f})"
                    for found in (each.parsers[kind] for each in walks.values())
                ),
            ]
            for kind in PARSERS
        ],
    )
    missing = unknown_parsers()
    for place in missing:
        print(f"no parser any more: {place}", file=sys.stderr)
    write_json("walks", {name: as_json(each) for name, each in walks.items()})
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
