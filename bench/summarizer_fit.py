"""Fits the likelihood that a sentence is worth remembering, on conversations with questions or labels. Needs numpy.

``python -m bench.summarizer_fit [--data FILE …] [--state]`` fits the logistic regression of
``app.core.reading.importance`` on two kinds of sentences; every conversation has the same weight:

* those that careful readers would keep (``bench/summarizer_labels``), alone or with the sentences before them, and
* those that share most words with a later question and its answer, in the messages that hold the answer.

It is measured with each conversation left out. *Found*: the share of the questions with such a sentence among those
chosen by worth per token, within a share of the tokens of a span of ``SPAN`` messages. *Precision*: the average
precision of the readers' sentences. Both are compared with equal likelihoods for all sentences, and a random choice.
``--state`` plays each conversation as ``bench.state_evidence`` does, with the weights fitted on the others: it counts
the questions *evidence* and *answer*, and *kept*, the share of entries that say what readers would keep.
``--kept`` prints the latter with the weights as they are, for the conversations with labels and for those that nothing
is fitted on (``HELD``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit("numpy is not installed: pip install --no-deps --require-hashes -r requirements-bench.lock")

from app.core.model.conversation import Message
from app.core.model.state import StateEntry
from app.core.reading import importance
from app.core.reading.passages import Passage, passages_of
from app.core.reading.scoring import score_all
from app.core.state.apply import served
from app.core.text.language import detect
from app.core.text.token_counts import estimate_text
from app.core.text.words import stems
from bench.fidelity_made import FOLDER
from bench.recall_talks import Talk, replay_of, talks
from bench.report import print_table
from bench.state_evidence import answered, played
from bench.survival import DATA

LABELS: Final = Path(__file__).resolve().parent / "summarizer_labels"
HELD: Final = LABELS / "held"
"""Labels of conversations that nothing is fitted on."""
PLANNED: Final = Path(__file__).resolve().parent / "trust" / "conversations"
SPAN: Final = 60
"""Messages of a span."""
SHARES: Final = (0.1, 0.25)
"""The shares of a span's tokens within which sentences are chosen."""
_LINE: Final = 4
"""Tokens that a sentence costs in addition to its own."""
_POWER: Final = 0.7
"""The power of the cost by which worth is divided."""
_PENALTY: Final = 3e-3
_STEPS: Final = 60
_MIN_SCORE: Final = 0.01
_WINDOWS: Final = (8_000, 32_000)
_WITHOUT: Final[Mapping[str, float]] = {}
"""Weights with which every sentence is equally likely."""

Array = Any
"""``numpy.ndarray``; numpy is installed for benches only."""
Weights = Mapping[str, float]
"""Weights by the names of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The sentences of a conversation that readers would keep, by message, and those that each one needs."""

    talk: str
    sentences: Mapping[tuple[int, str], Sequence[tuple[int, str]]]


