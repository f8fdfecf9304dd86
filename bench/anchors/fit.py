"""Fitting how likely a statement is an anchor of each type, on labelled conversations. Needs numpy.

``python -m bench.anchors.fit [--write]`` fits the logistic regression of ``app.core.anchors.likelihood`` on the
conversations of ``training/`` and the open half of the corpus, and measures it on conversations left out (a quarter
of them at a time): precision and recall by type, of the rules alone, of the likelihood alone, and of what the app makes
of both. ``--write`` writes ``weights.json``.
The sealed half is never fitted on.

A conversation of ``training/`` begins with ``# <language>-<name>``; each sentence is a line of role, label and text,
parted by tabs. The role is ``u``, ``a`` or ``p`` (pasted by the user), and ``+`` for a further sentence of the same
message; the label is the first letter of its type, ``f`` for critical facts, ``x`` for corrections, ``n`` for none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.core.anchors import likelihood
from app.core.anchors.likelihood import TYPES, decided, features
from app.core.anchors.recognition import type_of
from app.core.anchors.statements import statements
from app.core.anchors.tables import TABLES
from app.core.model.anchors import AnchorType, Speaker
from bench.anchors.corpus import HERE, NONE, OPEN, Labelled, Sentence, conversations, messages, read
from bench.report import print_table

TRAINING: Final = HERE / "training"
WRITTEN: Final = Path(likelihood.__file__).with_name("weights.json")
_CLASSES: Final = (NONE, *TYPES)
_PARTS: Final = 4
_SEEN: Final = 4
"""Statements that a feature must stand in."""
_PENALTY: Final = 2.0
_STEPS: Final = 200
_LEAST: Final = 0.1
"""Of a weight that is kept."""
_LONG: Final = 9
"""Statements of a message in which rules alone decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A labelled statement."""

    conversation: str
    features: tuple[str, ...]
    rule: AnchorType | None
    """What the rules take it for."""
    statements: int
    """Of its message."""
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A regression."""

    columns: Mapping[str, int]
    weights: Any
    """Features by classes."""

    def likelihoods(self, examples: Sequence[Example]) -> Any:
        """Examples by classes."""
        rows, starts = _rows(examples, self.columns)
        return _softmax(np.add.reduceat(self.weights[rows], starts, axis=0))


def labelled() -> list[Sentence]:
    """Every sentence that may be fitted on."""
    files = sorted(TRAINING.glob("*.txt"))
    return [*read(OPEN), *(one for path in files for one in conversations(path))]


def examples_of(sentences: Sequence[Sentence]) -> Iterator[Example]:
    """The statements that the app sees in these sentences, each with the label of the sentence it stands in."""
    for found in messages(sentences):
        said = statements(found.message)
        speaker: Speaker = "user" if found.message.role == "user" else "assistant"
        for number, statement in enumerate(said):
            sentence = _sentence_at(found, statement.offset)
            if sentence.label is not None:
                rule = type_of(statement, speaker, TABLES)
                own = features(said, number, rule)
                named = tuple(dict.fromkeys([*own, *(f"{speaker} {name}" for name in own)]))
                yield Example(
                    conversation=sentence.conversation,
                    features=named,
                    rule=rule,
                    statements=len(said),
                    label=sentence.label,
                )


def fit(examples: Sequence[Example]) -> Fitted:
    """The weights that make these labels likeliest, small ones preferred (Adam, full batches)."""
    seen = Counter(name for one in examples for name in one.features)
    columns = {name: number for number, name in enumerate(sorted(n for n, count in seen.items() if count >= _SEEN))}
    rows, starts = _rows(examples, columns)
    lengths = np.diff([*starts, len(rows)])
    owners = np.repeat(np.arange(len(examples)), lengths)
    wanted = np.eye(len(_CLASSES))[[_CLASSES.index(one.label) for one in examples]]
    weights = np.zeros((len(columns) + 1, len(_CLASSES)))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        missed = _softmax(np.add.reduceat(weights[rows], starts, axis=0)) - wanted
        gradient = np.stack(
            [np.bincount(rows, missed[owners, column], len(columns) + 1) for column in range(len(_CLASSES))], axis=1
        )
        gradient += _PENALTY * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights[-1] = 0.0
    return Fitted(columns=columns, weights=weights)


