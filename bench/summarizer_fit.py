"""Fitting how likely a later question rests on a sentence, on conversations with questions. Needs numpy.

``python -m bench.summarizer_fit [--data FILE …] [--state]`` cuts each conversation into spans of ``SPAN`` messages and
marks, of each message that a later question rests on, the sentence that shares most words with question and answer. A
logistic regression over ``app.core.reading.later_use.features`` is fitted with every conversation weighing the same,
and measured with each conversation left out: of the questions, how many have a marked sentence among those chosen by
worth per token within a share of the span's tokens. Beside it the worth without these odds, and a random choice.
``--state`` plays each conversation as ``bench.state_evidence`` does, with the weights fitted on the others.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from app.core.model.conversation import Message
from app.core.reading import later_use
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import score_all
from app.core.text.language import detect
from app.core.text.token_counts import estimate_text
from app.core.text.words import stems
from bench.fidelity_made import FOLDER
from bench.recall_talks import Talk, said, talks
from bench.report import print_table
from bench.state_evidence import answered
from bench.survival import DATA

SPAN: Final = 60
"""Messages."""
SHARES: Final = (0.1, 0.25)
"""Of a span's tokens."""
_LINE: Final = 4
"""Tokens beside a sentence."""
_POWER: Final = 0.7
"""Of the cost, by which worth is divided."""
_PENALTY: Final = 1e-3
_STEPS: Final = 60
_LEAST: Final = 0.01
_WINDOWS: Final = (8_000, 32_000)
_WITHOUT: Final = {"constant": math.log(later_use.NEUTRAL_ODDS)}
"""Weights with which every sentence keeps its worth."""

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""
Weights = Mapping[str, float]
"""By the name of a feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some messages as sentences."""

    passages: Sequence[Passage]
    features: Array
    costs: Array
    asked: Array
    """How many questions rest on each sentence."""
    tokens: int


def spans_of(talk: Talk) -> Iterator[Span]:
    """A conversation in spans."""
    messages = said(talk.messages).messages
    wanted: dict[int, list[frozenset[str]]] = {}
    for asked in talk.questions:
        for seq in asked.evidence:
            wanted.setdefault(seq, []).append(frozenset(stems(f"{asked.answer} {asked.text}")))
    for start in range(0, len(messages), SPAN):
        span = _span(messages[start : start + SPAN], wanted)
        if span is not None:
            yield span


def _span(messages: Sequence[Message], wanted: dict[int, list[frozenset[str]]]) -> Span | None:
    passages = passages_of(messages, detect("\n".join(message.content for message in messages)) or "en")
    if not passages:
        return None
    by_message: dict[int, list[Passage]] = {}
    for passage in passages:
        by_message.setdefault(passage.seq, []).append(passage)
    asked: Counter[int] = Counter()
    for seq, found in by_message.items():
        for words in wanted.get(seq, ()):
            asked[max(found, key=lambda one: (len(one.stems & words), -one.index)).index] += 1
    return Span(
        passages=passages,
        features=np.array([list(one.values()) for one in later_use.features(passages)]),
        costs=np.array([float(estimate_text(passage.spoken) + _LINE) for passage in passages]),
        asked=np.array([float(asked[passage.index]) for passage in passages]),
        tokens=sum(estimate_text(message.content) + _LINE for message in messages),
    )


