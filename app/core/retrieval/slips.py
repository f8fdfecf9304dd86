"""Slips of the pen: what a word becomes by one of them, and which word a mistyped one means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.core.retrieval.corpus import Corpus
from app.core.retrieval.kinds import is_known
from app.core.text.languages.loading import languages

_SHORTEST: Final = 5  # letters; a shorter word becomes too many others by one slip
_LONGEST: Final = 20  # letters; what is longer is no word that somebody mistypes
_ENDING: Final = 3  # letters that the ending of a mistyped word may have, which is not taken off as its ending
_ALPHABETS: Final = tuple(one.terms.alphabet for one in languages() if one.terms.alphabet)


def one_slip_from(stem: str, *, replaces_letters: bool = True) -> Iterator[str]:
    """What a stem becomes by one slip after its first letter; in alphabets that we know.

    Args:
        stem: The word.
        replaces_letters: Whether another letter may stand for one.
    """
    letters = next((one for one in _ALPHABETS if stem and stem[-1] in one), "")
    if len(stem) > _LONGEST or not letters:
        return
    for place in range(1, len(stem)):
        before, here, after = stem[:place], stem[place], stem[place + 1 :]
        yield before + after
        if replaces_letters:
            yield from (before + letter + after for letter in letters if letter != here)
        yield from (before + letter + here + after for letter in letters)
        if after:
            yield before + after[0] + here + after[1:]


def meant_by(stem: str, corpus: Corpus) -> str:
    """The stem that one means which stands nowhere in the corpus: the commonest one slip away; itself if none is.

    Of a mistyped word the ending often stays ("conection"). So the slip is looked for in the whole, then without the
    last letters. A word that we know is meant as it stands: by "state" nobody means "stage". But what was said may be
    mistyped ("restuarant"); there another letter in the place of one is mostly another word.
    """
    known = is_known(stem)
    for length in range(len(stem), max(len(stem) - _ENDING * (not known), _SHORTEST) - 1, -1):
        others = one_slip_from(stem[:length], replaces_letters=not known)
        found = {other for other in others if len(other) >= _SHORTEST and other in corpus.postings}
        if found:
            return min(found, key=lambda other: (-corpus.documents(other), other))
    return stem
