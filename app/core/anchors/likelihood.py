"""How likely a statement is an anchor of each type: a logistic regression over its words and its place.

``python -m bench.anchors.fit`` fits it on the labelled conversations of ``bench/anchors`` and writes ``weights.json``.
Rules find what says by its words that it matters ("we decided", "remember"); most of what has to be kept is told
plainly ("cap it, vectors can wait"). Its features need no list of words: the words and stems themselves, pairs of
neighbouring words, the first word, the kinds of exact values, the length, the place in the message, and what the rules
take the statement for. The words of a speaker count apart from those of both. A language is known once labelled
conversations in it were fitted; of others only the features beside words count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Final

from app.core.anchors.statements import Statement
from app.core.model.anchors import AnchorType, Speaker
from app.core.text.words import stem, tokens

TYPES: Final[tuple[AnchorType, ...]] = (
    "commitment",
    "decision",
    "unresolved_question",
    "critical_fact",
    "correction",
)
"""In the order of the columns of the weights."""
_FILE: Final = files(__package__).joinpath("weights.json")
_Weights = Mapping[str, Sequence[int]]
"""By feature: how much it speaks for each type against none of them, in hundredths."""


def of_speakers(weights: _Weights) -> Mapping[Speaker, _Weights]:
    """The weights by who says it: those of features that count for one speaker alone are added to those of both."""
    return {"user": _of("user", weights), "assistant": _of("assistant", weights)}


def _of(speaker: Speaker, weights: _Weights) -> _Weights:
    own = {name.removeprefix(f"{speaker} "): row for name, row in weights.items() if name.startswith(f"{speaker} ")}
    both = {name: row for name, row in weights.items() if not name.startswith(("user ", "assistant "))}
    none = [0] * len(TYPES)
    return {
        name: [sum(pair) for pair in zip(both.get(name, none), own.get(name, none), strict=True)] for name in both | own
    }


WEIGHTS: Final = of_speakers(json.loads(_FILE.read_text(encoding="utf-8")))
LEAST: Final = 0.65
"""How likely a statement has to be an anchor that no rule finds."""
RULED: Final = 0.2
"""How likely one has to be that a rule finds."""
_BY_RULES: Final[frozenset[AnchorType]] = frozenset({"unresolved_question"})
"""Types that only rules find: whether a question stays open, later messages show."""
_SHORT: Final = 2  # statements of a message in which what rules find stands: few labelled messages are so short
_LENGTHS: Final = (2, 4, 7, 11, 16, 24)  # words
_BEGINNING: Final = 4  # letters
_MOST_VALUES: Final = 4
_LARGEST: Final = 30.0  # of a sum, for the sake of numbers
_PLACES: Final = 3
"""So many statements of a message are told apart by their place."""


def features(said: Sequence[Statement], number: int, rule: AnchorType | None) -> list[str]:
    """What is known of a statement, by name; each counts for both speakers, and for the one who says it.

    Args:
        said: All statements of its message.
        number: Its place among them.
        rule: What the rules take it for.
    """
    statement = said[number]
    words = [word if word.isalpha() else _bare(word) for word in tokens(statement.plain.lower())]
    stems = {stem(word) for word in words}
    beginnings = {base[:_BEGINNING] for base in stems if len(base) > _BEGINNING}
    found = ["", f"r {rule}", f"e {statement.text[-1]}", f"f {words[0]}" if words else "f", *_place(said, number)]
    found += [f"s {base}" for base in stems]
    found += [f"c {beginning}" for beginning in beginnings]
    found += [f"l {length}" for length in _LENGTHS if len(words) > length]
    found += [f"v {kind}" for kind in {one.kind for one in statement.identifiers}]
    found += {f"b {first} {second}" for first, second in pairwise(["<", *words, ">"])}
    return found


def likeliest(said: Sequence[Statement], number: int, speaker: Speaker, rule: AnchorType | None) -> AnchorType | None:
    """The type of anchor that a statement is taken for; arguments as of ``features``, and who says it."""
    if _is_ruled(rule, len(said)):
        return rule
    return decided(likelihoods(features(said, number, rule), speaker), rule, len(said))


def decided(found: Mapping[AnchorType, float], rule: AnchorType | None, statements: int) -> AnchorType | None:
    """The type that a statement is taken for.

    Args:
        found: How likely it is of each type.
        rule: What the rules take it for.
        statements: How many its message has.
    """
    if _is_ruled(rule, statements) or (rule is not None and found[rule] >= RULED):
        return rule
    type_ = max(TYPES, key=lambda one: found[one])
    return type_ if found[type_] >= LEAST and type_ not in _BY_RULES else None


def _is_ruled(rule: AnchorType | None, statements: int) -> bool:
    return statements == 1 or (rule is not None and statements <= _SHORT)


def likelihoods(named: Iterable[str], speaker: Speaker) -> Mapping[AnchorType, float]:
    """How likely a statement with these features is an anchor of each type, 0 to 1; together at most 1."""
    weights = WEIGHTS[speaker]
    rows = [row for name in named if (row := weights.get(name)) is not None] or [[0] * len(TYPES)]
    odds = [math.exp(min(sum(column) / 100, _LARGEST)) for column in zip(*rows, strict=True)]
    whole = 1.0 + sum(odds)
    return {type_: one / whole for type_, one in zip(TYPES, odds, strict=True)}


def _bare(word: str) -> str:
    return "#" if any(sign.isdigit() for sign in word) else word


def _place(said: Sequence[Statement], number: int) -> Iterator[str]:
    exact = sum(one.kind not in {"symbol", "quoted"} for one in said[number].identifiers)
    yield f"n {min(exact, _MOST_VALUES)}"
    yield f"p {min(number, _PLACES)}"
    if said[number].is_question:
        yield "q"
    if number == len(said) - 1:
        yield "p last"
    elif said[number + 1].is_question:
        yield "q next"
    if number and said[number - 1].is_question:
        yield "q before"
