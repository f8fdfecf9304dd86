"""Fitting the weights of recall: softmax of each answer against other messages, leave one talk out. Needs numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.core.retrieval.choose import LINE, PRICE
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.features import features
from app.core.retrieval.naming import asked_of
from app.core.retrieval.weights import CHOSEN
from app.core.text.token_counts import MESSAGE_OVERHEAD
from bench.recall_talks import CATEGORIES, Asked, Talk, corpus_of, nameless, with_long_answers
from bench.recall_texting import texted

SHARES: Final = (0.05, 0.10, 0.20, 0.50)
MOST: Final = 0.9
"""Of the tokens, as in the service."""
_NEAREST: Final = 200
"""Messages per question that are learned from, beside the evidence: those to which matches spread most."""
_STEPS: Final = 200
_RATE: Final = 0.05
_PENALTY: Final = 0.1
"""On the square of the weights of standardised features."""

_KINDS: Final[Mapping[str, Callable[[Talk], Talk] | None]] = {
    "as it is": None,
    "without names": nameless,
    "as two people text": texted,
    "with long answers": with_long_answers,
}

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question: a line of features per piece, and which messages hold the answer."""

    asked: Asked
    features: Array
    holds: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The questions of one talk."""

    costs: Array
    owners: Array
    """The message of each piece."""
    total: int
    rows: tuple[Row, ...]


def rows_of(talk: Talk) -> tuple[list[str], Rows]:
    """The names of the features, and the talk's questions."""
    corpus = corpus_of(talk)
    names: list[str] = []
    rows = []
    for asked in talk.questions:
        found = features(corpus, asked_of(asked.text, corpus))
        names = list(found)
        holds = np.zeros(len(corpus.sources))
        holds[[seq - 1 for seq in asked.evidence]] = 1
        rows.append(Row(asked=asked, features=np.array([found[name] for name in names]).T, holds=holds))
    owners = np.array([piece.owner for piece in corpus.pieces])
    return names, Rows(costs=_costs(corpus), owners=owners, total=talk.tokens, rows=tuple(rows))


def _of_messages(rows: Rows, values: Array) -> Array:
    """For each message the most of its pieces."""
    best = np.full(len(rows.costs), -np.inf)
    np.maximum.at(best, rows.owners, values)
    return best


def fitted(given: Sequence[Rows], nearest: int) -> Array:
    """Weights of the raw features; ``nearest`` is the column by which messages are chosen to learn from.

    Of a long message the piece learns to which matches spread most.
    """
    groups = [group for rows in given for row in rows.rows for group in _groups(rows, row, nearest)]
    lengths = [len(one) for one, _ in groups]
    values = np.concatenate([one for one, _ in groups])
    place, starts = np.repeat(np.arange(len(groups)), lengths), np.concatenate([[0], np.cumsum(lengths)[:-1]])
    share = np.array([one for _, one in groups])
    share, wanted = (share / share.sum())[place], np.isin(np.arange(len(values)), starts)
    spread = values.std(0) + 1e-6
    values = (values - values.mean(0)) / spread
    weights, mean, square = (np.zeros(values.shape[1]) for _ in range(3))
    for step in range(1, _STEPS + 1):
        scores = values @ weights
        grown = np.exp(scores - np.maximum.reduceat(scores, starts)[place])
        likely = grown / np.add.reduceat(grown, starts)[place]
        slope = -(values.T @ ((wanted - likely) * share)) + _PENALTY * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        weights -= _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights / spread


def recalls(rows: Rows, weights: Array) -> Iterator[tuple[Asked, tuple[bool, ...]]]:
    """Each question, and whether packing by these weights serves all of its evidence, at each share."""
    for row in rows.rows:
        scores = _of_messages(rows, row.features @ weights)
        order = np.argsort(-(scores - PRICE * np.log(rows.costs)), kind="stable")
        yield row.asked, tuple(_packed(rows, row, order, share) for share in SHARES)


def report(talks: Sequence[Talk]) -> str:
    """Leave-one-out results, and the weights of all talks together as they stand in ``weights.py``.

    The same weights are tried on the left-out talk as it is, as two people text, and with long answers.
    """
    found = [rows_of(talk) for talk in talks]
    names, given = found[0][0], [rows for _, rows in found]
    nearest = names.index("spread")
    left_out = [fitted(given[:index] + given[index + 1 :], nearest) for index in range(len(given))]
    lines = [f"| leave one talk out | {' | '.join(f'{share:.0%}' for share in SHARES)} |"]
    for kind, change in _KINDS.items():
        changed = given if change is None else [rows_of(change(talk))[1] for talk in talks]
        pairs = zip(changed, left_out, strict=True)
        served = [one for rows, weights in pairs for one in recalls(rows, weights)]
        lines.append(_line(kind, [shares for _, shares in served]))
        hops = [shares for asked, shares in served if asked.category == CATEGORIES[1]]
        lines.append(_line(f"{kind}, {CATEGORIES[1]}", hops))
    weights = dict(zip(names, fitted(given, nearest), strict=True))
    shown = (f'    "{name}": {float(value):.2f},' for name, value in weights.items() if name not in CHOSEN)
    return "\n".join([*lines, "", *shown])


def _line(name: str, served: Sequence[tuple[bool, ...]]) -> str:
    means = (sum(one[place] for one in served) / max(len(served), 1) for place in range(len(SHARES)))
    return f"| {name} | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |"


def _groups(rows: Rows, row: Row, nearest: int) -> Iterator[tuple[Array, float]]:
    """Each message that holds the answer, first, against those that do not, and its share of the question."""
    by_spread = np.lexsort((-row.features[:, nearest], rows.owners))
    _, first = np.unique(rows.owners[by_spread], return_index=True)
    features = row.features[by_spread[first]]
    near = np.argsort(-features[:, nearest])[:_NEAREST]
    others, held = features[near[row.holds[near] == 0]], np.flatnonzero(row.holds)
    for index in held:
        yield np.concatenate([features[[index]], others]), 1 / len(held)


def _packed(rows: Rows, row: Row, order: Array, share: float) -> bool:
    room, wanted = math.floor(MOST * share * rows.total), {seq - 1 for seq in row.asked.evidence}
    for index in order:
        if rows.costs[index] <= room:
            room -= rows.costs[index]
            wanted.discard(int(index))
    return not wanted


def _costs(corpus: Corpus) -> Array:
    return np.array([max(source.tokens - MESSAGE_OVERHEAD, 1) + LINE for source in corpus.sources])