def labels_of(folder: Path = LABELS) -> Mapping[str, Labels]:
    """The labels by conversation."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        listed = [*row["keep"], *row["context"]]
        needs = {_place(one): [_place(other) for other in one.get("with", ())] for one in listed}
        found[row["talk"]] = Labels(talk=row["talk"], sentences=needs)
    return found


def _place(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["seq"], row["text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some messages, split into sentences."""

    passages: Sequence[Passage]
    features: Array
    costs: Array
    asked: Array
    """How many questions each sentence answers, or whether readers would keep it."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSpans:
    """The data of one conversation."""

    talk: Talk
    asked: Sequence[Span] = ()
    labelled: Sequence[Span] = ()
    labels: Labels | None = field(default=None)


def spans_of(talk: Talk) -> Iterator[Span]:
    """A conversation in spans, with the sentences that answer its questions."""
    messages = replay_of(talk.messages).messages
    wanted: dict[int, list[frozenset[str]]] = {}
    for asked in talk.questions:
        for seq in asked.evidence:
            wanted.setdefault(seq, []).append(frozenset(stems(f"{asked.answer} {asked.text}")))
    for start in range(0, len(messages), SPAN):
        part = messages[start : start + SPAN]
        passages = _passages(part)
        if passages:
            yield _span(part, passages, _asked(passages, wanted))


def labelled_span(talk: Talk, labels: Labels) -> Span:
    """A conversation as one span, with the sentences that readers would keep."""
    messages = replay_of(talk.messages).messages
    passages = _passages(messages)
    kept = Counter(one.index for one in passages if (one.seq, one.text) in labels.sentences)
    return _span(messages, passages, kept)


def _passages(messages: Sequence[Message]) -> Sequence[Passage]:
    return passages_of(messages, detect("\n".join(message.content for message in messages)) or "en")


def _asked(passages: Sequence[Passage], wanted: Mapping[int, Sequence[frozenset[str]]]) -> Counter[int]:
    by_message: dict[int, list[Passage]] = {}
    for passage in passages:
        by_message.setdefault(passage.seq, []).append(passage)
    asked: Counter[int] = Counter()
    for seq, found in by_message.items():
        for words in wanted.get(seq, ()):
            asked[max(found, key=lambda one: (len(one.stems & words), -one.index)).index] += 1
    return asked


def _span(messages: Sequence[Message], passages: Sequence[Passage], asked: Counter[int]) -> Span:
    return Span(
        passages=passages,
        features=np.array(list(importance.features(passages))),
        costs=np.array([float(estimate_text(passage.text_with_speaker) + _LINE) for passage in passages]),
        asked=np.array([float(asked[passage.index]) for passage in passages]),
        tokens=sum(estimate_text(message.content) + _LINE for message in messages),
    )


def fitted(given: Sequence[LabelledSpans]) -> Weights:
    """Weights of the raw features by Newton's method; the offset for questions being rarer than labels is dropped."""
    groups = [(spans, place) for one in given for place, spans in enumerate((one.labelled, one.asked)) if spans]
    x = np.vstack([np.hstack([span.features, _column(span, of)]) for spans, of in groups for span in spans])
    y = np.concatenate([np.minimum(span.asked, 1) for spans, _ in groups for span in spans])
    sizes = [sum(len(span.asked) for span in spans) for spans, _ in groups]
    w = np.concatenate([np.full(size, 1 / size) for size in sizes]) / len(groups)
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
    return dict(zip(importance.FEATURES, map(float, raw[:-1]), strict=True))


def _column(span: Span, value: int) -> Array:
    return np.full((len(span.asked), 1), float(value))


def scores_of(span: Span, weights: Weights) -> Array:
    """The worth of each sentence for the offline summarizer, with these weights."""
    with patch.object(importance, "LIKELIHOOD_WEIGHTS", weights):
        return np.array([max(one.total, _MIN_SCORE) for one in score_all(span.passages)])


def found_share(spans: Sequence[Span], share: float, worths: Sequence[Array]) -> float:
    """The share of the questions that have a marked sentence among those chosen."""
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


def precision(spans: Sequence[Span], worths: Sequence[Array]) -> float:
    """The mean precision at each sentence that readers would keep, the worthiest first."""
    kept = np.concatenate([span.asked for span in spans])[np.argsort(-np.concatenate(list(worths)), kind="stable")] > 0
    return float((np.cumsum(kept) / np.arange(1, len(kept) + 1))[kept].mean())


def kept_share(entries: Sequence[StateEntry], labels: Labels) -> float:
    """The share of the entries about the conversation that say what readers would keep."""
    texts = [(entry.text, set(entry.from_seqs)) for entry in served(entries) if entry.role in {"fact", "open"}]
    return sum(_is_kept(text, seqs, labels) for text, seqs in texts) / max(len(texts), 1)


def _is_kept(text: str, seqs: set[int], labels: Labels) -> bool:
    found = {place for place in labels.sentences if place[0] in seqs and _stem(place[1]) in text}
    return any(
        not needed or any(_stem(other) in text for _, other in needed) for needed in map(labels.sentences.get, found)
    )


