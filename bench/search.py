"""Measures how long finding messages by words takes in a long conversation, compared with indexed queries.

``python -m bench.search [--messages 100000] [--repeats 15]`` starts a PostgreSQL of its own, writes one conversation
through the repository, and searches it in several ways. Narrowing (SQL) and scoring (Python, with empty caches) are
measured separately. The three queries for comparison run in the same process, on the same rows, in turn with them:
reading a page by its index, reading by index as many messages as narrowing did, and Postgres' own full-text search.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.bootstrap import build_container
from app.core.model.conversation import Conversation, Message, Sums
from app.core.retrieval.question import question_of
from app.core.retrieval.search import Query, query_of, rank_messages
from app.core.text.memo import forget
from app.core.text.words import stem
from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.ids import new_id
from app.settings import Settings
from app.storage.database import make_engine
from app.storage.migrations import run_migrations
from app.storage.repositories import messages as repository
from app.storage.repositories.message_search import FoundMessages
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.context.recalling import CANDIDATES as RECALLED_FROM
from app.usecases.context.recalling import corpus_of
from app.usecases.context.search import CANDIDATES
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from bench.ranking import scores
from bench.report import print_table, write_json
from tests.servers import as_owner

SMALL_MULTIPLE: Final = 10.0
"""Recall may take at most so many times as long as the full-text query for the same words (median)."""

_BATCH: Final = 1_000
_VOCABULARY: Final = 30_000
_BEGIN: Final = datetime(2026, 1, 5, tzinfo=UTC)
_PAGE: Final = 100  # messages
_SYLLABLES: Final = tuple(a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "el", "on"))

_READ: Final = "SELECT seq, role, content, parts, token_count, created_at FROM messages WHERE tenant_id = :tenant"
PAGE_BY_INDEX: Final = f"{_READ} AND conversation_id = :id AND seq > :after ORDER BY seq LIMIT {_PAGE}"
SAME_BY_INDEX: Final = f"{_READ} AND conversation_id = :id AND seq = ANY(:seqs) ORDER BY seq"
VECTOR: Final = "tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED"
FULL_TEXT: Final = (
    "SELECT seq, role, content, ts_rank(vector, wanted) AS rank"
    " FROM messages, to_tsquery('simple', :words) AS wanted"
    " WHERE tenant_id = :tenant AND conversation_id = :id AND vector @@ wanted ORDER BY rank DESC LIMIT 20"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Medians in milliseconds for one kind of question."""

    question: str
    found: int
    """How many messages search looks at."""
    around: int
    """How many messages recall looks at: those and their neighbours."""
    search_narrowing: float
    search_scoring: float
    recall_narrowing: float
    recall_scoring: float
    page: float
    same: float
    full_text: float

    @property
    def search(self) -> float:
        """Narrowing and scoring for search."""
        return self.search_narrowing + self.search_scoring

    @property
    def recall(self) -> float:
        """Narrowing and scoring for recall."""
        return self.recall_narrowing + self.recall_scoring


