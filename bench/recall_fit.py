"""Fits the weights of recall: softmax of each answer against other messages, leaving one talk out. Needs numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from app.core.retrieval.corpus import LINE_TOKENS, Corpus
from app.core.retrieval.features import features
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import LENGTH_PRICE
from app.core.text.token_counts import MESSAGE_OVERHEAD
from bench.fidelity_made import FOLDER as MADE
from bench.recall_talks import CATEGORIES, Talk, TalkQuestion, corpus_of, nameless, talks, with_long_answers
from bench.recall_texting import texted

SHARES: Final = (0.05, 0.10, 0.20, 0.50)
MAX_SHARE: Final = 0.9
"""The share of the tokens that recall may take, as in the service."""
NEAREST: Final = "spread"
"""The feature by which messages are chosen to learn from."""
_NEAREST: Final = 200
"""How many messages per question are learned from besides the evidence: those to which matches spread most."""
_STEPS: Final = 30
"""The most steps of Newton's method; about ten are enough."""
_CLOSE: Final = 1e-3
"""The fit ends when a step changes every standardised weight by less than this."""
_MIN_STEP: Final = 1e-3
"""The smallest part of a step that is tried."""
_PENALTY: Final = 0.1
"""The penalty on the square of the weights of standardised features."""

KINDS: Final[Mapping[str, Callable[[Talk], Talk] | None]] = {
    "as it is": None,
    "without names": nameless,
    "as two people text": texted,
    "with long answers": with_long_answers,
}

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question: a row of features per piece, and the messages that hold the answer."""

    asked: TalkQuestion
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is learned from a talk: each message that holds an answer, with messages that do not."""

    values: Array
    """A row of features per message."""
    starts: Array
    """Where the rows of each answer begin: first its own row, then those of other messages."""
    places: Array
    """The number of the answer that each row belongs to."""
    shares: Array
    """The weight of each answer: the answers of a question add up to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Weights, and the curvature of the loss at them: the second derivatives."""

    weights: Array
    curvature: Array


def rows_of(talk: Talk) -> tuple[list[str], Rows]:
    """The names of the features, and the talk's questions."""
    corpus = corpus_of(talk)
    names: list[str] = []
    rows = []
    for asked in talk.questions:
        found = features(corpus, completed_question(asked.text, corpus))
        names = list(found)
        holds = np.zeros(len(corpus.sources))
        holds[[seq - 1 for seq in asked.evidence]] = 1
        values = np.array([found[name] for name in names], dtype=np.float32)
        rows.append(Row(asked=asked, features=values.T, holds=holds))
    owners = np.array([piece.owner for piece in corpus.pieces])
    return names, Rows(costs=_costs(corpus), owners=owners, total=talk.tokens, rows=tuple(rows))


def learned_from(rows: Rows, nearest: int) -> Learned:
    """What is learned from a talk; ``nearest`` is the column by which messages are chosen.

    A long message is represented by the piece to which matches spread most.
    """
    groups = [group for row in rows.rows for group in _groups(rows, row, nearest)]
    lengths = [len(one) for one, _ in groups]
    return Learned(
        values=np.concatenate([one for one, _ in groups]).astype(np.float64),
        starts=np.concatenate([[0], np.cumsum(lengths)[:-1]]),
        places=np.repeat(np.arange(len(groups)), lengths),
        shares=np.array([share for _, share in groups]),
    )


def learned_from_made_talks(names: Sequence[str]) -> list[Learned]:
    """What is learned from the odd-numbered questions of the made-up talks; each counts for the next one too."""
    given = (talk for path in sorted(MADE.glob("*.jsonl")) for talk in talks(path))
    made = (replace(talk, questions=talk.questions[0::2]) for talk in given)
    found = (learned_from(rows_of(talk)[1], names.index(NEAREST)) for talk in made)
    return [replace(one, shares=2 * one.shares) for one in found]


def fitted(given: Sequence[Learned], columns: Array, start: Array | None = None) -> Fit:
    """Fit the weights of these columns of the raw features by Newton's method; there is one optimum.

    Args:
        given: What is learned from the talks.
        columns: The features that are fitted.
        start: The weights to begin with; good ones make it faster.
    """
    weights = np.zeros(len(columns)) if start is None else start
    penalty = _PENALTY * _spread(given, columns) ** 2
    loss, slope, curvature = _loss(given, columns, weights, penalty)
    for _ in range(_STEPS):
        step, part = np.linalg.solve(curvature, slope), 1.0
        while True:
            found = _loss(given, columns, weights - part * step, penalty)
            if found[0] <= loss or part < _MIN_STEP:
                break
            part /= 2
        weights, (loss, slope, curvature) = weights - part * step, found
        if np.abs(part * step * np.sqrt(penalty / _PENALTY)).max() < _CLOSE:
            break
    return Fit(weights=weights, curvature=curvature)


