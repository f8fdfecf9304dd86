"""Weights of the recall model: fitted by ``python -m bench.recall fit`` (list-wise softmax over each question)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, float]] = {
    "own": 1.73,
    "before": 0.05,
    "after": 0.09,
    "two_before": 0.86,
    "two_after": 0.25,
    "near": 2.82,
    "spread": -0.61,
    "covered": -1.65,
    "hits": 1.14,
    "sitting": 1.73,
    "sitting_covered": -0.25,
    "second_hop": 0.51,
    "far": 0.24,
    "named": 0.77,
    "named_near": 1.37,
    "unnamed_own": 1.14,
    "named_length": 0.76,
    "information": -0.22,
    "mean_information": 2.96,
    "named_information": 0.2,
    "asks": -0.97,
    "asks_own": 0.89,
    "follows_question": 0.09,
    "follows_match": 1.59,
    "second_person": -3.21,
    "first_person": -2.06,
    "named_first_person": 5.95,
    "says_when": 0.43,
    "when_near": 2.51,
    "date": 4.13,
    "who": 1.38,
    "title": 1.45,
    "number": 1.09,
    "place": 2.9,
    "names": 0.33,
}
