"""Decides whether a statement is about the same as an earlier one that it is said to replace."""

from __future__ import annotations

from typing import Final

from app.core.validation.evidence import content_stems

_MIN_KEPT_SHARE: Final = 0.6
"""The least share of the earlier statement's content words that a replacement keeps.

In the open half of the corpus of ``bench.trust`` 37 % of the honest replacements keep as many; the most that an
invented one keeps is 44 %. The limit is set well above that: an entry that is wrongly set aside is served in doubt
until a verifier reads it, while one that is wrongly removed is lost.
"""

_OTHER_SUBJECT_SHARE: Final = 0.15
"""A smaller share means another subject. Of 984 honest replacements (the open half and four blind sets) 8 % keep less.
Of the pairs of an entry in those sets and any other new item of its field 83 % keep less."""


def has_same_subject(statement: str, earlier: str) -> bool:
    """Whether a statement says much of what an earlier one says, as it does if it changes, completes or joins it."""
    return _kept_share(statement, earlier) >= _MIN_KEPT_SHARE


def has_other_subject(statement: str, earlier: str) -> bool:
    """Whether a statement says next to nothing of what an earlier one says, and so can hardly replace it."""
    return _kept_share(statement, earlier) < _OTHER_SUBJECT_SHARE


def _kept_share(statement: str, earlier: str) -> float:
    before = content_stems(earlier)
    return len(before & content_stems(statement)) / len(before) if before else 0.0