def _spread(given: Sequence[Learned], columns: Array) -> Array:
    """The standard deviation of each feature, never 0."""
    return np.concatenate([one.values for one in given])[:, columns].std(0) + 1e-6


def _loss(given: Sequence[Learned], columns: Array, weights: Array, penalty: Array) -> tuple[float, Array, Array]:
    """The loss of these weights (how unlikely the answers are), its gradient and its curvature."""
    total = sum(one.shares.sum() for one in given)
    loss = float(penalty @ weights**2) / 2
    slope, curvature = penalty * weights, np.diag(penalty)
    for one in given:
        values, shares = one.values[:, columns], one.shares / total
        scores = values @ weights
        scores -= np.maximum.reduceat(scores, one.starts)[one.places]
        grown = np.exp(scores)
        sums = np.add.reduceat(grown, one.starts)
        likely = grown / sums[one.places]
        means = np.add.reduceat(values * likely[:, None], one.starts, axis=0)
        loss += float(shares @ (np.log(sums) - scores[one.starts]))
        slope = slope + shares @ (means - values[one.starts])
        weighed = values * (likely * shares[one.places])[:, None]
        curvature = curvature + values.T @ weighed - means.T @ (means * shares[:, None])
    return loss, slope, curvature


def recalls(
    rows: Rows, weights: Array, shares: Sequence[float] = SHARES
) -> Iterator[tuple[TalkQuestion, tuple[bool, ...]]]:
    """Each question, with whether packing by these weights serves all its evidence at each share."""
    rooms = [math.floor(MAX_SHARE * share * rows.total) for share in shares]
    starts, costs = np.flatnonzero(np.diff(rows.owners, prepend=-1)), rows.costs.tolist()
    price, weights = LENGTH_PRICE * np.log(rows.costs), weights.astype(np.float32)
    for row in rows.rows:
        order = np.argsort(price - np.maximum.reduceat(row.features @ weights, starts), kind="stable").tolist()
        wanted = {seq - 1 for seq in row.asked.evidence}
        yield row.asked, tuple(_packed(costs, order, room, wanted) for room in rooms)


def report(locomo: Sequence[Talk]) -> str:
    """Leave-one-out results, and the weights fitted on all talks, as they are in ``weights.py``.

    The same weights are tried on the left-out talk as it is, as text messages, and with long answers.
    """
    found = [rows_of(talk) for talk in locomo]
    names, given = found[0][0], [rows for _, rows in found]
    made = learned_from_made_talks(names)
    learned = [learned_from(rows, names.index(NEAREST)) for rows in given]
    columns = np.arange(len(names))
    whole = fitted([*learned, *made], columns).weights
    others = ([*learned[:index], *learned[index + 1 :], *made] for index in range(len(given)))
    left_out = [fitted(each, columns, whole).weights for each in others]
    lines = [f"| leave one talk out | {' | '.join(f'{share:.0%}' for share in SHARES)} |"]
    for kind, change in KINDS.items():
        changed = given if change is None else [rows_of(change(talk))[1] for talk in locomo]
        pairs = zip(changed, left_out, strict=True)
        served = [one for rows, weights in pairs for one in recalls(rows, weights)]
        lines.append(_line(kind, [shares for _, shares in served]))
        hops = [shares for asked, shares in served if asked.category == CATEGORIES[1]]
        lines.append(_line(f"{kind}, {CATEGORIES[1]}", hops))
    weights = dict(zip(names, whole, strict=True))
    shown = (f'    "{name}": {float(value):.2f},' for name, value in weights.items())
    return "\n".join([*lines, "", *shown])


def _line(name: str, served: Sequence[tuple[bool, ...]]) -> str:
    means = (sum(one[place] for one in served) / max(len(served), 1) for place in range(len(SHARES)))
    return f"| {name} | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |"


def _groups(rows: Rows, row: Row, nearest: int) -> Iterator[tuple[Array, float]]:
    """For each message that holds the answer, its row followed by rows of messages that do not, and its weight."""
    by_spread = np.lexsort((-row.features[:, nearest], rows.owners))
    _, first = np.unique(rows.owners[by_spread], return_index=True)
    features = row.features[by_spread[first]]
    near = np.argsort(-features[:, nearest])[:_NEAREST]
    others, held = features[near[row.holds[near] == 0]], np.flatnonzero(row.holds)
    for index in held:
        yield np.concatenate([features[[index]], others]), 1 / len(held)


def _packed(costs: Sequence[int], order: Sequence[int], room: int, wanted: Collection[int]) -> bool:
    missing = set(wanted)
    for index in order:
        if costs[index] <= room:
            room -= costs[index]
            missing.discard(index)
            if not missing:
                return True
    return False


def _costs(corpus: Corpus) -> Array:
    return np.array([max(source.tokens - MESSAGE_OVERHEAD, 1) + LINE_TOKENS for source in corpus.sources])
