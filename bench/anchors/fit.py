"""Fits the likelihood that a statement is an anchor of each type, on labelled conversations. Needs numpy.

``python -m bench.anchors.fit [--write]`` fits the logistic regression of ``app.core.anchors.likelihood`` on the
conversations of ``training/`` and the open half of the corpus, and measures what the app finds in conversations left
out (a quarter of them at a time): precision and recall by type, by language, and by short and long messages.
``--write`` writes ``weights.json``. The sealed half is never fitted on.

A conversation of ``training/`` begins with ``# <language>-<name>``; each sentence is a line of role, label and text,
separated by tabs. The role is ``u``, ``a`` or ``p`` (pasted by the user), and ``+`` for a further sentence of the same
message. The label is the first letter of the type, but ``f`` for critical facts, ``x`` for corrections, ``n`` for none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit("numpy is not installed: pip install --no-deps --require-hashes -r requirements-bench.lock")

from app.core.anchors import likelihood
from app.core.anchors.classification import type_of
from app.core.anchors.likelihood import TYPES, features, weights_by_speaker
from app.core.anchors.statements import Statement, statements_of
from app.core.model.anchors import Speaker
from bench.anchors.corpus import NONE, PLAIN, Labelled, Sentence, conversations, labelled, messages
from bench.anchors.measures import Judged, Score, judged, score
from bench.report import print_table

WRITTEN: Final = Path(likelihood.__file__).with_name("weights.json")
_TIMES: Final = 3
"""How many times each plain statement counts."""
_CLASSES: Final = (NONE, *TYPES)
_PARTS: Final = 4
_SEEN: Final = 3
"""The fewest statements that must have a feature."""
_OF_BOTH: Final = ("b ", "c ", "x ", "y ")
"""The beginnings of features that are not split by speaker: pairs and parts of words are too many for that."""
_PENALTY: Final = 5.0
_STEPS: Final = 150
_MIN_WEIGHT: Final = 0.07
"""The smallest weight that is kept. Fewer than half are kept, and no figure changes by it."""
_SHORT: Final = 2
"""The most statements of a short message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A labelled statement."""

    conversation: str
    features: tuple[str, ...]
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A fitted regression."""

    columns: Mapping[str, int]
    weights: Any
    """A matrix of features by classes."""

    def likelihoods(self, examples: Sequence[Example]) -> Any:
        """A matrix of the likelihoods of these examples: examples by classes."""
        rows, starts = _rows(examples, self.columns)
        return _softmax(np.add.reduceat(self.weights[rows], starts, axis=0))


def examples_of(sentences: Iterable[Sentence]) -> Iterator[Example]:
    """The statements that the app sees in these sentences, each with the label of the sentences that it holds."""
    for found in messages(sentences):
        found_statements = statements_of(found.message)
        speaker: Speaker = "user" if found.message.role == "user" else "assistant"
        for number, statement in enumerate(found_statements):
            label = _label(found, statement)
            if label is not None:
                own = features(found_statements, number, found.message.seq, type_of(statement, speaker))
                named = dict.fromkeys([*own, *(f"{speaker} {name}" for name in own if not name.startswith(_OF_BOTH))])
                yield Example(conversation=found.sentences[0][1].conversation, features=tuple(named), label=label)


def fit(examples: Sequence[Example]) -> Fitted:
    """The weights that make these labels likeliest; small weights are preferred (Adam, full batches)."""
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


def left_out(sentences: Sequence[Sentence]) -> list[Judged]:
    """What the app takes each sentence for, with weights fitted on other conversations."""
    plain = _TIMES * list(examples_of(conversations(PLAIN)))
    examples = list(examples_of(sentences))
    found: list[Judged] = []
    for held in range(_PARTS):
        fitted = fit(plain + [one for one in examples if _part(one.conversation) != held])
        found += judged([one for one in sentences if _part(one.conversation) == held], weights_by_speaker(kept(fitted)))
    return found


def table(rows: Sequence[Judged]) -> list[list[str]]:
    """Precision and recall by type, by language and by length."""
    lengths = Counter((one.sentence.conversation, one.sentence.seq) for one in rows)
    short = [one for one in rows if lengths[one.sentence.conversation, one.sentence.seq] <= _SHORT]
    short_ones = set(map(id, short))
    groups: dict[str, Sequence[Judged]] = {"all": rows, f"1 to {_SHORT} sentences": short}
    groups["more"] = [one for one in rows if id(one) not in short_ones]
    groups |= {name: [one for one in rows if one.sentence.language == name] for name in sorted(_languages(rows))}
    cells = [[type_, *_cells(score(rows, type_))] for type_ in TYPES]
    return cells + [[name, *_cells(score(group))] for name, group in groups.items()]


def _languages(rows: Sequence[Judged]) -> set[str]:
    return {one.sentence.language for one in rows}


def _cells(found: Score) -> list[str]:
    return [_share(found.hits, found.found), str(found.found), _share(found.hits, found.there), str(found.there)]


def _part(conversation: str) -> int:
    return int(hashlib.sha256(conversation.encode()).hexdigest(), 16) % _PARTS


def kept(fitted: Fitted) -> dict[str, list[int]]:
    """The weights as they are stored: of each type against no type, in hundredths, without very small ones."""
    rows = {name: (fitted.weights[place, 1:] - fitted.weights[place, 0]) for name, place in fitted.columns.items()}
    return {
        name: [round(100 * float(one)) for one in row]
        for name, row in sorted(rows.items())
        if abs(row).max() >= _MIN_WEIGHT
    }


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors.fit", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write weights.json")
    asked = parser.parse_args()
    sentences = labelled()
    print(f"{len(sentences)} sentences of {len({one.conversation for one in sentences})} conversations\n")
    print_table(["of", "precision", "found", "recall", "there"], table(left_out(sentences)))
    if asked.write:
        rows = kept(fit(list(examples_of(sentences)) + _TIMES * list(examples_of(conversations(PLAIN)))))
        lines = ",\n".join(
            f"{json.dumps(name, ensure_ascii=False)}:{json.dumps(row, separators=(',', ':'))}"
            for name, row in rows.items()
        )
        WRITTEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        print(f"\n{WRITTEN.name}: {len(rows)} features")
    return 0


def _rows(examples: Sequence[Example], columns: Mapping[str, int]) -> tuple[Any, Any]:
    """The rows in the matrix of weights of each example's features, in one list, and where each example begins in it.

    Each example ends with the last row, whose weights are zero, so that no example is empty.
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


def _label(found: Labelled, statement: Statement) -> str | None:
    """The first anchor label among the sentences that the statement holds; ``None`` if the readers differ."""
    before = [one.label for first, one in found.sentences if first <= statement.offset]
    within = [one.label for first, one in found.sentences if 0 < first - statement.offset < len(statement.text)]
    own = [before[-1], *within]
    return None if None in own else next((label for label in own if label != NONE), NONE)


def _share(hits: int, of: int) -> str:
    return f"{100 * hits / of:.1f} %" if of else "–"


if __name__ == "__main__":
    sys.exit(main())
