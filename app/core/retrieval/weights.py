"""Weights of the recall model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FITTED: Final[Mapping[str, float]] = {
    "own": 1.28,
    "two_before": 0.95,
    "covered": -0.68,
    "hits": 1.33,
    "near": 1.03,
    "spread": 0.50,
    "sitting": 1.38,
    "second_hop": 2.65,
    "asks": -1.23,
    "asks_own": 1.05,
    "follows_match": 1.73,
    "named": 0.65,
    "named_near": 1.22,
    "information": 1.28,
    "mean_information": 1.69,
    "named_information": 0.90,
    "user_says": 1.30,
    "says_when": 0.43,
    "when_near": 2.64,
    "date": 3.20,
    "number": 1.07,
    "kind": 1.13,
    "form": 0.12,
    "kind_near": 0.87,
    "form_near": 4.74,
    "family_near": 3.91,
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