class Words:
    """Made-up words; the n-th one is n times as rare as the first (Zipf), as in any language."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        made = ("".join(self._random.choices(_SYLLABLES, k=self._random.randint(2, 4))) for _ in itertools.count())
        by_stem = {stem(word): word for word in itertools.islice(made, _VOCABULARY * 2)}
        self._words = list(by_stem.values())[:_VOCABULARY]
        self._sums = list(itertools.accumulate(1 / rank_ for rank_ in range(1, len(self._words) + 1)))
        self.holding: Counter[str] = Counter()

    def content(self) -> str:
        """One message."""
        chosen = self._random.choices(self._words, cum_weights=self._sums, k=self._random.randint(8, 50))
        self.holding.update(set(chosen))
        return " ".join(chosen).capitalize() + "."

    def about(self, messages: int, count: int) -> list[str]:
        """Words that are in about so many messages each."""
        return sorted(self.holding, key=lambda word: (abs(self.holding[word] - messages), word))[:count]


async def fill(begin: UnitOfWorkFactory, tenant: UUID, words: Words, count: int) -> tuple[UUID, list[float]]:
    """Make a conversation of so many messages; return it, and the seconds of storing each batch of a thousand."""
    made = Conversation(id=new_id(), tenant_id=tenant, created_at=_BEGIN, updated_at=_BEGIN)
    async with begin(None) as uow:
        await uow.keys.add_tenant(tenant, "bench")
        await uow.commit()
    async with begin(tenant) as uow:
        await uow.conversations.add(made)
        await uow.commit()
    times: list[float] = []
    total = Sums()
    for start in range(1, count + 1, _BATCH):
        batch = [_message(made.id, seq, words.content()) for seq in range(start, min(start + _BATCH, count + 1))]
        sums = list(itertools.accumulate(map(_weight, batch), Sums.plus, initial=total))[1:]
        total = sums[-1]
        began = time.perf_counter()
        async with begin(tenant) as uow:
            await uow.messages.append(batch, sums)
            await uow.conversations.update(made.id, last_seq=batch[-1].seq, total=total)
            await uow.commit()
        times.append(time.perf_counter() - began)
    return made.id, times


def _message(conversation_id: UUID, seq: int, content: str) -> Message:
    return Message(
        id=new_id(),
        conversation_id=conversation_id,
        seq=seq,
        role="user" if seq % 2 else "assistant",
        content=content,
        token_count=len(content) // 4,
        byte_length=len(content),
        created_at=_BEGIN + timedelta(minutes=seq),
    )


def _weight(message: Message) -> Sums:
    return Sums(messages=1, tokens=message.token_count, bytes=message.byte_length)


def questions(words: Words, messages: int) -> dict[str, str]:
    """Kinds of questions by how common their words are."""
    rare, some, many, most = (words.about(each, 8) for each in (3, messages // 500, messages // 50, messages // 5))
    return {
        "one rare word": rare[0],
        "three rare words": " ".join(rare[:3]),
        "a question: rare, uncommon and common words": " ".join([rare[0], some[0], some[1], many[0], most[0], most[1]]),
        "uncommon words only": " ".join(some[:4]),
        "common words only": " ".join([many[0], many[1], most[0]]),
        "a paragraph of 24 words": " ".join([*rare[:4], *some, *many, *most[:4]]),
    }


class Bench:
    """Asks questions of one conversation."""

    def __init__(self, engine: AsyncEngine, tenant: UUID, conversation_id: UUID, repeats: int) -> None:
        self._begin = unit_of_work_factory(engine)
        self._engine = engine
        self._tenant = tenant
        self._id = conversation_id
        self._repeats = repeats

    async def ask(self, kind: str, question: str) -> Took:
        """Measure one question in the four ways in turn, so that other work on the machine affects all alike."""
        query = query_of(question)
        narrowed = {is_recall: await self._narrow(query, is_recall=is_recall) for is_recall in (False, True)}
        seqs = [source.seq for source in narrowed[True].sources]
        ways: dict[str, tuple[str, dict[str, Any]]] = {
            "page": (PAGE_BY_INDEX, {"after": seqs[0]}),
            "same": (SAME_BY_INDEX, {"seqs": seqs}),
            "full_text": (FULL_TEXT, {"words": " | ".join(question.split())}),
        }
        times: defaultdict[str, list[float]] = defaultdict(list)
        async with self._engine.connect() as connection:
            for _ in range(self._repeats):
                for name, is_recall in (("search", False), ("recall", True)):
                    times[f"{name}_narrowing"].append(await _timed(self._narrow(query, is_recall=is_recall)))
                    times[f"{name}_scoring"].append(_scored(query, narrowed[is_recall], is_recall=is_recall))
                for name, (statement, values) in ways.items():
                    times[name].append(await _timed(self._run(connection, statement, values)))
        medians = {name: round(1_000 * statistics.median(values), 2) for name, values in times.items()}
        return Took(question=kind, found=len(narrowed[False].sources), around=len(seqs), **medians)

    async def _narrow(self, query: Query, *, is_recall: bool) -> FoundMessages:
        limit = RECALLED_FROM if is_recall else CANDIDATES
        async with self._begin(self._tenant) as uow:
            return await uow.messages.sources(
                self._id, stems=query.stems, text=query.text, limit=limit, neighbours=is_recall
            )

    async def _run(self, connection: AsyncConnection, statement: str, values: dict[str, Any]) -> None:
        given = {"tenant": self._tenant, "id": self._id} | values
        (await connection.execute(text(statement), given)).all()
        await connection.rollback()


async def _timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def _scored(query: Query, narrowed: FoundMessages, *, is_recall: bool) -> float:
    """The time that scoring takes when every message is new to the core."""
    forget()
    began = time.perf_counter()
    if is_recall:
        corpus = corpus_of(narrowed)
        scores(corpus, question_of(query.text, corpus.speakers, language=corpus.language))
    else:
        rank_messages(query, narrowed.sources, documents=narrowed.documents, total=narrowed.total)
    return time.perf_counter() - began


async def appending(servers: Endpoints, repeats: int) -> float:
    """How many times as long the service takes to append a thousand messages as it would without the word index."""
    settings = Settings(database_url=servers.database_url, redis_url=servers.redis_url)
    container = await build_container(settings)
    tenant, words = new_id(), Words(seed=2)
    async with container.parts.uow(None) as uow:
        await uow.keys.add_tenant(tenant, "appending")
        await uow.commit()
    given = NewConversation(policy={"max_tokens": -1})
    conversations = [(await container.conversations.create(tenant, given)).conversation.id for _ in range(2)]
    times: list[list[float]] = [[], []]
    for _ in range(repeats):
        drafts = [MessageDraft(role="user", content=words.content()) for _ in range(_BATCH)]
        for conversation_id, took, makes_keys in zip(conversations, times, (True, False), strict=True):
            with nullcontext() if makes_keys else patch.object(repository, "keys_of", _no_keys):
                took.append(await _timed(container.messages.append(tenant, conversation_id, drafts)))
    await container.close()
    return statistics.median(times[0]) / statistics.median(times[1])


def _no_keys(messages: Sequence[Message]) -> list[list[int]]:
    return [[] for _ in messages]


async def measure(url: str, messages: int, repeats: int) -> list[Took]:
    """Fill a database and ask it."""
    engine = as_owner(make_engine(url))
    tenant, words = new_id(), Words()
    conversation_id, times = await fill(unit_of_work_factory(engine), tenant, words, messages)
    print(f"{messages} messages; a batch of {_BATCH}: {statistics.median(times):.2f} s", file=sys.stderr)
    async with engine.connect() as connection:
        options = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await options.execute(text("SET statement_timeout = 0"))
        await options.execute(text(f"ALTER TABLE messages ADD COLUMN vector {VECTOR}"))
        await options.execute(text("CREATE INDEX ON messages USING gin (vector)"))
        await options.execute(text("VACUUM ANALYZE messages"))
    bench = Bench(engine, tenant, conversation_id, repeats)
    found = [await bench.ask(kind, question) for kind, question in questions(words, messages).items()]
    await engine.dispose()
    return found


def main() -> int:
    """Measure, print, write; 1 when recall takes longer than a small multiple of the full-text query."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=15, help="runs per question; their median counts")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        os.environ.pop("DATABASE_URL", None)
        run_migrations(servers.database_url)
        found = asyncio.run(measure(servers.database_url, asked.messages, asked.repeats))
        appended = asyncio.run(appending(servers, asked.repeats))
    print_table(
        ["question", "found", "search ms", "around", "recall ms", "page ms", "same ms", "text ms"],
        [
            [each.question, str(each.found), _parts(each.search_narrowing, each.search_scoring), str(each.around)]
            + [_parts(each.recall_narrowing, each.recall_scoring)]
            + [f"{value:.1f}" for value in (each.page, each.same, each.full_text)]
            for each in found
        ],
    )
    ratios = {
        f"{way} ÷ {name}": round(statistics.median(getattr(each, way) / getattr(each, name) for each in found), 1)
        for way in ("search", "recall")
        for name in ("page", "same", "full_text")
    }
    print("\nmedians: " + ", ".join(f"{name} {value}" for name, value in ratios.items()))
    print(f"appending {_BATCH} messages: {appended:.2f} times as long as without the index")
    took = [asdict(each) for each in found]
    write_json("search", {"messages": asked.messages, "took": took, "ratios": ratios, "appending": appended})
    return 0 if ratios["recall ÷ full_text"] <= SMALL_MULTIPLE else 1


def _parts(narrowing: float, scoring: float) -> str:
    return f"{narrowing:.1f} + {scoring:.1f}"


if __name__ == "__main__":
    sys.exit(main())