def left_out(examples: Sequence[Example]) -> Any:
    """The likelihoods of each example by what was fitted on other conversations."""
    part = [int(hashlib.sha256(one.conversation.encode()).hexdigest(), 16) % _PARTS for one in examples]
    found = np.zeros((len(examples), len(_CLASSES)))
    for held in range(_PARTS):
        fitted = fit([one for one, own in zip(examples, part, strict=True) if own != held])
        places = [place for place, own in enumerate(part) if own == held]
        found[places] = fitted.likelihoods([examples[place] for place in places])
    return found


def table(examples: Sequence[Example], found: Any) -> list[list[str]]:
    """Precision and recall by type, of each way to take statements for anchors."""
    likely = [dict(zip(TYPES, map(float, row[1:]), strict=True)) for row in found]
    ways: dict[str, list[str | None]] = {
        "rules": [one.rule for one in examples],
        "likelihood": [decided(row, None, _LONG) for row in likely],
        "both": [decided(row, one.rule, one.statements) for row, one in zip(likely, examples, strict=True)],
    }
    return [
        [way, type_ or "all", *_scored(examples, taken, type_)]
        for way, taken in ways.items()
        for type_ in (*TYPES, None)
    ]


def _scored(examples: Sequence[Example], taken: Sequence[str | None], type_: str | None) -> list[str]:
    pairs = [(own, one.label) for own, one in zip(taken, examples, strict=True)]
    given = [(own, label) for own, label in pairs if own is not None and type_ in {None, own}]
    there = sum(label != NONE and type_ in {None, label} for _, label in pairs)
    hits = sum(own == label for own, label in given)
    return [_share(hits, len(given)), str(len(given)), _share(hits, there), str(there)]


def kept(fitted: Fitted) -> dict[str, list[int]]:
    """The weights as they are stored: of each type against none, in hundredths, those that hardly count left out."""
    rows = {name: (fitted.weights[place, 1:] - fitted.weights[place, 0]) for name, place in fitted.columns.items()}
    return {
        name: [round(100 * float(one)) for one in row] for name, row in sorted(rows.items()) if abs(row).max() >= _LEAST
    }


def main() -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors.fit", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write weights.json")
    asked = parser.parse_args()
    examples = list(examples_of(labelled()))
    found = left_out(examples)
    print(f"{len(examples)} statements of {len({one.conversation for one in examples})} conversations\n")
    print_table(["by", "type", "precision", "of", "recall", "of"], table(examples, found))
    if asked.write:
        rows = kept(fit(examples))
        lines = ",\n".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}" for name, row in rows.items())
        WRITTEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        print(f"\n{WRITTEN.name}: {len(rows)} features")
    return 0


def _rows(examples: Sequence[Example], columns: Mapping[str, int]) -> tuple[Any, Any]:
    """The rows of the weights that each example's features have, one after the other, and where each example begins.

    Each example ends with the last row, which weighs nothing, so that none is empty.
    """
    found: list[int] = []
    starts: list[int] = []
    for one in examples:
        starts.append(len(found))
        found.extend(columns[name] for name in one.features if name in columns)
        found.append(len(columns))
    return np.array(found), np.array(starts)


def _softmax(scores: Any) -> Any:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _sentence_at(found: Labelled, offset: int) -> Sentence:
    return [sentence for start, sentence in found.sentences if start <= offset][-1]


def _share(hits: int, of: int) -> str:
    return f"{100 * hits / of:.1f} %" if of else "–"


if __name__ == "__main__":
    sys.exit(main())
