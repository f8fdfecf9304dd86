"""Orders to the reader: a record tells what somebody asked for, it asks for nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.words import FRAME_STEMS, stems
from app.core.validation.evidence import content

_LEADS: Final = r"\A\W{0,4}+(?:[^\W\d_]{1,20}[,:!] ){0,2}"
_SHARED: Final = 0.7  # of an order's words, for who asks for it: an invented one shares names and topics too
_LEAST: Final = 0.4
"""Of its words, for who asks for what the assistant says beside them."""
_FEW: Final = 4
"""Words of an order that are too few to be put together from two texts."""
_SHORT: Final = 6
"""Words of an answer that may only agree."""
_LEAST_STEM: Final = 4
_MOST_ENDING: Final = 3
"""Letters by which stems of one word differ: who says "responde" or "antworte" is told of with "responder" or
"antworten", and stemmers may part the two."""


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


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said, and what the assistant said to them directly before and after it."""

    text: str
    around: tuple[str, ...] = ()
    is_retold: bool = False
    """Told by a record of what they said."""


class Wishes:
    """What people asked for: an order that one of them gave is told of, and no order of the record's own.

    Somebody also asks for what the assistant proposed ("yes, do that"), and for what it then promised in its own words:
    so what it said directly before or after counts together with theirs, where they said some of it or hardly anything.

    Args:
        spoken: What users said, and system messages.
    """

    def __init__(self, spoken: Iterable[Said]) -> None:
        every = tuple(spoken)
        self._said: Final = [
            (_Told(content(one.text)), len(one.text.split()) <= _SHORT, [_Told(content(text)) for text in one.around])
            for one in every
            if not one.is_retold
        ]
        self._retold: Final = [_Told(_words(one.text)) for one in every if one.is_retold]

    def include(self, order: str) -> bool:
        """Whether somebody said most of what it orders; how it begins ("the assistant must always") does not count.

        A record says much of people whom it names, so there every word of an order counts: "never mention Clara" would
        else be asked for by each entry about Clara.
        """
        words = _words(order)
        if words and any(len(retold.of(words)) >= _SHARED * len(words) for retold in self._retold):
            return True
        ordered = content(_ordered(order)) or content(order)
        least = _LEAST * len(ordered) if len(ordered) >= _FEW else len(ordered)
        for said, is_short, around in self._said if ordered else ():
            told = said.of(ordered)
            may_agree = (is_short and len(ordered) >= _FEW) or len(told) >= least
            beside = [other.of(ordered) for other in around] if may_agree else []
            if any(len(told | more) >= _SHARED * len(ordered) for more in (frozenset[str](), *beside)):
                return True
        return False


class _Told:
    """The stems of a text."""

    def __init__(self, stems: frozenset[str]) -> None:
        self._stems: Final = stems
        self._begun: Final = _beginnings(stems)

    def of(self, words: frozenset[str]) -> frozenset[str]:
        """Those of these stems that it tells, in whatever form of the word."""
        return frozenset(
            word
            for word in words
            if word in self._stems or word in self._begun or not self._stems.isdisjoint(_beginnings((word,)))
        )


def _beginnings(stems: Iterable[str]) -> frozenset[str]:
    """The stems without their last letters."""
    return frozenset(
        stem[:end] for stem in stems for end in range(max(len(stem) - _MOST_ENDING, _LEAST_STEM), len(stem))
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - FRAME_STEMS


def _ordered(order: str) -> str:
    """An order without the words by which it is known as one."""
    known = next((match for pattern in _PATTERNS if (match := pattern.match(order))), None)
    return order[known.end() :] if known else order