def _stem(sentence: str) -> str:
    return sentence.rstrip(".!… ")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the results on left-out conversations, and the weights fitted on all."""
    description = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.summarizer_fit", description=description)
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.jsonl")), DATA])
    parser.add_argument("--state", action="store_true", help="whole states instead of sentences")
    parser.add_argument("--weights", action="store_true", help="the weights alone")
    parser.add_argument(
        "--kept", action="store_true", help="entries that readers would keep, with the weights as they are"
    )
    given = parser.parse_args(argv)
    if given.kept:
        _print_kept()
        return 0
    materials = read(given.data)
    if not given.weights:
        heads, row = (_OF_STATES, _of_state) if given.state else (_OF_SENTENCES, _of_sentences)
        rows = []
        for one in materials:
            weights = fitted([other for other in materials if other is not one])
            rows.append((one.talk.id, row(one, weights)))
        _print_rows(heads, rows)
    if not given.state:
        print(json.dumps({name: round(weight, 3) for name, weight in fitted(materials).items()}, indent=4))
    return 0


def _print_kept() -> None:
    found = {talk.id: talk for path in [*FOLDER.glob("*.jsonl"), *PLANNED.glob("*.jsonl")] for talk in talks(path)}
    for folder in (LABELS, HELD):
        rows = [
            (name, [kept_share(played(found[name], window).entries, labels) for window in _WINDOWS])
            for name, labels in labels_of(folder).items()
        ]
        _print_rows([f"kept, {window}" for window in _WINDOWS], rows)


def read(paths: Sequence[Path]) -> list[LabelledSpans]:
    """The conversations of these files with questions, and all that have labels."""
    labels = labels_of()
    found = [talk for path in paths for talk in talks(path)]
    names = {talk.id for talk in found}
    more = [talk for name in labels if name not in names for talk in talks(PLANNED / f"{name}.jsonl")]
    return [
        LabelledSpans(
            talk=talk,
            asked=list(spans_of(talk)) if talk.id in names and talk.questions else (),
            labelled=[labelled_span(talk, labels[talk.id])] if talk.id in labels else (),
            labels=labels.get(talk.id),
        )
        for talk in [*found, *more]
    ]


_OF_SENTENCES: Final = [
    *(f"found, {share:.0%}, {kind}" for share in SHARES for kind in ("with", "without", "random")),
    *(f"precision, {kind}" for kind in ("with", "without", "random")),
]
_OF_STATES: Final = [f"{what}, {kind}" for what in ("evidence", "answer", "kept") for kind in ("with", "without")]
_UNKNOWN: Final = float("nan")


def _of_sentences(one: LabelledSpans, weights: Weights) -> list[float]:
    asked, labelled = _worths(one.asked, weights), _worths(one.labelled, weights)
    found = [found_share(one.asked, share, worths) if one.asked else _UNKNOWN for share in SHARES for worths in asked]
    return [*found, *(precision(one.labelled, worths) if one.labelled else _UNKNOWN for worths in labelled)]


def _worths(spans: Sequence[Span], weights: Weights) -> list[list[Array]]:
    chance = np.random.default_rng(1)
    return [
        [scores_of(span, weights) for span in spans],
        [scores_of(span, _WITHOUT) for span in spans],
        [chance.random(len(span.costs)) for span in spans],
    ]


def _of_state(one: LabelledSpans, weights: Weights) -> list[float]:
    kinds = []
    for used in (weights, _WITHOUT):
        with patch.object(importance, "LIKELIHOOD_WEIGHTS", used):
            kinds.append(_shares(one))
    return [kind[what] for what in range(3) for kind in kinds]


def _shares(one: LabelledSpans) -> tuple[float, float, float]:
    asked = [found for window in _WINDOWS for found in answered(one.talk, window)] if one.asked else []
    named = np.mean([found.named for found in asked]) if asked else _UNKNOWN
    share_answered = np.mean([found.told for found in asked]) if asked else _UNKNOWN
    if one.labels is None:
        return float(named), float(share_answered), _UNKNOWN
    kept = np.mean([kept_share(played(one.talk, window).entries, one.labels) for window in _WINDOWS])
    return float(named), float(share_answered), float(kept)


def _print_rows(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    means = np.nanmean([values for _, values in rows], axis=0)
    listed = [[name, *(_cell(value) for value in values)] for name, values in [*rows, ("mean", means)]]
    print_table(["conversation", *heads], listed)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.1f}"


if __name__ == "__main__":
    sys.exit(main())
