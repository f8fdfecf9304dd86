"""Whether a message says what somebody is after: by the patterns under ``goals`` in the files of ``languages``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.text.blanks import with_plain_blanks
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.required_literals import PatternIndex

MAX_CHARACTERS: Final = 4_000
"""Characters of a message in which a goal is looked for: nobody states one after pages of pasted text."""

_APOSTROPHE: Final = str.maketrans("’ʼ", "''")


class _GoalPatterns:
    """Patterns, each tried only on texts that it may match."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._index = PatternIndex()
        self.patterns = {
            self._index.add(pattern): compiled(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns
        }

    def fit(self, text: str) -> bool:
        """Whether one of them fits."""
        possible = self._index.may_match_text(text)
        return any(bit & possible and pattern.search(text) for bit, pattern in self.patterns.items())


_GOALS: Final = _GoalPatterns([pattern for one in languages() for pattern in one.goals])


def states_goal(text: str) -> bool:
    """Whether a text says what somebody is after, in any language that has patterns for it."""
    return _GOALS.fit(with_plain_blanks(text[:MAX_CHARACTERS]).translate(_APOSTROPHE))
