"""Measures what recall loses by looking at some hundred messages of a long conversation instead of all of them.

``python -m bench.narrowing [--questions 250] [--write]`` writes the five conversations of ``../shared/data/locomo`` as
one into a PostgreSQL of its own, and recalls for every question twice: from the messages that the database selects, and
from all. Budgets are shares of the tokens of the talk that a question belongs to, so recall has to choose from five
times as much. With ``--write`` the table goes into ``docs/search.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Conversation, Message, Sums
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.question_completion import completed_question
from app.core.text.token_counts import weigh
from app.devserver import EmbeddedServers
from app.infrastructure.ids import new_id
from app.storage.database import make_engine
from app.storage.migrations import run_migrations
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.context.recalling import corpus_of, limit_for_places, search_stems
from bench import measurements
from bench.fidelity_measures import SHARES
from bench.ranking import choose
from bench.recall_talks import CATEGORIES, Talk, TalkQuestion, talks
from bench.report import write_json
from bench.survival import DATA

MAX_SHARE: Final = 0.9
"""The share of the tokens that recall may take, as in the service."""
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "search.md"
NARROWED: Final = "narrowed by the database"
WHOLE: Final = "all messages looked at"
_BATCH: Final = 500
_PACE: Final = timedelta(seconds=40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A question, and the tokens of each share."""

    asked: TalkQuestion
    rooms: tuple[int, ...]


class Others:
    """Makes messages of random words of the talks, with the lengths of their messages and the same names."""

    def __init__(self, given: Sequence[Talk]) -> None:
        self._random = random.Random(5)
        lines = [(message["role"], *message["content"].partition(": ")) for talk in given for message in talk.messages]
        self._names = [(role, name) for role, name, _, _ in lines]
        self._texts = [(text or name).split() for _, name, _, text in lines]
        self._words = list(itertools.chain.from_iterable(self._texts))

    def next(self) -> tuple[str, str]:
        """The role and content of one message."""
        role, name = self._random.choice(self._names)
        words = self._random.choices(self._words, k=len(self._random.choice(self._texts)))
        return role, f"{name}: {' '.join(words)}"


def joined(given: Sequence[Talk], total: int = 0) -> tuple[list[Message], list[Given]]:
    """One conversation of all talks, and their questions.

    Messages of ``Others`` before, between and after the talks make up the total.
    """
    conversation_id = new_id()
    messages: list[Message] = []
    questions: list[Given] = []
    others, count_of_messages = Others(given), sum(len(talk.messages) for talk in given)
    between = max(total - count_of_messages, 0) // (len(given) + 1)

    def add(role: Any, content: str, at: datetime) -> None:
        messages.append(_message(conversation_id, len(messages) + 1, role, content, at))

    def add_others(after: datetime) -> None:
        for number in range(between):
            add(*others.next(), after + number * _PACE)

    for talk in given:
        add_others(messages[-1].created_at if messages else datetime.fromisoformat(talk.messages[0]["created_at"]))
        before = len(messages)
        for message in talk.messages:
            add(message["role"], message["content"], datetime.fromisoformat(message["created_at"]))
        rooms = tuple(math.floor(MAX_SHARE * share * talk.tokens) for share in SHARES)
        for asked in talk.questions:
            evidence = tuple(before + seq for seq in asked.evidence)
            questions.append(Given(asked=replace(asked, evidence=evidence), rooms=rooms))
    add_others(messages[-1].created_at)
    return messages, questions


def _message(conversation_id: UUID, seq: int, role: Any, content: str, at: datetime) -> Message:
    weight = weigh(role, content)
    return Message(
        id=new_id(),
        conversation_id=conversation_id,
        seq=seq,
        role=role,
        content=content,
        token_count=weight.tokens,
        byte_length=weight.bytes,
        created_at=at,
    )


async def stored(begin: UnitOfWorkFactory, tenant: UUID, messages: Sequence[Message]) -> None:
    """Write the conversation."""
    first = messages[0]
    made = Conversation(
        id=first.conversation_id, tenant_id=tenant, created_at=first.created_at, updated_at=first.created_at
    )
    async with begin(None) as uow:
        await uow.keys.add_tenant(tenant, "bench")
        await uow.commit()
    async with begin(tenant) as uow:
        await uow.conversations.add(made)
        weights = (Sums(messages=1, tokens=one.token_count, bytes=one.byte_length) for one in messages)
        sums = list(itertools.accumulate(weights, Sums.plus, initial=Sums()))[1:]
        for start in range(0, len(messages), _BATCH):
            await uow.messages.append(messages[start : start + _BATCH], sums[start : start + _BATCH])
        await uow.conversations.update(made.id, last_seq=len(messages), total=sums[-1])
        await uow.commit()