def fitted(conversations: Sequence[Sequence[Span]]) -> Weights:
    """Weights of the features as they are, by Newton's method."""
    x = np.vstack([span.features for spans in conversations for span in spans])
    y = np.concatenate([np.minimum(span.asked, 1) for spans in conversations for span in spans])
    each = [np.full(sum(len(span.asked) for span in spans), 1.0) for spans in conversations]
    w = np.concatenate([one / len(one) for one in each]) / len(conversations)
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    mean[0], deviation[0] = 0, 1
    z = (x - mean) / deviation
    penalty = np.full(z.shape[1], _PENALTY)
    penalty[0] = 0
    b = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-z @ b))
        gradient = z.T @ (w * (p - y)) + penalty * b
        hessian = (z * (w * p * (1 - p))[:, None]).T @ z + np.diag(penalty + 1e-12)
        step = np.linalg.solve(hessian, gradient)
        b -= step
        if np.abs(step).max() < 1e-7:
            break
    raw = b / deviation
    raw[0] -= (raw[1:] * mean[1:]).sum()
    names = next(later_use.features(conversations[0][0].passages))
    return dict(zip(names, map(float, raw), strict=True))


def worth(span: Span, weights: Weights) -> Array:
    """What the offline summarizer takes each sentence to be worth with these weights."""
    with patch.object(later_use, "WEIGHTS", weights):
        return np.array([max(one.total, _LEAST) for one in score_all(span.passages)])


def found_share(spans: Sequence[Span], share: float, worths: Sequence[Array]) -> float:
    """Of the questions, how many have a marked sentence among those chosen."""
    hit = sum(span.asked[_chosen(span, share, of_span)].sum() for span, of_span in zip(spans, worths, strict=True))
    return float(hit / sum(span.asked.sum() for span in spans))


def _chosen(span: Span, share: float, worths: Array) -> list[int]:
    left = share * span.tokens
    chosen: list[int] = []
    for place in np.argsort(-worths / span.costs**_POWER):
        if span.costs[place] <= left:
            chosen.append(int(place))
            left -= span.costs[place]
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Print how well it does on what was left out, and the weights of all."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.summarizer_fit", description=description)
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.jsonl")), DATA])
    parser.add_argument("--state", action="store_true", help="whole states instead of sentences")
    given = parser.parse_args(argv)
    read = [talk for path in given.data for talk in talks(path)]
    conversations = [list(spans_of(talk)) for talk in read]
    left_out = [fitted([*conversations[:place], *conversations[place + 1 :]]) for place in range(len(read))]
    if given.state:
        _print_rows(_OF_STATES, [(talk.id, _of_state(talk, ours)) for talk, ours in zip(read, left_out, strict=True)])
        return 0
    rows = zip(read, conversations, left_out, strict=True)
    _print_rows(_OF_SENTENCES, [(talk.id, _of_sentences(spans, ours)) for talk, spans, ours in rows])
    print(json.dumps({name: round(weight, 3) for name, weight in fitted(conversations).items()}, indent=4))
    return 0


_OF_SENTENCES: Final = [f"{kind}, {share:.0%}" for share in SHARES for kind in ("with", "without", "random")]
_OF_STATES: Final = [f"{what}, {kind}" for what in ("named", "told") for kind in ("with", "without")]


def _of_sentences(spans: Sequence[Span], weights: Weights) -> list[float]:
    chance = np.random.default_rng(1)
    kinds = [
        [worth(span, weights) for span in spans],
        [worth(span, _WITHOUT) for span in spans],
        [chance.random(len(span.costs)) for span in spans],
    ]
    return [found_share(spans, share, worths) for share in SHARES for worths in kinds]


def _of_state(talk: Talk, weights: Weights) -> list[float]:
    kinds = []
    for one in (weights, _WITHOUT):
        with patch.object(later_use, "WEIGHTS", one):
            kinds.append([asked for window in _WINDOWS for asked in answered(talk, window)])
    shares = [[np.mean([asked.named for asked in kind]), np.mean([asked.told for asked in kind])] for kind in kinds]
    return [float(shares[kind][what]) for what in (0, 1) for kind in (0, 1)]


def _print_rows(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    means = np.mean([values for _, values in rows], axis=0)
    listed = [[name, *(f"{100 * value:.1f}" for value in values)] for name, values in [*rows, ("mean", means)]]
    print_table(["conversation", *heads], listed)


if __name__ == "__main__":
    sys.exit(main())
