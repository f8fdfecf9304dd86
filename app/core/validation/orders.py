"""Orders to the reader: a record tells what somebody asked for, it asks for nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems

_LEADS: Final = r"\A\W{0,4}+(?:[^\W\d_]{1,20}[,:!] ){0,2}"
_SHARED: Final = 0.7  # of an order's words, for who asks for it: an invented one shares names and topics too


def _patterns() -> tuple[re.Pattern[str], ...]:
    tables = [language.orders for language in languages() if language.orders is not None]
    return tuple(
        compiled(_LEADS + "(?:" + "|".join(table.forms).replace("{assistant}", table.assistant) + ")", re.IGNORECASE)
        for table in tables
    )


_PATTERNS: Final = _patterns()


def orders_in(text: str) -> list[str]:
    """The sentences of a text that order its reader about."""
    return [sentence for sentence in sentences(text) if any(pattern.match(sentence) for pattern in _PATTERNS)]


class Wishes:
    """What people asked for: an order that one of them gave is told of, and no order of the record's own.

    Args:
        spoken: What users said, and system messages.
    """

    def __init__(self, spoken: Iterable[str]) -> None:
        self._said: Final = [_content(text) for text in spoken]

    def include(self, order: str) -> bool:
        """Whether somebody said most of it."""
        content = _content(order)
        return bool(content) and any(len(content & said) >= _SHARED * len(content) for said in self._said)


def _content(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - FRAME_STEMS - GENERIC_STEMS
