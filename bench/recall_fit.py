"""Fitting the weights of recall: list-wise softmax over each question's messages, leave one talk out. Needs numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.domain.recall.choose import LINE, PRICE
from app.domain.recall.corpus import Corpus
from app.domain.recall.features import features
from app.domain.recall.question import question_of
from app.domain.weighing.tokens import MESSAGE_OVERHEAD
from bench.recall_talks import Asked, Talk, corpus_of

SHARES: Final = (0.05, 0.10, 0.20, 0.50)
MOST: Final = 0.9
"""Of the tokens, as in the service."""
_NEAREST: Final = 200
"""Messages per question that are learned from, beside the evidence: those to which matches spread most."""
_STEPS: Final = 200
_RATE: Final = 0.05
_PENALTY: Final = 0.02
"""On the square of the weights of standardised features."""

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question: a line of features per message, and which messages hold the answer."""

    asked: Asked
    features: Array
    holds: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The questions of one talk."""

    costs: Array
    total: int
    rows: tuple[Row, ...]


def rows_of(talk: Talk) -> tuple[list[str], Rows]:
    """The names of the features, and the talk's questions."""
    corpus = corpus_of(talk)
    names: list[str] = []
    rows = []
    for asked in talk.questions:
        found = features(corpus, question_of(asked.text, corpus.speakers))
        names = list(found)
        holds = np.zeros(len(corpus.sources))
        holds[[seq - 1 for seq in asked.evidence]] = 1
        best = _best_pieces(corpus, found["spread"])
        rows.append(Row(asked=asked, features=np.array([found[name] for name in names]).T[best], holds=holds))
    return names, Rows(costs=_costs(corpus), total=talk.tokens, rows=tuple(rows))


def _best_pieces(corpus: Corpus, spread: Sequence[float]) -> list[int]:
    """For each message the piece to which matches spread most."""
    best: dict[int, int] = {}
    for index, piece in enumerate(corpus.pieces):
        if piece.owner not in best or spread[index] > spread[best[piece.owner]]:
            best[piece.owner] = index
    return [best[owner] for owner in range(len(corpus.sources))]


def fitted(given: Sequence[Rows], nearest: int) -> Array:
    """Weights of the raw features; ``nearest`` is the column by which messages are chosen to learn from."""
    groups = [_group(row, nearest) for rows in given for row in rows.rows]
    lengths = [len(wanted) for _, wanted in groups]
    values, wanted = np.concatenate([one for one, _ in groups]), np.concatenate([one for _, one in groups])
    place, starts = np.repeat(np.arange(len(groups)), lengths), np.concatenate([[0], np.cumsum(lengths)[:-1]])
    spread = values.std(0) + 1e-6
    values = (values - values.mean(0)) / spread
    weights, mean, square = (np.zeros(values.shape[1]) for _ in range(3))
    for step in range(1, _STEPS + 1):
        scores = values @ weights
        grown = np.exp(scores - np.maximum.reduceat(scores, starts)[place])
        likely = grown / np.add.reduceat(grown, starts)[place]
        slope = -(values.T @ (wanted - likely)) / len(groups) + _PENALTY * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        weights -= _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights / spread


def recalls(rows: Rows, weights: Array) -> Iterator[tuple[Asked, tuple[bool, ...]]]:
    """Each question, and whether packing by these weights serves all of its evidence, at each share."""
    for row in rows.rows:
        order = np.argsort(-(row.features @ weights - PRICE * np.log(rows.costs)), kind="stable")
        yield row.asked, tuple(_packed(rows, row, order, share) for share in SHARES)


def report(talks: Sequence[Talk]) -> str:
    """Leave-one-out results, and the weights of all talks together as they stand in ``weights.py``."""
    found = [rows_of(talk) for talk in talks]
    names, given = found[0][0], [rows for _, rows in found]
    nearest = names.index("spread")
    left_out = [
        served
        for index, rows in enumerate(given)
        for _, served in recalls(rows, fitted(given[:index] + given[index + 1 :], nearest))
    ]
    shares = [sum(served[place] for served in left_out) / len(left_out) for place in range(len(SHARES))]
    lines = [f"leave one talk out, at {share:.0%}: {value:.1%}" for share, value in zip(SHARES, shares, strict=True)]
    weights = dict(zip(names, fitted(given, nearest), strict=True))
    return "\n".join([*lines, "", *(f'    "{name}": {float(value):.2f},' for name, value in weights.items())])


def _group(row: Row, nearest: int) -> tuple[Array, Array]:
    kept = np.union1d(np.argsort(-row.features[:, nearest])[:_NEAREST], np.flatnonzero(row.holds))
    return row.features[kept], row.holds[kept] / row.holds.sum()


def _packed(rows: Rows, row: Row, order: Array, share: float) -> bool:
    room, wanted = math.floor(MOST * share * rows.total), {seq - 1 for seq in row.asked.evidence}
    for index in order:
        if rows.costs[index] <= room:
            room -= rows.costs[index]
            wanted.discard(int(index))
    return not wanted


def _costs(corpus: Corpus) -> Array:
    return np.array([max(source.tokens - MESSAGE_OVERHEAD, 1) + LINE for source in corpus.sources])
