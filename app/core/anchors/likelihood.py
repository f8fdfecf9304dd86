"""How likely a statement is an anchor of each type: a logistic regression over its words, its shape and its place.

``python -m bench.anchors.fit`` fits it on the labelled conversations of ``bench/anchors`` and writes ``weights.json``.
Rules find statements whose words say that they matter ("we decided", "remember"). But most of what has to be kept is
said plainly ("cap it, vectors can wait"). The features need no list of words: stems, beginnings and ends of words,
pairs of neighbouring words, the kinds of exact values, the length, capitals and marks, the place in the message,
whether the conversation begins with it, and the type that the rules give it. All features except pairs and parts of
words count once for both speakers and once for the actual speaker. Words count only in languages of which labelled
conversations were fitted; in other languages only the other features count.
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
from app.core.text.memo import word_memo
from app.core.text.words import stem, tokens

TYPES: Final[tuple[AnchorType, ...]] = (
    "commitment",
    "decision",
    "unresolved_question",
    "critical_fact",
    "correction",
)
"""The types of anchors, in the order of the columns of the weights."""
_WEIGHTS_FILE: Final = files(__package__).joinpath("weights.json")
Weights = Mapping[str, int]
"""The weights of each feature for all types, packed as one number: in hundredths, relative to "no anchor"."""
WeightsBySpeaker = Mapping[Speaker, Weights]
_BITS_PER_WEIGHT: Final = 24  # bits of each weight, or sum of weights, in such a number


def packed_weights(row: Sequence[int]) -> int:
    """The weights of all types as one number. Adding such numbers adds all weights, in a third of the time."""
    return sum(one << _BITS_PER_WEIGHT * place for place, one in enumerate(row))


def unpacked_weights(number: int) -> list[int]:
    """The weights, or their sums, of each type."""
    found = []
    for _ in TYPES:
        one = ((number + (1 << _BITS_PER_WEIGHT - 1)) & ((1 << _BITS_PER_WEIGHT) - 1)) - (1 << _BITS_PER_WEIGHT - 1)
        found.append(one)
        number = (number - one) >> _BITS_PER_WEIGHT
    return found


def weights_by_speaker(weights: Mapping[str, Sequence[int]]) -> WeightsBySpeaker:
    """The weights by speaker: weights of features for one speaker alone are added to those for both."""
    numbers = {name: packed_weights(row) for name, row in weights.items()}
    return {"user": _weights_of_speaker("user", numbers), "assistant": _weights_of_speaker("assistant", numbers)}


def _weights_of_speaker(speaker: Speaker, numbers: Weights) -> Weights:
    own = {name.removeprefix(f"{speaker} "): one for name, one in numbers.items() if name.startswith(f"{speaker} ")}
    both = {name: one for name, one in numbers.items() if not name.startswith(("user ", "assistant "))}
    return {name: both.get(name, 0) + own.get(name, 0) for name in both | own}


WEIGHTS: Final[WeightsBySpeaker] = weights_by_speaker(json.loads(_WEIGHTS_FILE.read_text(encoding="utf-8")))
MIN_LIKELIHOOD: Final = 0.5
"""The least likelihood for a statement that no rule finds."""
MIN_LIKELIHOOD_ALONE: Final = 0.75
"""The least likelihood for a statement that no rule finds and that is the whole message."""
MIN_LIKELIHOOD_BY_RULE: Final = 0.3
"""The least likelihood for a statement that a rule finds. If it is the whole message, it needs none."""
MIN_LIKELIHOOD_OF_CORRECTION: Final = 0.05
"""The least likelihood for a correction that a rule finds. Corrections have few words, so they rarely look likely."""
_DIGITS: Final = frozenset("0123456789")
_LENGTHS: Final = (2, 4, 7, 11, 16, 24)  # words
_MARKS: Final = {"-": "dash", "–": "dash", "—": "dash", ":": "colon", "(": "bracket"}
_LETTERS_OF_BEGINNINGS: Final = 4, 5  # letters of the beginning of a stem, and of a word
_LETTERS_OF_END: Final = 3  # letters of the end of a word
_MAX_EXACT_COUNT: Final = 3
"""The exact number of capitals, commas and places counts up to this; larger numbers count alike."""
_MAX_VALUES: Final = 4
_MAX_STATEMENTS: Final = 6  # statements of a message
_EARLY_POSITIONS: Final = (1, 3)  # messages of a conversation
_MAX_SUM: Final = 30.0  # the largest sum, so that its exponential stays a normal number


def features(statements: Sequence[Statement], number: int, seq: int, rule: AnchorType | None) -> list[str]:
    """The names of the features that a statement has.

    Args:
        statements: All statements of its message.
        number: Its place among them.
        seq: The position of its message.
        rule: The type that the rules give it.
    """
    statement = statements[number]
    words = [word if word.isalpha() or _DIGITS.isdisjoint(word) else "#" for word in tokens(statement.plain.lower())]
    found = [
        "",
        f"r {rule}",
        f"e {statement.text[-1]}",
        f"f {words[0]}" if words else "f",
        *_place_features(statements, number),
    ]
    found += [f"seq {early}" for early in _EARLY_POSITIONS if seq > early]
    found += set[str]().union(*map(_word_features, words))
    found += [f"l {length}" for length in _LENGTHS if len(words) > length]
    found += [f"v {kind}" for kind in {one.kind for one in statement.identifiers}]
    found += {f"b {first} {second}" for first, second in pairwise(["<", *words, ">"])}
    found += _shape_features(statement.text)
    return found


@word_memo
def _word_features(word: str) -> tuple[str, ...]:
    base = stem(word)
    found = [f"s {base}"]
    if len(base) > _LETTERS_OF_BEGINNINGS[0]:
        found.append(f"c {base[: _LETTERS_OF_BEGINNINGS[0]]}")
    return (
        (*found, f"y {word[: _LETTERS_OF_BEGINNINGS[1]]}", f"x {word[-_LETTERS_OF_END:]}")
        if word.isalpha()
        else tuple(found)
    )


def likeliest_type(
    likelihood_by_type: Mapping[AnchorType, float], rule: AnchorType | None, statement_count: int
) -> AnchorType | None:
    """The type of anchor that a statement becomes; ``None`` if it does not become one.

    Args:
        likelihood_by_type: The likelihood of each type.
        rule: The type that the rules give it.
        statement_count: The number of statements in its message.
    """
    if rule is not None and (statement_count == 1 or likelihood_by_type[rule] >= _least_likelihood(rule)):
        return rule
    type_ = max(TYPES, key=lambda one: likelihood_by_type[one])
    return (
        type_
        if likelihood_by_type[type_] >= (MIN_LIKELIHOOD_ALONE if statement_count == 1 else MIN_LIKELIHOOD)
        else None
    )


def _least_likelihood(rule: AnchorType) -> float:
    return MIN_LIKELIHOOD_OF_CORRECTION if rule == "correction" else MIN_LIKELIHOOD_BY_RULE


def likelihoods(feature_names: Iterable[str], weights: Weights) -> Mapping[AnchorType, float]:
    """How likely a statement with these features is an anchor of each type, from 0 to 1; the sum is at most 1."""
    sums = unpacked_weights(sum(filter(None, map(weights.get, feature_names))))
    odds = [math.exp(min(one / 100, _MAX_SUM)) for one in sums]
    whole = 1.0 + sum(odds)
    return {type_: one / whole for type_, one in zip(TYPES, odds, strict=True)}


def _place_features(statements: Sequence[Statement], number: int) -> Iterator[str]:
    exact = sum(one.kind not in {"symbol", "quoted"} for one in statements[number].identifiers)
    yield f"n {min(exact, _MAX_VALUES)}"
    yield f"p {min(number, _MAX_EXACT_COUNT)}"
    yield f"of {min(len(statements), _MAX_STATEMENTS)}"
    if len(statements) <= _MAX_EXACT_COUNT:
        yield f"p {number} of {len(statements)}"
    if statements[number].is_question:
        yield "q"
    if number == len(statements) - 1:
        yield "p last"
    elif statements[number + 1].is_question:
        yield "q next"
    if number and statements[number - 1].is_question:
        yield "q before"


def _shape_features(text: str) -> Iterator[str]:
    capitals = [word[0].isupper() for word in text.split()]
    yield f"capitals {min(sum(capitals[1:]), _MAX_EXACT_COUNT)}"
    yield f"capital {capitals[:1] == [True]}"
    yield f"commas {min(text.count(','), _MAX_EXACT_COUNT)}"
    if not _MARKS.keys().isdisjoint(text):
        yield from {name for mark, name in _MARKS.items() if mark in text}
    if not _DIGITS.isdisjoint(text):
        yield "digit"
