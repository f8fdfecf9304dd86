"""Weights of the recall model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FITTED: Final[Mapping[str, float]] = {
    "own": 1.30,
    "two_before": 0.95,
    "two_after": -0.11,
    "covered": -0.58,
    "hits": 1.20,
    "near": 1.19,
    "spread": 0.56,
    "sitting": 0.96,
    "sitting_covered": 0.49,
    "second_hop": 2.56,
    "far": 0.38,
    "asks": -1.12,
    "asks_own": 1.11,
    "follows_match": 1.70,
    "named": 0.58,
    "named_near": 0.93,
    "information": 1.19,
    "mean_information": 1.71,
    "named_information": 0.82,
    "second_person": -3.80,
    "first_person": -1.25,
    "named_first_person": 3.57,
    "user_says": 1.28,
    "says_when": 0.38,
    "when_near": 2.68,
    "date": 3.26,
    "number": 1.07,
    "names": 0.38,
    "kind": 0.61,
    "form": 0.85,
    "family": -2.01,
    "kind_near": 0.75,
    "form_near": 4.78,
    "family_near": 5.74,
    "named_kind": 0.93,
    "named_form": -1.26,
    "echo": -1.09,
}
"""By ``python -m bench.recall fit``: softmax of each answer against others, on talks of two people and on the
odd-numbered questions of the made-up talks, which also show that beside long answers the user's own words count."""

SIMILARITY: Final[Mapping[str, float]] = {"alike": 1.5}
"""Of vectors, where an embedding model is set: by ``python -m bench.embeddings``, the other weights held.

Chosen with a small neural model on LoCoMo; made-up talks, which it was not chosen on, gain by it at 5 and 20 % of their
tokens, and lose one question of 148 at 10 %.
"""

WEIGHTS: Final[Mapping[str, float]] = {**FITTED, **SIMILARITY}
