"""Fitting what the offline summarizer takes a sentence to be worth, on conversations with questions. Needs numpy.

``python -m bench.summarizer_fit [--data FILE …]`` cuts each conversation into spans of ``SPAN`` messages and marks, of
each message that a later question rests on, the sentence that shares most words with question and answer. A logistic
regression over plain features is fitted with every conversation weighing the same, and measured with each conversation
left out: of the questions, how many have a marked sentence among those chosen by worth per token within a share of the
span's tokens. Beside it: the worth that the offline summarizer gives sentences now, and a random choice. The features
know no topic and no cue: how much a sentence says, how rare its words are within the span, who says it and how, whether
it answers a question, and whether it tells a time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.core.model.conversation import Message
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import score_all
from app.core.text.language import detect
from app.core.text.relative import is_relative
from app.core.text.token_counts import estimate_text
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems
from bench.fidelity_made import FOLDER
from bench.recall_talks import Talk, said, talks
from bench.report import print_table
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
_CHARACTERS: Final = 6
"""Of a word, about: some languages write without blanks."""
_MOST_CAPITALS: Final = 4
_LEAST: Final = 0.01

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""
Scorer = Callable[["Span"], Array]
"""The worth of each sentence of a span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some messages as sentences."""

    features: Array
    worth: Array
    """As the offline summarizer sees it now."""
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
        features=np.array([list(one.values()) for one in features(passages)]),
        worth=np.array([max(worth.total, _LEAST) for worth in score_all(passages)]),
        costs=np.array([float(estimate_text(passage.spoken) + _LINE) for passage in passages]),
        asked=np.array([float(asked[passage.index]) for passage in passages]),
        tokens=sum(estimate_text(message.content) + _LINE for message in messages),
    )


def features(passages: Sequence[Passage]) -> Iterator[Mapping[str, float]]:
    """By name, for each passage of a span in order. Linear in the number of passages."""
    frequency = Counter(stem for passage in passages for stem in passage.stems)
    sentences = Counter(passage.seq for passage in passages)
    total = math.log(max(len(passages), 2))
    said: set[str] = set()
    before: Passage | None = None
    for passage in passages:
        content = passage.stems - GENERIC_STEMS - FRAME_STEMS
        words = passage.text.split()
        length = max(len(words), len(passage.text) // _CHARACTERS, 1)
        people = float(passage.is_named)
        yield {
            "constant": 1.0,
            "content": math.sqrt(len(content)),
            "rare": _mean(1 - math.log(frequency[stem]) / total for stem in content),
            "new": _mean(float(stem not in said) for stem in content),
            "generic": 1 - len(content) / max(len(passage.stems), 1),
            "filler": (len(passage.stems) - len(content)) / length,
            "name": float(any(one.text.lower() not in passage.values for one in passage.identifiers)),
            "capitals": float(min(sum(map(_is_capital, words[1:])), _MOST_CAPITALS)),
            "digits": float(any(character.isdigit() for character in passage.text)),
            "relative time": float(is_relative(passage.text)),
            "question": float(passage.is_question),
            "exclamation": float("!" in passage.text or "！" in passage.text),
            "reply": float(before is not None and before.seq == passage.seq - 1 and before.is_question),
            "alone": float(sentences[passage.seq] == 1),
            "sentences": math.log(sentences[passage.seq]),
            "pasted": float(passage.is_pasted),
            "assistant": float(passage.role == "assistant"),
            "people, length": people * math.log(length),
            "people, content": people * math.sqrt(len(content)),
            "people, user": people * (passage.role == "user"),
        }
        said |= content
        before = passage


def _mean(values: Iterator[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _is_capital(word: str) -> bool:
    """A capital that no pronoun explains: "I", "I'm" and "I’d" are written so in English."""
    return word[:1].isupper() and word.partition("'")[0].partition("’")[0] != "I"


def fitted(conversations: Sequence[Sequence[Span]]) -> Array:
    """Weights of the features as they are, the constant first, by Newton's method."""
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
    return raw


def found_share(spans: Sequence[Span], share: float, score: Scorer) -> float:
    """Of the questions, how many have a marked sentence among those chosen."""
    hit = sum(span.asked[_chosen(span, share, score)].sum() for span in spans)
    return float(hit / sum(span.asked.sum() for span in spans))


def _chosen(span: Span, share: float, score: Scorer) -> list[int]:
    worth = score(span) / span.costs**_POWER
    left = share * span.tokens
    chosen: list[int] = []
    for place in np.argsort(-worth):
        if span.costs[place] <= left:
            chosen.append(int(place))
            left -= span.costs[place]
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Print how well it does on what was left out, and the weights of all."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.summarizer_fit", description=description)
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.jsonl")), DATA])
    given = parser.parse_args(argv)
    names, conversations = [], []
    for path in given.data:
        for talk in talks(path):
            names.append(talk.id)
            conversations.append(list(spans_of(talk)))
    chance = np.random.default_rng(1)
    rows: list[list[str]] = []
    for number, (name, spans) in enumerate(zip(names, conversations, strict=True)):
        others = fitted([*conversations[:number], *conversations[number + 1 :]])
        scorers: list[Scorer] = [
            lambda span, others=others: np.exp(span.features @ others),  # type: ignore[misc]  # bound where it is made
            lambda span: span.worth,
            lambda span: chance.random(len(span.costs)),
        ]
        rows.append([name, *(f"{100 * found_share(spans, s, score):.1f}" for s in SHARES for score in scorers)])
    means = [f"{np.mean([float(row[column]) for row in rows]):.1f}" for column in range(1, len(rows[0]))]
    heads = [f"{kind}, {share:.0%}" for share in SHARES for kind in ("fitted", "now", "random")]
    print_table(["conversation", *heads], [*rows, ["mean", *means]])
    weights = fitted(conversations)
    named = dict(zip(next(features(passages_of(said([_ONE]).messages, "en"))), map(float, weights), strict=True))
    print(json.dumps({name: round(weight, 3) for name, weight in named.items()}, indent=4))
    return 0


_ONE: Final = {"role": "user", "content": "We meet on Monday."}


if __name__ == "__main__":
    sys.exit(main())