def _served(corpus: Corpus, asked: TalkQuestion, budget: int) -> bool:
    chosen = choose(corpus, completed_question(asked.text, corpus), room=budget)
    return {one.source.seq for one in chosen if not one.excerpt}.issuperset(asked.evidence)


async def measure(
    url: str, count: int, total: int = 0
) -> tuple[dict[str, list[tuple[bool, ...]]], list[Given], list[float]]:
    """For each way and question, whether its evidence is served at each share; the questions; messages looked at."""
    engine = make_engine(url)
    begin, tenant = unit_of_work_factory(engine), new_id()
    messages, questions = joined(talks(), total)
    await stored(begin, tenant, messages)
    whole = None if total else Corpus([_source(message) for message in messages])
    average = sum(message.token_count for message in messages) / len(messages)
    chosen = random.Random(1).sample(questions, min(count, len(questions)))
    found: defaultdict[str, list[tuple[bool, ...]]] = defaultdict(list)
    looked: list[list[int]] = []
    for given in chosen:
        limits = [limit_for_places(room / average) for room in given.rooms]
        corpora: dict[int, Corpus] = {}
        for limit in dict.fromkeys(limits):
            async with begin(tenant) as uow:
                corpora[limit] = corpus_of(
                    await uow.messages.sources(
                        messages[0].conversation_id,
                        stems=search_stems(given.asked.text),
                        text=given.asked.text,
                        limit=limit,
                    )
                )
        looked.append([len(corpora[limit].sources) for limit in limits])
        served = [_served(corpora[limit], given.asked, room) for limit, room in zip(limits, given.rooms, strict=True)]
        found[NARROWED].append(tuple(served))
        if whole is not None:
            found[WHOLE].append(tuple(_served(whole, given.asked, room) for room in given.rooms))
    await engine.dispose()
    return found, chosen, [statistics.mean(each) for each in zip(*looked, strict=True)]


def _source(message: Message) -> Source:
    return Source(
        seq=message.seq, role=message.role, text=message.content, at=message.created_at, tokens=message.token_count
    )


def table(found: dict[str, list[tuple[bool, ...]]], chosen: Sequence[Given], looked: Sequence[float]) -> str:
    """A table of the shares of questions in per cent."""
    heads = (f"{100 * share:.0f} %" for share in SHARES)
    lines = [f"| | {' | '.join(heads)} |", "|---" + "|---:" * len(SHARES) + "|"]
    hops = [given.asked.category == CATEGORIES[1] for given in chosen]
    for name, rows in found.items():
        lines.append(_line(name, rows))
        lines.append(_line(f"{name}, {CATEGORIES[1]}", [row for row, is_hop in zip(rows, hops, strict=True) if is_hop]))
    lines.append(f"| messages looked at | {' | '.join(f'{each:.0f}' for each in looked)} |")
    return "\n".join(lines)


def _line(name: str, rows: Sequence[tuple[bool, ...]]) -> str:
    means = (100 * statistics.mean(row[place] for row in rows) for place in range(len(SHARES)))
    return f"| {name} | {' | '.join(f'{mean:.1f}' for mean in means)} |"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.narrowing", description=__doc__)
    parser.add_argument("--questions", type=int, default=250, help="a sample of so many, always the same")
    parser.add_argument("--among", type=int, default=0, help="messages in all, others between the talks")
    parser.add_argument("--write", action="store_true", help="put the table into docs/search.md")
    asked = parser.parse_args()
    if asked.among and asked.write:
        parser.error("the table is of the talks alone")
    if not talks():
        print(f"skipped: no data at {DATA}")
        return 0
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        os.environ.pop("DATABASE_URL", None)
        run_migrations(servers.database_url)
        found, chosen, looked = asyncio.run(measure(servers.database_url, asked.questions, asked.among))
    shown = table(found, chosen, looked)
    print(shown)
    if asked.write:
        measurements.write("narrowing", shown, PAGE)
    write_json("narrowing", {"found": found, "looked": looked})
    return 0


if __name__ == "__main__":
    sys.exit(main())
