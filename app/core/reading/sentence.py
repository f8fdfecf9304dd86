"""A sentence analysed by itself, without its speaker and place. The result is computed once and kept."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final, NamedTuple

from app.core.reading.cues import PLEASANTRY
from app.core.text.clauses import MIN_WORDS, begins_unresolved, clauses_with_values
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns
from app.core.text.identifiers import Identifier, find_identifiers
from app.core.text.languages.combined_words import sources_of
from app.core.text.memo import memoized
from app.core.text.relative import has_relative_time
from app.core.text.sentences import asks
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems

TRAITS: Final = (
    "constant", "content", "name", "value", "relative time", "addressed", "unresolved", "fragment", "pleasantry",
)  # fmt: skip
"""The names of the features that depend only on a sentence's words, in order."""
_PLEASANTRY_BIT: Final = CUE_INDEX.add(PLEASANTRY.pattern)
_ADDRESSED: Final = CuePatterns(sources_of("clauses", "addressed"))


class Sentence(NamedTuple):
    """An analysed sentence."""

    text: str
    core: str
    """The clauses of the text with its values, word for word; the whole text if it must not be shortened."""
    stems: frozenset[str]
    content: frozenset[str]
    """The stems of content words."""
    identifiers: tuple[Identifier, ...]
    values: frozenset[str]
    """Exact values other than names, in lower case."""
    is_question: bool
    traits: tuple[float, ...]

    def among(self, speakers: Collection[str]) -> Sentence:
        """This sentence without the speakers' names and their short forms, which say nothing."""
        if not speakers:
            return self
        found = tuple(one for one in self.identifiers if not _is_vocative(one, speakers))
        return self if len(found) == len(self.identifiers) else _sentence(self.text, found)


@memoized()
def sentence_of(text: str) -> Sentence:
    """Analyse a sentence."""
    return _sentence(text, find_identifiers(text))


def _sentence(text: str, found: tuple[Identifier, ...]) -> Sentence:
    word_stems, possible_cues = stems(text), CUE_INDEX.may_match_text(text)
    content = frozenset(word_stems) - GENERIC_STEMS - FRAME_STEMS
    values = frozenset(one.text.lower() for one in found if one.kind not in {"name", "quoted"})
    return Sentence(
        text=text,
        core=clauses_with_values(text, found),
        stems=frozenset(word_stems),
        content=content,
        identifiers=found,
        values=values,
        is_question=asks(text),
        traits=(
            1.0,
            math.sqrt(len(content)),
            float(any(one.text.lower() not in values for one in found)),
            float(bool(values)),
            float(has_relative_time(text)),
            float(_ADDRESSED.matches((text,), possible_cues)),
            float(begins_unresolved(text)),
            float(len(word_stems) < MIN_WORDS),
            float(bool(possible_cues & _PLEASANTRY_BIT) and PLEASANTRY.match(text) is not None),
        ),
    )


def _is_vocative(item: Identifier, speakers: Collection[str]) -> bool:
    return item.kind == "name" and any(name.startswith(item.text) for name in speakers)
