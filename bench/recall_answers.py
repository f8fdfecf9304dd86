"""Measures whether the offline model's quotes for a question include a message with the answer.

The model gets 120 messages, one of which, somewhere, has the answer. As a control it is asked a question of the next
talk instead, for which it should find nothing; but some of these can be answered here too, mostly in talks of friends.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.model.model_io import ContextMessage
from app.core.retrieval.offline_responder import respond
from bench.fidelity_made import FOLDER as MADE
from bench.recall_talks import Talk, TalkQuestion, open_trust_talks, talks

SHOWN: Final = 120
MAX_QUESTIONS: Final = 60
"""How many questions of a talk are asked: the first ones."""
_QUOTED: Final = re.compile(r"^> #(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The outcome for a question."""

    quotes: int
    holds_answer: bool
    begins_with_answer: bool
    finds_nothing_elsewhere: bool
    """Whether the control's question gets no quote."""


def report(locomo: Sequence[Talk]) -> Iterator[str]:
    """The table, a line after each set of talks."""
    yield "| | questions | an answer is quoted | … first | quotes | control: nothing is quoted |"
    yield "|---|---:|---:|---:|---:|---:|"
    made = [talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path)]
    for name, given in (("LoCoMo", locomo), ("made-up talks", made), ("trust talks", open_trust_talks())):
        found = list(replies(given))
        if found:
            yield f"| {name} | {len(found)} | {' | '.join(_figures(found))} |"


def replies(given: Sequence[Talk]) -> Iterator[Reply]:
    """The outcomes for the first questions of each talk."""
    chance = random.Random(5)
    for talk, other in zip(given, [*given[1:], *given[:1]], strict=True):
        for asked in talk.questions[:MAX_QUESTIONS]:
            start = max(asked.evidence[0] - 1 - chance.randrange(SHOWN), 0)
            yield _reply(talk, asked, start, chance.choice(other.questions).text)


def _reply(talk: Talk, asked: TalkQuestion, start: int, strange: str) -> Reply:
    shown = talk.messages[start : start + SHOWN]
    context = tuple(
        ContextMessage(role=message["role"], content=message["content"], seq=seq)
        for seq, message in enumerate(shown, start=start + 1)
    )
    quoted = quoted_by(context, asked.text)
    return Reply(
        quotes=len(quoted),
        holds_answer=not set(quoted).isdisjoint(asked.evidence),
        begins_with_answer=not set(quoted[:1]).isdisjoint(asked.evidence),
        finds_nothing_elsewhere=not quoted_by(context, strange),
    )


def quoted_by(context: tuple[ContextMessage, ...], question: str) -> list[int]:
    """The positions of the messages that are quoted for a question, in the order of the quotes."""
    reply = respond((*context, ContextMessage(role="user", content=question, seq=len(context) + 1)))
    return [int(seq) for seq in _QUOTED.findall(reply)]


def _figures(found: Sequence[Reply]) -> Iterator[str]:
    yield f"{sum(one.holds_answer for one in found) / len(found):.1%}".replace("%", " %")
    yield f"{sum(one.begins_with_answer for one in found) / len(found):.1%}".replace("%", " %")
    yield f"{sum(one.quotes for one in found) / len(found):.2f}"
    yield f"{sum(one.finds_nothing_elsewhere for one in found) / len(found):.0%}".replace("%", " %")
