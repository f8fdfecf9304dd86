"""Asks mistyped questions, with one slip in a longer word of each: with and without recall's correction."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.question import Question
from app.core.retrieval.question_completion import completed_question, question_as_written
from bench.fidelity_made import FOLDER as MADE
from bench.ranking import choose
from bench.recall_talks import Talk, corpus_of, talks

SHARES: Final = (0.05, 0.10, 0.20)
MAX_SHARE: Final = 0.9
"""The share of the tokens that recall may take, as in the service."""
_LONGER: Final = re.compile(r"[a-z]{6,}|[а-яё]{6,}")
_LETTERS: Final = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюяё")

Ask = Callable[[str, Corpus], Question]


def slipped(talk: Talk) -> Talk:
    """The talk with its questions mistyped; those without a longer word are left out."""
    typed = ((asked, mistyped(asked.text)) for asked in talk.questions)
    return replace(talk, questions=tuple(replace(asked, text=text) for asked, text in typed if text))


def mistyped(text: str) -> str:
    """The text with a slip in one longer word: a letter missing, replaced or added, or two exchanged."""
    chance = random.Random(text)
    words = list(_LONGER.finditer(text))
    if not words:
        return ""
    found = chance.choice(words)
    word, place = found[0], chance.randrange(1, len(found[0]) - 1)
    letter = chance.choice(next(letters for letters in _LETTERS if word[0] in letters))
    before, here, following, after = word[:place], word[place], word[place + 1], word[place + 2 :]
    typed = chance.choice(
        [
            f"{before}{following}{after}",
            f"{before}{letter}{following}{after}",
            f"{before}{letter}{here}{following}{after}",
            f"{before}{following}{here}{after}",
        ]
    )
    return f"{text[: found.start()]}{typed}{text[found.end() :]}"


def report(locomo: Sequence[Talk]) -> Iterator[str]:
    """The table, a line after each of its rows is known."""
    made = [talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path)]
    yield f"| | questions | {' | '.join(f'{share:.0%}' for share in SHARES)} |"
    yield f"|---|---:|{'---:|' * len(SHARES)}"
    for name, given in (("LoCoMo", locomo), ("made-up talks", made)):
        for kind, asked in (("as they are", given), ("mistyped", [slipped(talk) for talk in given])):
            for way, ask in (("words as they stand", question_as_written), ("put right", completed_question)):
                yield _line(f"{name}, {kind}, {way}", asked, ask)


def _line(name: str, given: Sequence[Talk], ask: Ask) -> str:
    found = [one for talk in given for one in _served(talk, ask)]
    means = " | ".join(f"{100 * sum(one[place] for one in found) / len(found):.1f}" for place in range(len(SHARES)))
    return f"| {name} | {len(found)} | {means} |"


def _served(talk: Talk, ask: Ask) -> Iterator[tuple[bool, ...]]:
    corpus = corpus_of(talk)
    for asked in talk.questions:
        question = ask(asked.text, corpus)
        rooms = (math.floor(MAX_SHARE * share * talk.tokens) for share in SHARES)
        chosen = (choose(corpus, question, room=room) for room in rooms)
        yield tuple({one.source.seq for one in each if not one.excerpt}.issuperset(asked.evidence) for each in chosen)
