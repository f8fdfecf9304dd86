"""Asks questions that continue the one before, without the words that both have.

If the answers of two questions of a talk are near each other, the second is asked after the first and its answer, with
"it" for what both name. As a control each question is asked unchanged after one about something else. In six of the
made-up talks, none of them English, people's own follow-up questions are asked too (``follow.json``).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.question_completion import completed_question, question_as_written
from app.core.retrieval.terms import terms
from bench.fidelity_made import FOLDER as MADE
from bench.ranking import choose
from bench.recall_slips import MAX_SHARE, SHARES
from bench.recall_talks import Talk, TalkQuestion, corpus_of, talks

WRITTEN: Final = MADE / "follow.json"
"""The file with people's own follow-up questions by talk, each with the question and answer before it."""
NEAR: Final = 6  # most messages between two answers about the same thing
FAR: Final = 12  # fewest messages between answers about different things


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A question, and what was said just before it."""

    before: tuple[str, str]
    asked: TalkQuestion


def follow_ups(talk: Talk, corpus: Corpus) -> Iterator[Following]:
    """For each question the first other one whose answer is nearby, with "it" for the words of both."""
    for first in talk.questions:
        near = (one for one in talk.questions if one.text != first.text and _distance(one, first) <= NEAR)
        second = next((one for one in near if not set(one.evidence) <= set(first.evidence)), None)
        text = second and pointing(second.text, first.text, corpus)
        if second and text and text != second.text:
            yield Following(before=(first.text, first.answer), asked=replace(second, text=text))


def pointing(text: str, before: str, corpus: Corpus) -> str:
    """A question with "it" for each word that the one before also has, and for names of speakers."""
    known = set(question_as_written(before, corpus).stems)

    def mentioned(word: str) -> str:
        name = word.lower().strip("?.,!").removesuffix("'s")
        return "it" if name in corpus.speakers or known.intersection(terms(word, corpus.language)) else word

    return " ".join(map(mentioned, text.split()))


def others(talk: Talk) -> Iterator[Following]:
    """Each question unchanged, after one whose answer is elsewhere."""
    chance = random.Random(talk.id)
    for asked in talk.questions:
        far = [one for one in talk.questions if _distance(one, asked) > FAR]
        if far:
            first = chance.choice(far)
            yield Following(before=(first.text, first.answer), asked=asked)


def written(talk: Talk) -> Iterator[Following]:
    """The questions that were written for this talk."""
    for one in json.loads(WRITTEN.read_text(encoding="utf-8")).get(talk.id, ()):
        asked = TalkQuestion(text=one["question"], evidence=tuple(one["evidence"]), category="goes on")
        yield Following(before=tuple(one["before"]), asked=asked)


def report(locomo: Sequence[Talk]) -> Iterator[str]:
    """The table, a line after each of its rows is known."""
    made = [talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path)]
    yield f"| | questions | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|---|---:|{'---:|' * len(SHARES)}"
    for name, given in (("LoCoMo", locomo), ("made-up talks", made)):
        known = [(talk, corpus_of(talk)) for talk in given]
        kinds = {
            "that go on": [(talk, corpus, list(follow_ups(talk, corpus))) for talk, corpus in known],
            "on something else": [(talk, corpus, list(others(talk))) for talk, corpus in known],
            "that go on, as people ask": [(talk, corpus, list(written(talk))) for talk, corpus in known],
        }
        for kind, asked in kinds.items():
            if not any(each for _, _, each in asked):
                continue
            for way, takes_up in (("by themselves", False), ("with what was said before", True)):
                found = [one for talk, corpus, each in asked for one in _served(talk, corpus, each, takes_up=takes_up)]
                means = (f"{100 * sum(one[place] for one in found) / len(found):.1f}" for place in range(len(SHARES)))
                yield f"| {name}, {kind}, {way} | {len(found)} | {' | '.join(means)} |"


def _served(talk: Talk, corpus: Corpus, asked: Sequence[Following], *, takes_up: bool) -> Iterator[tuple[bool, ...]]:
    for one in asked:
        question = completed_question(one.asked.text, corpus, before=one.before if takes_up else ())
        rooms = (math.floor(MAX_SHARE * share * talk.tokens) for share in SHARES)
        chosen = (choose(corpus, question, room=room) for room in rooms)
        yield tuple({of.source.seq for of in each if not of.excerpt}.issuperset(one.asked.evidence) for each in chosen)


def _distance(one: TalkQuestion, other: TalkQuestion) -> int:
    return min(abs(here - there) for here in one.evidence for there in other.evidence)
