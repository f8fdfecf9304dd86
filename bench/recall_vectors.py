"""Measures what vectors add to recall, on talks that their weight was not chosen on. Needs numpy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np

from app.core.model.embedding import packed_vector
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import Ranking
from app.core.retrieval.similarity import cosines, likeness_of_pieces
from app.core.retrieval.weights import SIMILARITY, WEIGHTS
from bench.recall_fit import NEAREST, Array, Rows, fitted, learned_from, recalls, rows_of
from bench.recall_lsa import Lsa
from bench.recall_talks import CATEGORIES, Talk, TalkQuestion, corpus_of

CHOICES: Final = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Weights that are tried."""
SHOWN: Final = 3
"""How many shares of the tokens are shown: 5, 10 and 20 %."""
AT: Final = 1
"""The index of the share by which a weight is chosen: 10 %."""
COSTED: Final = (256, 768, 1_536)
"""Dimensions for which the time is taken."""
TIMES: Final = 7

Served = tuple[TalkQuestion, tuple[bool, ...]]
Weighted = tuple[Rows, Array]
"""A talk with likeness as its last feature, and the weights of the others."""


class Embedding(Protocol):
    """A model, and the vectors of some texts."""

    vectors: list[bytes]
    """The vectors of the texts, in order."""

    def question(self, text: str) -> bytes:
        """The vector of another text."""


Embeds = Callable[[Sequence[str]], Embedding]
"""Makes the vectors of a talk's messages."""


class TalkRows:
    """The questions of a talk as ``bench.recall_fit`` has them, without likeness and with it."""

    def __init__(self, talk: Talk, embeds: Embeds = Lsa) -> None:
        self.names, self.without = rows_of(talk)
        self.learned = learned_from(self.without, self.names.index(NEAREST))
        corpus = corpus_of(talk)
        model = embeds([source.text for source in corpus.sources])
        vectors = {source.seq: model.vectors[index] for index, source in enumerate(corpus.sources)}
        none = [0.0] * len(corpus.pieces)

        def alike(asked: TalkQuestion) -> Any:
            return np.array(likeness_of_pieces(corpus, cosines(model.question(asked.text), vectors)) or none)[:, None]

        rows = (
            replace(row, features=np.concatenate([row.features, alike(row.asked)], axis=1)) for row in self.without.rows
        )
        self.with_alike = replace(self.without, rows=tuple(rows))


def served(given: Iterable[Weighted], weight: float) -> list[Served]:
    """What packing serves for the questions of these talks, with this weight for similarity."""
    return [one for rows, weights in given for one in recalls(rows, np.append(weights, weight))]


def best_weight(given: Sequence[Weighted]) -> float:
    """The choice that serves most at 10 %; the smallest in ties."""
    return max(CHOICES, key=lambda weight: (mean(served(given, weight), AT), -weight))


def mean(found: Sequence[Served], share: int) -> float:
    """Evidence recall in %."""
    return 100 * sum(shares[share] for _, shares in found) / max(len(found), 1)


def left_out(given: Sequence[TalkRows]) -> tuple[list[Served], list[Served], list[float]]:
    """Results without and with vectors on each talk, by weights of the others; and the weights chosen on these."""
    without: list[Served] = []
    with_: list[Served] = []
    chosen = []
    for index, talk in enumerate(given):
        others = [*given[:index], *given[index + 1 :]]
        weights = fitted([one.learned for one in others], np.arange(len(talk.names))).weights
        weight = best_weight([(one.with_alike, weights) for one in others])
        chosen.append(weight)
        without += served([(talk.with_alike, weights)], 0.0)
        with_ += served([(talk.with_alike, weights)], weight)
    return without, with_, chosen


def report(given: Sequence[Talk], made: Sequence[Talk], embeds: Embeds = Lsa) -> str:
    """The table, the weights, and the cost."""
    rows = [TalkRows(talk, embeds) for talk in given]
    without, with_, chosen = left_out(rows)
    ours = np.array([WEIGHTS[name] for name in rows[0].names])
    weight = best_weight([(one.with_alike, ours) for one in rows])
    unseen: list[Weighted] = [(TalkRows(talk, embeds).with_alike, ours) for talk in made]
    kept, hops = SIMILARITY["alike"], CATEGORIES[1]
    seen: list[Weighted] = [(one.with_alike, ours) for one in rows]
    tried = sorted({kept, weight})
    lines = [
        ("LoCoMo, left out, words", without),
        ("LoCoMo, left out, words and vectors", with_),
        (f"LoCoMo, {hops}, words", _of_category(without, hops)),
        (f"LoCoMo, {hops}, words and vectors", _of_category(with_, hops)),
        *((f"LoCoMo, words fitted on it, vectors at {one:g}", served(seen, one)) for one in tried),
        ("made-up talks, words", served(unseen, 0.0)),
        *((f"made-up talks, words and vectors, at {one:g}", served(unseen, one)) for one in tried),
    ]
    weights = ", ".join(f"{one:g}" for one in chosen)
    return f"{_table(lines)}\n\nWeights chosen: {weights} with one talk left out, {weight:g} on all; used: {kept:g}."


def costs(talk: Talk) -> str:
    """The cost of a question, apart from the call of the model."""
    took = "\n".join(f"* {name}: {milliseconds:.0f} ms" for name, milliseconds in _costs(talk))
    return f"What a question costs beside the call, on two busy cores:\n\n{took}"


def _table(lines: Iterable[tuple[str, Sequence[Served]]]) -> str:
    head = "| evidence recall, % | questions | 5 % | 10 % | 20 % |\n|---|---:|---:|---:|---:|"
    shown = (
        f"| {name} | {len(found)} | {' | '.join(f'{mean(found, share):.1f}' for share in range(SHOWN))} |"
        for name, found in lines
    )
    return "\n".join([head, *shown])


def _of_category(found: Sequence[Served], category: str) -> list[Served]:
    return [one for one in found if one[0].category == category]


def _costs(talk: Talk) -> Iterator[tuple[str, float]]:
    """Milliseconds of one question: for ranking by words, and for comparing vectors of so many dimensions."""
    corpus, asked = corpus_of(talk), talk.questions[0].text
    yield (
        f"ranking {len(corpus.sources)} messages by words",
        _took(lambda: Ranking(corpus, completed_question(asked, corpus))),
    )
    for dimensions in COSTED:
        question = packed_vector([1.0] * dimensions) or b""
        vectors = {source.seq: question for source in corpus.sources}
        yield f"comparing vectors of {dimensions} numbers", _took(lambda: cosines(question, vectors))  # noqa: B023 - at once


def _took(work: Callable[[], object]) -> float:
    """The least of some times, which other work on the machine lengthens least."""
    times = []
    for _ in range(TIMES):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1_000 * min(times)
