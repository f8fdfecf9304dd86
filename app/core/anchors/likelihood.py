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
_FILE: Final = files(__package__).joinpath("weights.json")
Weights = Mapping[str, int]
"""The weights of each feature for all types, packed as one number: in hundredths, relative to "no anchor"."""
BySpeaker = Mapping[Speaker, Weights]
_BITS: Final = 24  # bits of each weight, or sum of weights, in such a number


def packed(row: Sequence[int]) -> int:
    """The weights of all types as one number. Adding such numbers adds all weights, in a third of the time."""
    return sum(one << _BITS * place for place, one in enumerate(row))


def unpacked(number: int) -> list[int]:
    """The weights, or their sums, of each type."""
    found = []
    for _ in TYPES:
        one = ((number + (1 << _BITS - 1)) & ((1 << _BITS) - 1)) - (1 << _BITS - 1)
        found.append(one)
        number = (number - one) >> _BITS
    return found


def of_speakers(weights: Mapping[str, Sequence[int]]) -> BySpeaker:
    """The weights by speaker: weights of features for one speaker alone are added to those for both."""
    numbers = {name: packed(row) for name, row in weights.items()}
    return {"user": _weights_of_speaker("user", numbers), "assistant": _weights_of_speaker("assistant", numbers)}


def _weights_of_speaker(speaker: Speaker, numbers: Weights) -> Weights:
    own = {name.removeprefix(f"{speaker} "): one for name, one in numbers.items() if name.startswith(f"{speaker} ")}
    both = {name: one for name, one in numbers.items() if not name.startswith(("user ", "assistant "))}
    return {name: both.get(name, 0) + own.get(name, 0) for name in both | own}


WEIGHTS: Final[BySpeaker] = of_speakers(json.loads(_FILE.read_text(encoding="utf-8")))
LEAST: Final = 0.5
"""The least likelihood for a statement that no rule finds."""
LEAST_ALONE: Final = 0.75
"""The same for a statement that is the whole message."""
RULED: Final = 0.3
"""The least likelihood for a statement that a rule finds. If it is the whole message, it needs none."""
RULED_CORRECTION: Final = 0.05
"""The least likelihood for a correction that a rule finds. Corrections have few words, so they rarely look likely."""
_DIGITS: Final = frozenset("0123456789")
_LENGTHS: Final = (2, 4, 7, 11, 16, 24)  # words
_MARKS: Final = {"-": "dash", "–": "dash", "—": "dash", ":": "colon", "(": "bracket"}
_BEGINNINGS: Final = 4, 5  # letters of the beginning of a stem, and of a word
_END: Final = 3  # letters of the end of a word
_MOST_COUNTED: Final = 3
"""The exact number of capitals, commas and places counts up to this; larger numbers count alike."""
_MOST_VALUES: Final = 4
_MANY: Final = 6  # statements of a message
_EARLY: Final = (1, 3)  # messages of a conversation
_LARGEST: Final = 30.0  # the largest sum, so that its exponential stays a normal number


def features(said: Sequence[Statement], number: int, seq: int, rule: AnchorType | None) -> list[str]:
    """The names of the features that a statement has.

    Args:
        said: All statements of its message.
        number: Its place among them.
        seq: The position of its message.
        rule: The type that the rules give it.
    """
    statement = said[number]
    words = [word if word.isalpha() or _DIGITS.isdisjoint(word) else "#" for word in tokens(statement.plain.lower())]
    found = [
        "",
        f"r {rule}",
        f"e {statement.text[-1]}",
        f"f {words[0]}" if words else "f",
        *_place_features(said, number),
    ]
    found += [f"seq {early}" for early in _EARLY if seq > early]
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
    if len(base) > _BEGINNINGS[0]:
        found.append(f"c {base[: _BEGINNINGS[0]]}")
    return (*found, f"y {word[: _BEGINNINGS[1]]}", f"x {word[-_END:]}") if word.isalpha() else tuple(found)


def likeliest(found: Mapping[AnchorType, float], rule: AnchorType | None, statements: int) -> AnchorType | None:
    """The type of anchor that a statement becomes; ``None`` if it does not become one.

    Args:
        found: The likelihood of each type.
        rule: The type that the rules give it.
        statements: The number of statements in its message.
    """
    if rule is not None and (statements == 1 or found[rule] >= _least_likelihood(rule)):
        return rule
    type_ = max(TYPES, key=lambda one: found[one])
    return type_ if found[type_] >= (LEAST_ALONE if statements == 1 else LEAST) else None


def _least_likelihood(rule: AnchorType) -> float:
    return RULED_CORRECTION if rule == "correction" else RULED


def likelihoods(named: Iterable[str], weights: Weights) -> Mapping[AnchorType, float]:
    """How likely a statement with these features is an anchor of each type, from 0 to 1; the sum is at most 1."""
    sums = unpacked(sum(filter(None, map(weights.get, named))))
    odds = [math.exp(min(one / 100, _LARGEST)) for one in sums]
    whole = 1.0 + sum(odds)
    return {type_: one / whole for type_, one in zip(TYPES, odds, strict=True)}


def _place_features(said: Sequence[Statement], number: int) -> Iterator[str]:
    exact = sum(one.kind not in {"symbol", "quoted"} for one in said[number].identifiers)
    yield f"n {min(exact, _MOST_VALUES)}"
    yield f"p {min(number, _MOST_COUNTED)}"
    yield f"of {min(len(said), _MANY)}"
    if len(said) <= _MOST_COUNTED:
        yield f"p {number} of {len(said)}"
    if said[number].is_question:
        yield "q"
    if number == len(said) - 1:
        yield "p last"
    elif said[number + 1].is_question:
        yield "q next"
    if number and said[number - 1].is_question:
        yield "q before"


def _shape_features(text: str) -> Iterator[str]:
    capitals = [word[0].isupper() for word in text.split()]
    yield f"capitals {min(sum(capitals[1:]), _MOST_COUNTED)}"
    yield f"capital {capitals[:1] == [True]}"
    yield f"commas {min(text.count(','), _MOST_COUNTED)}"
    if not _MARKS.keys().isdisjoint(text):
        yield from {name for mark, name in _MARKS.items() if mark in text}
    if not _DIGITS.isdisjoint(text):
        yield "digit"
