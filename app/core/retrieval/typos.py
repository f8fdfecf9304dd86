"""Finds the word that a mistyped word means: one that is a single typing error away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.related_words import is_known
from app.core.text.languages.loading import languages

_MIN_WORD_LENGTH: Final = 5  # letters; one slip turns a shorter word into too many other words
_MAX_WORD_LENGTH: Final = 20  # letters; a longer text is no word that somebody mistypes
_ENDING: Final = 3  # letters of an ending that stemming may have left on a mistyped word
_ALPHABETS: Final = tuple(one.terms.alphabet for one in languages() if one.terms.alphabet)


def typo_variants(stem: str, *, replaces_letters: bool = True) -> Iterator[str]:
    """All stems that one typing error makes of a stem: a letter missing, added or replaced, or two exchanged.

    The first letter is taken as right. Only alphabets of known languages are tried.

    Args:
        stem: The stem.
        replaces_letters: Whether a letter may be replaced by another.
    """
    letters = next((one for one in _ALPHABETS if stem and stem[-1] in one), "")
    if len(stem) > _MAX_WORD_LENGTH or not letters:
        return
    for place in range(1, len(stem)):
        before, here, after = stem[:place], stem[place], stem[place + 1 :]
        yield before + after
        if replaces_letters:
            yield from (before + letter + after for letter in letters if letter != here)
        yield from (before + letter + here + after for letter in letters)
        if after:
            yield before + after[0] + here + after[1:]


def corrected_stem(stem: str, corpus: Corpus) -> str:
    """The stem in the corpus that is meant by a stem which the corpus does not have, or that stem itself.

    It is the most frequent stem that is one typing error away. A mistyped word often keeps its ending ("conection"), so
    the error is looked for in the whole word first, then without its last letters. For a known word no letter is
    replaced, since that mostly makes another word: "state" does not mean "stage". Its other errors are tried, since
    the word in the corpus may be the mistyped one ("restuarant").
    """
    known, stems = is_known(stem), corpus.postings.holding
    for length in range(len(stem), max(len(stem) - _ENDING * (not known), _MIN_WORD_LENGTH) - 1, -1):
        others = typo_variants(stem[:length], replaces_letters=not known)
        found = {other for other in others if other in stems and len(other) >= _MIN_WORD_LENGTH}
        if found:
            return min(found, key=lambda other: (-corpus.documents(other), other))
    return stem
