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
"""Fitted by ``python -m bench.recall fit``: a softmax of each answer against the other messages.

The data are talks of two people, and the odd-numbered questions of the made-up talks. The latter show that the user's
own words count more where an assistant answers at length.
"""

SIMILARITY: Final[Mapping[str, float]] = {"alike": 1.5}
"""The weight of similarity by vectors, used if an embedding model is set; fitted by ``python -m bench.embeddings``.

It was chosen on LoCoMo, with a small neural model. Made-up talks, on which it was not chosen, gain by it at budgets of
5 and 20 % of their tokens, and lose one question of 148 at 10 %.
"""

WEIGHTS: Final[Mapping[str, float]] = {**FITTED, **SIMILARITY}
